#include "engine/program/program_cache.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "base/parallel.h"
#include "engine/store/disk_cache.h"
#include "engine/profile/profile.h"
#include "engine/program/compile_options.h"
#include "engine/search/beam.h"
#include "engine/search/tuned.h"
#include "engine/stats.h"
#include "ir/text.h"
#include "kernel/analysis/coalescing.h"
#include "kernel/constants.h"
#include "kernel/pipeline.h"
#include "render/user_kernel.h"

namespace tuff::engine {
namespace {

constexpr size_t kKernelsPerThread = 4;  // starting a thread costs what a small kernel takes

void show_lowered(const Rendered& r, const Target& target) {
  const kernel::LinearKernel& k = r.linear;
  TUFF_DEBUG_LINE(3, "opts {}: {}", k.name, k.opts);
  TUFF_DEBUG_LINE(5, "ast {}:\n{}", k.name, ir::to_text(r.ast));
  TUFF_DEBUG_LINE(6, "linear {}:\n{}", k.name, kernel::to_text(k));
  if (target.has_local && !k.ops.empty())
    TUFF_DEBUG_LINE(3, "lines per fewest {}: {}", k.name,
                    to_string(kernel::coalescing_of(k, target)));
}

void show(const Rendered& r, const Target& target) {
  show_lowered(r, target);
  TUFF_DEBUG_LINE(4, "source {}:\n{}", r.linear.name, render::to_text(r.source));
}

std::optional<std::string> disassembler_of(render::BinaryFormat format) {
  switch (format) {
    case render::BinaryFormat::Object: return os::find_program("objdump");
    case render::BinaryFormat::AmdgpuObject: return os::find_program("llvm-objdump-19");
    case render::BinaryFormat::None:
    case render::BinaryFormat::SpirV:
    case render::BinaryFormat::OpenclC:
    case render::BinaryFormat::Ptx: return {};
  }
  return {};
}

// TUFF_DEBUG=7: machine code as objdump shows it, where there is one, and PTX, which is all that we
// make for NVIDIA's GPUs. SPIR-V is disassembled at level 4.
void show_machine_code(std::span<const render::Binary> binaries) {
  if (debug_level() < 7) return;
  std::map<const void*, bool> shown;
  for (const render::Binary& b : binaries) {
    const auto objdump = disassembler_of(b.format);
    const bool is_text = b.format == render::BinaryFormat::Ptx;
    if ((!objdump && !is_text) || !shown.emplace(b.bytes.get(), true).second) continue;
    if (is_text) {
      debug_line(std::string(b.bytes->begin(), b.bytes->end()));
      continue;
    }
    const os::ScratchFolder folder;
    const std::string path = folder.path() + "/kernel.o";
    os::write_file(path, *b.bytes);
    debug_line(os::Process({*objdump, "-d", "--no-show-raw-insn", path}).wait().out);
  }
}

// A guess on the slow side: a core that gets two operations and two bytes done per nanosecond.
uint64_t expected_ns(const kernel::Estimate& e, const Target& t) {
  const uint64_t per_ns = 2 * uint64_t{t.cores};
  return t.launch_cost_ns + std::max(e.flops, e.bytes) / per_ns;
}

// Whether a kernel stores to some elements of a buffer only.
bool stores_part(const ir::UOp& ast, int32_t slot) {
  int64_t left = 0;
  for (const ir::UOp& end : ast->src()) {
    const ir::UOp& place = end->src(0)->src(0);
    const ir::UOp& memory = place->src(0);
    if (memory->op != ir::Op::Param || memory->get<ir::ParamArg>().slot != slot) continue;
    if (place->src_count > 2) return true;
    int64_t stored = 1;
    for (const ir::UOp& r : end->src().subspan(1)) stored *= r->src(0)->max;
    left = memory->get<ir::ParamArg>().count - stored;
  }
  return left > 0;
}

LoadedKernel loaded_kernel(Rendered&& r, const Target& target) {
  kernel::LinearKernel& k = r.linear;
  LoadedKernel out;
  out.name = k.name;
  out.ast = std::move(r.ast);
  out.lower_ns = r.lower_ns;
  out.render_ns = r.render_ns;
  out.buffers = std::move(k.buffers);
  out.variables = std::move(k.variables);
  out.groups = k.groups;
  out.estimate = k.estimate;
  out.expected_ns = expected_ns(k.estimate, target);
  out.bounds = std::move(k.bounds);
  out.alignment = r.alignment;
  if (out.by_user()) return out;
  // What is stored to in parts keeps the rest, which has to be there, as what is read has.
  for (kernel::LinearKernel::Argument& a : out.buffers)
    a.read = a.read || (a.written && stores_part(out.ast, a.slot));
  return out;
}

// The disk cache's view of one compile: kernels that share an object file share one row of it.
struct DiskPlan {
  std::vector<std::string> kernel_keys;
  std::vector<render::Binary> binaries;  // empty bytes where missing
  std::vector<size_t> missing;
};

void render_user_kernel(Rendered& r, const Target& target) {
  const uint64_t begin_ns = os::monotonic_ns();
  const ProfiledScope timer("render", &counters().render_ns);
  render::UserKernel k = render::user_kernel(r.ast, target);
  r.linear = std::move(k.linear);
  r.source = std::move(k.source);
  r.alignment = k.alignment;
  r.render_ns = os::monotonic_ns() - begin_ns;
}

void render_kernel(Rendered& r, const Target& target) {
  if (r.ast->op == ir::Op::CustomKernel) return render_user_kernel(r, target);
  const uint64_t begin_ns = os::monotonic_ns();
  {
    const ProfiledScope timer("lower", &counters().lower_ns);
    r.linear = r.opts ? kernel::lower_with(r.ast, target, *r.opts)
                      : kernel::lower(r.ast, target, lower_options());
  }
  const uint64_t lowered_ns = os::monotonic_ns();
  const ProfiledScope timer("render", &counters().render_ns);
  try {
    r.source = render::renderer_of(target).render(r.linear, target);
  } catch (...) {
    show_lowered(r, target);  // a kernel that no renderer takes is to be seen as well
    throw;
  }
  r.lower_ns = lowered_ns - begin_ns;
  r.render_ns = os::monotonic_ns() - lowered_ns;
}

std::string text_of(const Blob& b) { return {b.begin(), b.end()}; }
Blob blob_of(const std::string& s) { return {s.begin(), s.end()}; }

DiskPlan look_up(std::span<const render::Source> sources, const std::string& identity) {
  DiskPlan plan;
  DiskCache& disk = DiskCache::instance();
  std::map<std::string, std::shared_ptr<const std::vector<uint8_t>>> objects;
  for (size_t i = 0; i < sources.size(); i++) {
    const render::Source& s = sources[i];
    const std::string words(reinterpret_cast<const char*>(s.words.data()),
                            s.words.size() * sizeof(uint32_t));
    const std::string parts[] = {"kernel", s.text + words, s.symbol, identity};
    plan.kernel_keys.push_back(content_key(parts));
    plan.binaries.push_back({s.name, s.symbol, s.format, nullptr, s.args, s.local,
                             s.shared_bytes, s.subgroup_size, s.by_user});
    if (auto object_key = disk.get(plan.kernel_keys[i])) {
      auto& object = objects[text_of(*object_key)];
      if (!object) {
        if (auto bytes = disk.get(text_of(*object_key)))
          object = std::make_shared<std::vector<uint8_t>>(std::move(*bytes));
      }
      plan.binaries[i].bytes = object;
    }
    if (!plan.binaries[i].bytes) plan.missing.push_back(i);
  }
  return plan;
}

void remember(const DiskPlan& plan, std::span<const render::Binary> fresh) {
  std::vector<CacheRow> rows;
  std::map<const void*, std::string> object_keys;
  for (size_t i = 0; i < fresh.size(); i++) {
    std::string& object_key = object_keys[fresh[i].bytes.get()];
    if (object_key.empty()) {
      const std::string parts[] = {"object", text_of(*fresh[i].bytes)};
      object_key = content_key(parts);
      rows.push_back({object_key, *fresh[i].bytes, CacheKind::Program});
    }
    rows.push_back({plan.kernel_keys[plan.missing[i]], blob_of(object_key), CacheKind::Link});
  }
  DiskCache::instance().put(rows);
}

}  // namespace

std::vector<render::Binary> ProgramCache::compile(std::span<const render::Source> sources) {
  const Target& target = device_.target();
  const render::Renderer& renderer = render::renderer_of(target);
  const ProfiledScope timer("compile", &counters().compile_ns);
  counters().kernels_compiled += sources.size();
  // Only text has a compiler worth caching; words of SPIR-V are the binary already.
  const bool cacheable = !sources.empty() && !sources[0].text.empty();
  if (!cacheable) return renderer.compile(sources, target);

  DiskPlan plan = look_up(sources, renderer.compiler_identity(target) + target.identity);
  counters().kernels_from_disk += sources.size() - plan.missing.size();
  if (plan.missing.empty()) return std::move(plan.binaries);
  std::vector<render::Source> to_compile;
  for (size_t i : plan.missing) to_compile.push_back(sources[i]);
  const std::vector<render::Binary> fresh = renderer.compile(to_compile, target);
  for (size_t i = 0; i < fresh.size(); i++) plan.binaries[plan.missing[i]] = fresh[i];
  remember(plan, fresh);
  return std::move(plan.binaries);
}

// What a file of tuned schedules says, else what TUFF_BEAM has found for this kernel, now or in
// another process.
std::optional<kernel::Opts> ProgramCache::searched(const ir::UOp& ast) {
  const BeamOptions options = BeamOptions::of_environment();
  if (options.width == 0 && env_text(Env::TUFF_TUNED).empty()) return {};
  if (checking_bounds() || lower_options().random_seed) return {};
  const Target& target = device_.target();
  const render::Renderer& renderer = render::renderer_of(target);
  const std::string compiler = renderer.compiler_identity(target);
  if (const TunedSchedules* tuned = tuned_for(target, compiler)) {
    if (std::optional<kernel::Opts> opts = tuned->find(ast)) return opts;
  }
  if (options.width == 0) return {};
  const std::string parts[] = {"beam", ir::to_text(ast), to_json(target), compiler,
                               fmt::format("{}", options.width)};
  const std::string key = content_key(parts);
  if (const std::optional<Blob> known = DiskCache::instance().get(key)) {
    const std::optional<kernel::Opts> opts = legal_opts(text_of(*known), ast, target);
    if (opts) return opts;
  }
  const std::optional<BeamResult> found = beam_search(
      ast, device_, options,
      [&](std::span<const render::Source> sources) { return renderer.compile(sources, target); });
  if (!found) return {};
  counters().kernels_searched++;
  TUFF_DEBUG_LINE(1, "beam: {:.2f} us instead of {:.2f} ({} candidates, {:.1f} s): {}",
                  found->ns / 1e3, found->heuristic_ns / 1e3, found->candidates, found->seconds,
                  to_string(found->opts));
  const CacheRow row{key, blob_of(to_string(found->opts)), CacheKind::Tuning};
  DiskCache::instance().put({&row, 1});
  return found->opts;
}

// The first kernel of a family is compiled as it is. A later one takes what it has differently from
// the first as arguments, and so do all that follow.
ProgramCache::Wanted ProgramCache::wanted(const ir::UOp& ast) {
  if (kernels_.count(ast) || ast->op == ir::Op::CustomKernel) return {ast, ast, {}};
  std::vector<ir::UOp> constants = kernel::free_constants(ast, device_.target());
  if (constants.empty()) return {ast, ast, {}};
  const std::vector<bool> all(constants.size(), true);
  const auto [it, first] =
      families_.try_emplace(kernel::with_arguments(ast, constants, all), Family{});
  Family& family = it->second;
  if (first) {
    family = {std::move(constants), std::vector<bool>(all.size(), false)};
    return {ast, ast, {}};
  }
  for (size_t i = 0; i < constants.size(); i++)
    if (!(constants[i] == family.constants[i])) family.taken[i] = true;
  return {kernel::with_arguments(ast, constants, family.taken), ast,
          kernel::constant_words(constants)};
}

void ProgramCache::compile_missing(std::span<const Wanted> kernels) {
  std::vector<Rendered> fresh;
  ir::UOpMap<bool> seen;
  for (const Wanted& w : kernels) {
    if (kernels_.count(w.ast) || !seen.emplace(w.ast, true).second) continue;
    if (w.ast->op == ir::Op::CustomKernel) {  // its text is a program of its own
      std::vector<Rendered> alone(1);
      alone[0].ast = w.ast;
      add(std::move(alone));
      continue;
    }
    fresh.push_back({.ast = w.ast, .opts = searched(w.searched)});
  }
  if (!fresh.empty()) add(std::move(fresh));
}

std::vector<const LoadedKernel*> ProgramCache::get(std::span<const ir::UOp> asts) {
  std::lock_guard lock(mutex_);
  std::vector<Wanted> kernels;
  for (const ir::UOp& ast : asts) kernels.push_back({ast, ast, {}});
  compile_missing(kernels);
  std::vector<const LoadedKernel*> out;
  for (const ir::UOp& ast : asts) out.push_back(kernels_.at(ast).get());
  return out;
}

std::vector<KernelUse> ProgramCache::use(std::span<const ir::UOp> asts) {
  std::lock_guard lock(mutex_);
  std::vector<Wanted> kernels;
  for (const ir::UOp& ast : asts) kernels.push_back(wanted(ast));
  compile_missing(kernels);
  std::vector<KernelUse> out;
  for (Wanted& w : kernels) out.push_back({kernels_.at(w.ast).get(), std::move(w.constants)});
  return out;
}

void ProgramCache::add(std::vector<Rendered> fresh) {
  const size_t threads = std::min<size_t>(os::core_count(), fresh.size() / kKernelsPerThread);
  parallel_for(fresh.size(), threads, [&](size_t i) { render_kernel(fresh[i], device_.target()); });
  std::vector<render::Source> sources;
  for (Rendered& r : fresh) {
    show(r, device_.target());
    sources.push_back(std::move(r.source));
  }
  const std::vector<render::Binary> binaries = compile(sources);
  show_machine_code(binaries);
  const ProfiledScope timer("load", &counters().load_ns);
  std::vector<std::unique_ptr<hcq::Program>> programs = device_.load(binaries);
  for (size_t i = 0; i < fresh.size(); i++) {
    auto made =
        std::make_unique<LoadedKernel>(loaded_kernel(std::move(fresh[i]), device_.target()));
    made->program = std::move(programs[i]);
    profile_kernel(made->name, made->estimate);
    kernels_.emplace(made->ast, std::move(made));
  }
}

std::vector<const LoadedKernel*> ProgramCache::all() const {
  std::lock_guard lock(mutex_);
  std::vector<const LoadedKernel*> out;
  for (const auto& [ast, kernel] : kernels_) out.push_back(kernel.get());
  return out;
}

size_t ProgramCache::size() const {
  std::lock_guard lock(mutex_);
  return kernels_.size();
}

}  // namespace tuff::engine

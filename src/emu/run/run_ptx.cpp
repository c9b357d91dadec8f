#include "emu/run/run_ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/os.h"
#include "emu/profile/profiler.h"
#include "emu/ptx/launch.h"
#include "emu/run/launch_file.h"
#include "emu/run/profile_text.h"
#include "emu/run/results.h"

namespace tuff::emu {
namespace {

const emu_api::PtxKernelInfo& find_kernel(const emu_api::PtxModule& module,
                                          const std::string& name) {
  std::vector<std::string> names;
  for (const auto& kernel : module.kernels()) {
    if (kernel.name == name) return kernel;
    names.push_back(kernel.name);
  }
  fail<InvalidArgument>("PTX: there is no kernel '{}'; there are: {}", name, fmt::join(names, " "));
}

// The parameters as the metadata of a code object describes them.
Json metadata_of(const emu_api::PtxKernelInfo& kernel) {
  Json rows = Json::array();
  for (const auto& p : kernel.parameters)
    rows.push_back({{".offset", p.offset}, {".size", p.bytes}, {".value_kind", "by_value"}});
  return {{".args", rows}};
}

EmuLaunch read_launch(const emu_api::RunRequest& o, const emu_api::PtxKernelInfo& kernel) {
  LaunchLimits limits;
  limits.most_lds_bytes = ptx::kMostSharedBytes;
  if (kernel.required_block[0]) limits.group_size = kernel.required_block;
  EmuLaunch launch = read_emu_launch(o.args, metadata_of(kernel), kernel.parameter_bytes, limits);
  if (o.seed) launch.seed = o.seed;
  return launch;
}

ptx::Outcome execute_ptx(emu_api::PtxModule& module, const std::string& kernel, EmuLaunch& launch,
                         profile::Profiler* profiler) {
  emu_api::PtxLaunchRequest r;
  r.module = &module;
  r.kernel = kernel;
  r.grid = launch.groups;
  r.block = launch.group_size;
  r.dynamic_shared_bytes = launch.dynamic_lds_bytes;
  r.parameters = launch.block;
  for (EmuBuffer& b : launch.buffers)
    r.memory.push_back({b.address, b.bytes.size(), b.bytes.data(), true});
  r.seed = launch.seed;
  r.instruction_budget = launch.instruction_budget;
  RangeMemory memory;
  return profiler ? profiler->execute(r, memory) : ptx::execute(r, memory);
}

Json ptx_json(const ptx::Outcome& outcome, const EmuLaunch& launch) {
  Json findings = Json::array();
  for (const ptx::Finding& f : outcome.findings) {
    findings.push_back({{"kind", name(f.kind)},
                        {"kernel", f.kernel},
                        {"instruction", f.instruction},
                        {"line", f.line},
                        {"block", f.block},
                        {"thread", f.thread},
                        {"data_address", f.address},
                        {"times", f.times},
                        {"detail", f.detail}});
  }
  return {{"finished", outcome.finished},
          {"instructions", outcome.instructions},
          {"counts", outcome.counts},
          {"findings", findings},
          {"buffers", buffers_json(launch)}};
}

void print_outcome(const ptx::Outcome& outcome, const EmuLaunch& launch, bool counts) {
  for (const ptx::Finding& f : outcome.findings) fmt::print("{}\n", to_text(f));
  fmt::print("{}: {} instructions of {} kinds, {} findings\n",
             outcome.finished ? "finished" : "stopped", outcome.instructions, outcome.counts.size(),
             outcome.findings.size());
  if (counts) print_counts(outcome.counts);
  print_changed(launch);
}

}  // namespace

bool is_elf(std::span<const uint8_t> file) {
  constexpr uint8_t kMagic[] = {0x7f, 'E', 'L', 'F'};
  return file.size() >= std::size(kMagic) && std::equal(std::begin(kMagic), std::end(kMagic), file.begin());
}

// 11.1: the first statement; comments may stand before it.
bool is_ptx(std::span<const uint8_t> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  return !is_elf(file) && text.find(".version") != std::string_view::npos;
}

bool run_ptx(const emu_api::RunRequest& o, const std::string& text) {
  const auto module = ptx::load(text);
  EmuLaunch launch = read_launch(o, find_kernel(*module, o.kernel));
  std::optional<emu_api::KernelProfile> profile;
  std::optional<profile::Profiler> profiler;
  if (o.profile)
    profiler.emplace(
        emu_api::ProfileOptions{o.chip, true, [&](const auto& told) { profile = told; }},
        profile::Vendor::Nvidia);
  const ptx::Outcome outcome =
      execute_ptx(*module, o.kernel, launch, profiler ? &*profiler : nullptr);
  Json json = o.json || !o.out.empty() ? ptx_json(outcome, launch) : Json();
  if (profile && !json.is_null()) json["profile"] = profile_json(*profile);
  if (!o.out.empty()) os::write_text(o.out, json.dump(1, ' ', false) + "\n");
  if (o.json) {
    print_json(json);
  } else {
    print_outcome(outcome, launch, o.counts);
    if (profile) fmt::print("{}", profile_text(*profile));
  }
  return outcome.finished && outcome.findings.empty();
}

}  // namespace tuff::emu

#include "gpu/emulated_run.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <tuff/language.h>

#include "base/check.h"
#include "base/compilers.h"
#include "base/env.h"
#include "bench/train_bench.h"
#include "devices/emulator.h"
#include "engine/device.h"
#include "engine/program/program_cache.h"
#include "engine/realize/validate.h"
#include "language/sequence_past.h"

namespace tuff::gpu {
namespace {

// Profiles come on the emulated GPU's own thread.
class Launches {
 public:
  void add(const emu_api::KernelProfile& profile) {
    std::lock_guard lock(mutex_);
    launches_.push_back(profile);
  }
  std::vector<emu_api::KernelProfile> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(launches_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<emu_api::KernelProfile> launches_;
};

Launches& launches() {
  static Launches all;
  return all;
}

std::string& emulated_device() {
  static std::string name;
  return name;
}

engine::Device& device() { return *engine::Device::get(device_name()); }

std::string target_of(const std::string& chip) {
  emu_api::Failure failure;
  std::string target = devices::emulator().chip_target(chip, failure);
  devices::throw_failure(failure);
  return target;
}

void override_for_process(Env variable, const std::string& value) {
  static std::vector<std::unique_ptr<EnvOverride>> settings;  // for as long as the process runs
  settings.push_back(std::make_unique<EnvOverride>(variable, value));
}

void emulate_amd(const std::string& compiler) {
  if (compiler == "aco")
    if (const std::string why = why_no_aco_compiler(); !why.empty()) fail<Unsupported>("{}", why);
  override_for_process(Env::AMD_IFACE, "MOCK");
  override_for_process(Env::AMD_COMPILER, compiler);
}

// The emulated machine is one of sm_86 or sm_90; kernels of the former run on sm_89 too.
void emulate_nvidia(const EmulationOptions& options) {
  if (options.compiler == "aco")
    fail<InvalidArgument>("{} is NVIDIA's: its kernels are compiled by clang, not by aco",
                          options.chip);
  if (const std::string why = why_no_nvptx_compiler(); !why.empty()) fail<Unsupported>("{}", why);
  override_for_process(Env::NV_IFACE, "MOCK");
  override_for_process(Env::TUFF_MOCK, target_of(options.chip) < "sm_90" ? "sm:86" : "sm:90");
}

std::map<std::string, std::string> names_by_symbol() {
  std::map<std::string, std::string> names;
  for (const engine::LoadedKernel* kernel : device().programs().all())
    if (kernel->program) names[kernel->program->symbol()] = kernel->name;
  return names;
}

std::vector<KernelRow> by_kernel(std::span<const emu_api::KernelProfile> profiles) {
  const std::map<std::string, std::string> names = names_by_symbol();
  std::vector<KernelRow> rows;
  std::map<std::string, size_t> place;
  for (const emu_api::KernelProfile& p : profiles) {
    const auto [it, fresh] = place.try_emplace(p.kernel, rows.size());
    const auto name = names.find(p.kernel);
    if (fresh) rows.push_back({name == names.end() ? p.kernel : name->second, {}, true});
    rows[it->second].launches.push_back(p);
  }
  return rows;
}

// Runs the work; what TUFF_VALIDATE finds wrong is told of the kernel that was launched last.
template <class Work>
RunReport collect(const Work& work) {
  RunReport report;
  launches().take();
  try {
    report.wrong = work();
  } catch (const engine::ValidationFailed& e) {
    report.wrong = e.what();
  }
  const std::vector<emu_api::KernelProfile> profiles = launches().take();
  report.kernels = by_kernel(profiles);
  if (!report.wrong.empty() && !profiles.empty()) {
    const std::string name = names_by_symbol()[profiles.back().kernel];
    for (KernelRow& row : report.kernels)
      if (row.name == name) row.right = false;
  }
  return report;
}

std::vector<float> values_of(const std::vector<Tensor>& results) {
  std::vector<float> out;
  for (const Tensor& t : results) {
    const std::vector<float> more = t.to("CPU").cast(DType::F32).to_vector<float>();
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

}  // namespace

double KernelRow::time_us() const {
  double sum = 0;
  for (const emu_api::KernelProfile& p : launches) sum += p.time_us;
  return sum;
}

const emu_api::KernelProfile& KernelRow::slowest() const {
  return *std::ranges::max_element(launches, {}, &emu_api::KernelProfile::time_us);
}

bool is_nvidia(const std::string& chip) { return target_of(chip).starts_with("sm_"); }

const std::string& device_name() { return emulated_device(); }

void emulate(const EmulationOptions& options) {
  const bool nvidia = is_nvidia(options.chip);
  if (nvidia)
    emulate_nvidia(options);
  else
    emulate_amd(options.compiler.empty() ? "aco" : options.compiler);
  emulated_device() = nvidia ? "NV:0" : "AMD:0";
  override_for_process(Env::TUFF_VALIDATE, "CPU");
  devices::profile_emulated({.chip = options.chip,
                             .instructions = options.instructions,
                             .report = [](const emu_api::KernelProfile& profile) {
                               launches().add(profile);
                             }});
}

RunReport run_row(const bench::KernelRow& row, const bench::Extents& extents,
                  bench::KernelOptions options) {
  options.device = device_name();
  const bench::KernelCase work = row.make(extents, options);
  device().queue().wait_idle();
  std::vector<Tensor> results;
  RunReport report = collect([&]() -> std::string {
    results = work.function(work.inputs);
    Tensor::realize(results);
    device().queue().wait_idle();
    return {};
  });
  if (report.wrong.empty()) report.wrong = bench::first_wrong(work.expected, values_of(results));
  if (!report.wrong.empty() && !report.kernels.empty()) report.kernels.back().right = false;
  return report;
}

RunReport run_training_step(const std::string& model) {
  bench::TrainBench training(model, device_name());
  training.get_ready();
  RunReport report = collect([&]() -> std::string {
    training.step();
    device().queue().wait_idle();
    return training.figures().correct() ? "" : "the loss of the one batch has not fallen";
  });
  return report;
}

RunReport run_token(const std::string& path, int64_t past) {
  constexpr int64_t kUntilCaptured = 2;
  const auto model = language::Model::open(path, {.device = device_name()});
  language::Sequence sequence(model, {.context = past + kUntilCaptured + 1});
  std::vector<int32_t> tokens(size_t(past), 0);
  for (size_t i = 0; i < tokens.size(); i++)
    tokens[i] = int32_t(int64_t(i) % model.description().vocabulary);
  const std::vector<int32_t> one{0};
  for (int64_t i = 0; i < kUntilCaptured; i++) {
    sequence.truncate(0);
    sequence.read(one);
  }
  // An emulated GPU would read a long text for hours, and counts do not depend on what it says.
  if (past > 1) language::SequencePast::skip(sequence, std::span(tokens).subspan(1));
  return collect([&]() -> std::string {
    sequence.read(one);
    device().queue().wait_idle();
    return {};
  });
}

RunReport run_function(const std::function<std::vector<Tensor>()>& function) {
  return collect([&]() -> std::string {
    Tensor::realize(function());
    device().queue().wait_idle();
    return {};
  });
}

}  // namespace tuff::gpu

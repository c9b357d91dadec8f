#include "emu/ptx/launch.h"

#include "base/check.h"
#include "emu/ptx/dispatch.h"
#include "emu/ptx/parse.h"

namespace tuff::emu::ptx {
namespace {

constexpr uint64_t kUsualBudget = 1'000'000'000;
// CUDA C++ Programming Guide, 16.2, of all compute capabilities.
constexpr uint32_t kMostThreads = 1024;

void check_block(const emu_api::PtxLaunchRequest& r, const emu_api::PtxKernelInfo& kernel) {
  uint64_t threads = 1, blocks = 1;
  for (size_t k = 0; k < 3; ++k) {
    if (r.grid[k] == 0 || r.block[k] == 0)
      fail<InvalidArgument>("kernel '{}': a grid or block of no threads", r.kernel);
    if (r.block[k] > kMostThreads || (blocks *= r.grid[k]) > UINT32_MAX)
      fail<InvalidArgument>("kernel '{}': blocks of {} threads, a grid of {}", r.kernel,
                            fmt::join(r.block, " x "), fmt::join(r.grid, " x "));
    threads *= r.block[k];
    const uint32_t wanted = kernel.required_block[k];
    if (wanted && wanted != r.block[k])
      fail<InvalidArgument>("kernel '{}' wants blocks of {}, not {}", r.kernel,
                            fmt::join(kernel.required_block, " x "), fmt::join(r.block, " x "));
  }
  const uint64_t most =
      kernel.most_threads ? std::min(kernel.most_threads, kMostThreads) : kMostThreads;
  if (threads > most)
    fail<InvalidArgument>("kernel '{}': blocks of {} threads, it takes {}", r.kernel, threads,
                          most);
}

void map_memory(RangeMemory& memory, const emu_api::PtxLaunchRequest& r, const Module& module) {
  for (const auto& region : r.memory) {
    if (region.address >> kWindowShift || (region.address + region.bytes) >> kWindowShift)
      fail<InvalidArgument>("a region at {:#x}: addresses are below 2^{}", region.address,
                            kWindowShift);
    if (region.bytes) memory.map(region.address, {region.host, region.bytes}, region.writable);
  }
  for (const auto& variable : module.globals)
    memory.map(variable.address, {variable.host, variable.bytes}, !variable.constant);
}

Launch launch_of(const emu_api::PtxLaunchRequest& r, const Module& module) {
  Launch out;
  out.module = &module;
  out.kernel = module.find(r.kernel);
  if (!out.kernel) fail<InvalidArgument>("the module has no kernel '{}'", r.kernel);
  const emu_api::PtxKernelInfo& kernel = out.kernel->kernel;
  check_block(r, kernel);
  if (r.parameters.size() < kernel.parameter_bytes)
    fail<InvalidArgument>("kernel '{}' takes {} bytes of parameters, {} are given", r.kernel,
                          kernel.parameter_bytes, r.parameters.size());
  if (kernel.shared_bytes + uint64_t(r.dynamic_shared_bytes) > kMostSharedBytes)
    fail<InvalidArgument>("kernel '{}': {} bytes of shared memory, {} are the most", r.kernel,
                          kernel.shared_bytes + uint64_t(r.dynamic_shared_bytes), kMostSharedBytes);
  out.grid = r.grid;
  out.block = r.block;
  out.dynamic_shared_bytes = r.dynamic_shared_bytes;
  out.parameters = r.parameters;
  out.parameters.resize(kernel.parameter_bytes);
  out.seed = r.seed;
  out.instruction_budget = r.instruction_budget ? r.instruction_budget : kUsualBudget;
  out.races = r.races;
  out.uninitialized = r.uninitialized;
  return out;
}

}  // namespace

std::unique_ptr<emu_api::PtxModule> load(const std::string& text) { return parse(text); }

Outcome execute(const emu_api::PtxLaunchRequest& r) {
  RangeMemory memory;
  return execute(r, memory);
}

Launch prepare(const emu_api::PtxLaunchRequest& r, RangeMemory& memory) {
  const auto* module = dynamic_cast<const Module*>(r.module);
  if (!module) fail<InvalidArgument>("a launch without a module of this library");
  Launch launch = launch_of(r, *module);
  map_memory(memory, r, *module);
  return launch;
}

Outcome execute(const emu_api::PtxLaunchRequest& r, RangeMemory& memory) {
  return run(prepare(r, memory), memory);
}

emu_api::PtxLaunchResult launch(const emu_api::PtxLaunchRequest& r) {
  Outcome outcome = execute(r);
  emu_api::PtxLaunchResult out{outcome.finished, {}, outcome.instructions, {}};
  for (const Finding& f : outcome.findings)
    out.findings.push_back({name(f.kind), 0, 0, f.address, to_text(f)});
  if (r.counts) out.counts = std::move(outcome.counts);
  return out;
}

}  // namespace tuff::emu::ptx

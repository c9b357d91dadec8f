// compile_linear and run_linear: from LINEAR to loaded programs, and from there onto the queues.
// Called by tensor (realize) and by Jit. Must never know rules, Vulkan or ioctls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "engine/buffer.h"
#include "engine/program/program_cache.h"
#include "ir/scalar_eval.h"
#include "sched/schedule.h"

namespace tuff::engine {

// A schedule with its programs; cached with the schedule.
struct CompiledLinear {
  std::shared_ptr<const sched::Schedule> schedule;
  std::vector<KernelUse> kernels;  // per call; none for copies and views
  // Whose programs they are: a device that was closed takes them with it.
  std::vector<std::weak_ptr<Device>> devices;
};
std::shared_ptr<const CompiledLinear> compile_linear(
    const std::shared_ptr<const sched::Schedule>& schedule);

using ir::VariableValues;

// A call with its memory: what run_linear executes and what a Jit captures.
struct BoundKernel {
  const LoadedKernel* kernel = nullptr;
  std::vector<int32_t> constants;    // as KernelUse's
  std::vector<Ref<Buffer>> buffers;  // by Param slot
  std::vector<int32_t> scalars;      // by LoadedKernel::variables
  std::array<uint32_t, 3> groups{1, 1, 1};
  ir::Dim runs = 1;                  // as the Call's; groups are 0 where it is
};
struct BoundCopy {
  Ref<Buffer> dst, src;
};
using BoundCall = std::variant<BoundKernel, BoundCopy>;
// Sets what the kernel takes of variables and constants: scalars and launch size.
void bind_variables(BoundKernel& kernel, const VariableValues& values);
Device& device_of(const BoundCall& call);     // whose queue it runs on
bool crosses_devices(const BoundCall& call);  // a copy between two devices
// The device that can make a copy between two, since it reaches the other's memory; the source's
// first: what it writes is on its way at once, a read would wait for each answer. Null: the host.
Device* copier_between(const BoundCopy& copy);

// Allocates outputs and temporaries, submits (one submit per run of calls on one device), and
// returns the buffer of each sink. Waits for copies between devices alone. `inputs` by
// BufferSlot::index.
std::vector<Ref<Buffer>> run_linear(const CompiledLinear& linear,
                                    std::span<const Ref<Buffer>> inputs,
                                    const VariableValues& variables = {});

// Schedules, compiles and runs: the buffers of the sinks, row-major.
std::vector<Ref<Buffer>> realize(std::span<const ir::UOp> sinks,
                                 const VariableValues& variables = {});

// From here on a device's copy queue is worth it. Two more submissions and a wait cost the host and
// the device some 20 us; a copy of 4 MiB takes more than that at 200 GB/s.
inline constexpr size_t kCopyQueueBytes = 4u << 20;

// Submits calls in order; the last step of run_linear. Exposed for tests.
void execute(std::span<const BoundCall> calls);
// The list that execute() submits for a run of calls on one device, with their argument blocks
// taken from the device's ring until its next retire(). Exposed for the hazard checker's tests.
hcq::CommandList record(Device& device, std::span<const BoundCall> calls);

}  // namespace tuff::engine

// From a tensor graph to LINEAR: ordered CALLs with a memory plan. Called by engine.
// Ranges instead of views: movement ops vanish into index arithmetic; what shares a kernel is
// decided by the cost rules of docs/design/fusion.md. Knows nothing of instructions or addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/target.h"
#include "ir/uop.h"
#include "sched/steps.h"

namespace tuff::sched {

enum class CallKind : uint8_t {
  Kernel,  // run `ast` on args
  Copy,    // args[0] <- args[1], same size, maybe across devices
  Custom,  // run the user's kernel that `ast` names (ir/custom_kernel.h) on args
  View,    // args[0] is args[1] at byte_offset: no work, no memory
  Loop,    // all steps of the Loop node `ast`: args[0] of the initial states, sequences, constants;
           // gone when they have been unrolled
  Again,   // args[0] is args[1] once the others are written; gone when the order is settled
};

// One entry of LINEAR. A kernel's AST is on the kernel floor:
//   sink(end(store(index(param i, offset[, gate]), value), range...)...)
// Param i is args[i]; outputs come first. Ranges are numbered from 0 in a canonical order, so that
// equal kernels are the same node. Reads are load(index(param, offset[, gate])); masks of padding
// gate the loads beneath them. No Index offset is ever out of bounds where its gate is true.
struct Call {
  CallKind kind = CallKind::Kernel;
  ir::UOp ast;
  std::vector<uint32_t> args;  // slots of Schedule::buffers
  uint32_t output_count = 1;   // args[0..output_count) are written
  std::string device;
  uint64_t byte_offset = 0;  // View
  ir::Dim runs = 1;          // Kernel, Custom: 0 of a loop's step that it is too short for
};

enum class BufferOrigin : uint8_t {
  Input,   // a Storage of the graph: inputs[index]
  Output,  // fresh memory that the caller keeps: one per sink that is not an Assign or a view
  Part,    // of another slot's memory: a View says which before any other call
  Temp,    // lives inside the schedule: at arena_offset of its device's arena
};

struct BufferSlot {
  DType dtype = DType::Void;
  int64_t count = 0;  // elements at maximum extent
  std::string device;
  BufferOrigin origin = BufferOrigin::Temp;
  uint32_t index = 0;         // of Input (order of inputs) or Output (sink number)
  uint64_t arena_offset = 0;  // Temp: bytes, 256-aligned
  uint32_t arena = 0;         // Temp: which of Schedule::arenas
  uint64_t size_bytes() const { return uint64_t(count) * tuff::size_bytes(dtype); }
};

struct Arena {
  std::string device;
  uint64_t size_bytes = 0;
};

// LINEAR plus its memory plan. Immutable once made; shared by the schedule cache.
struct Schedule {
  std::vector<BufferSlot> buffers;
  std::vector<Call> calls;
  std::vector<Arena> arenas;
  std::vector<uint32_t>
      sink_slots;  // per sink: the slot that holds its value, row-major contiguous
  std::vector<ir::UOp> variables;  // Variable nodes the kernels need, sorted by name
  std::vector<std::string> parts;     // reductions made in parts: "parts(0,4096) of add f32 65536"
};

struct Scheduled {
  std::shared_ptr<const Schedule> schedule;
  std::vector<Ref<ir::Storage>> inputs;  // by BufferSlot::index of Input slots
  bool from_cache = false;
};

using TargetOf = std::function<const Target&(const std::string& device)>;

// Which bytes a Storage's memory is. Storages may be parts of one allocation; kernels that are made
// one must not meet there.
struct MemoryPart {
  uint64_t allocation = 0, begin = 0, end = 0;
};
using MemoryOf = std::function<MemoryPart(const ir::Storage& s)>;

// Schedules everything that the sinks need. A sink is a tensor-floor node with a device; sinks that
// are Assigns store into their target's Storage. Kernels that read a Storage's old contents run
// before an Assign that overwrites it (WAR), those that read through the Assign node after it. The
// result is cached by structure: a graph that differs only in which Storages it uses is not
// scheduled again. Kernels are split to fit Target::max_buffers, which is 3 or more; throws
// Unsupported otherwise, and for a buffer above Target::max_binding_bytes. Without memory_of no two
// Storages share memory.
Scheduled schedule(std::span<const ir::UOp> sinks, const TargetOf& target_of,
                   const MemoryOf& memory_of = {}, const StepChoice& steps = {});

struct ScheduleCacheStats {
  uint64_t hits = 0, misses = 0;
};
ScheduleCacheStats schedule_cache_stats();
void clear_schedule_cache();

// LINEAR as text, one line per call with its buffers: goldens and TUFF_DEBUG=1.
std::string to_text(const Schedule& s);

}  // namespace tuff::sched

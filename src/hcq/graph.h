// CommandGraph: captured calls as one encoded list per instance, replayed by patching a few words.
// Built by engine's Jit; replays submit once. Dependencies come from byte-range read/write
// tracking, barriers stand only where hazards are. Argument blocks and encoded lists form a ring of
// instances, so that a replay is patched while the one before still runs. Knows nothing of UOps or
// tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "hcq/launch.h"
#include "hcq/paced_list.h"
#include "hcq/slot_program.h"

namespace tuff::hcq {

using GraphNode = std::variant<Launch, Transfer>;

// Where a patched word lies and where it comes from. Slots 0..inputs-1 are input addresses; those
// of the SlotProgram follow; derived slots (input address + offset) come last. All are computed
// once per replay, patches only copy.
struct Patch {
  uint32_t offset = 0;  // bytes into the instance's argument memory
  uint32_t slot = 0;
};
struct DerivedSlot {
  uint32_t slot = 0, from = 0;
  uint64_t addend = 0;
};

struct GraphStats {
  uint32_t kernels = 0, copies = 0, barriers = 0, patches = 0, submits_per_replay = 0;
};

// Where a graph runs that shares its work with others, and what orders it with them. Waits stand at
// its head and signals at its end, since some queues can do neither in mid-stream.
struct GraphPlace {
  Queue* queue = nullptr;               // of the device; null: its compute queue
  std::vector<Signal*> waits, signals;  // their values come with each replay, waits' first
  // For queues that cannot wait for signals: replay() does, before it submits. Blocks the caller.
  bool host_waits = false;
  // Placeholders of the inputs' memory (see below), shared by graphs that belong together. With
  // these, waits or signals the hazard checker takes graphs together too, and their maker
  // has to see to that.
  std::shared_ptr<const std::vector<MemoryBlock>> input_blocks;
};

// A replay is the whole of one submission: it begins after all that was submitted to its queue
// before it. Accesses to input `i` name a placeholder block of address 0, one per input, since the
// memory is known at replay only. What kernels of symbolic extent access is their memory at its
// largest.
class CommandGraph {
 public:
  // input_count and values.given() fix the arity of replay(); scalars and launch sizes of `nodes`
  // name slots of `values`. Buffers of `nodes` must outlive the graph (the Jit pins them). Encodes
  // `instances` lists at once; nothing is encoded later. With `times` every command is timestamped,
  // and the sink called for each replay once it has run.
  // Without TargetFeatures::device_address nothing can be re-bound: input_count has to be 0, else
  // Unsupported; engine/jit/rebind.h then copies what changes.
  CommandGraph(Device& device, std::vector<GraphNode> nodes, uint32_t input_count,
               SlotProgram values, uint32_t instances = 2, TimesSink times = {},
               GraphPlace place = {});
  ~CommandGraph();
  // Patches a free instance, the last one used if it is free, and submits once. Waits only if every
  // instance is in flight.
  // Allocates nothing. Returns the timeline value of completion.
  // Throws InvalidArgument, and has then done nothing, if an input overlaps memory that the graph
  // writes, or is written and overlaps other memory of the graph (barriers are placed on the
  // promise that it does not; callers copy such an input first), if a scalar does not fit in 32
  // bits or a launch size in the device's limits. A launch of 0 workgroups runs nothing.
  // `input_sizes` says how many bytes of each input there are, where that is less than what was
  // captured: symbolic sizes then have to keep kernels inside. `points`: a value for each of
  // GraphPlace's waits and signals.
  uint64_t replay(std::span<const uint64_t> input_addresses, std::span<const int64_t> scalars,
                  std::span<const uint64_t> input_sizes = {},
                  std::span<const uint64_t> points = {});
  // Times of replays that have run and were not reported yet: those before the last are when their
  // instance is used again.
  void report_times();
  const GraphStats& stats() const;
  const CommandList& commands() const;  // of instance 0, for the hazard checker and goldens
  Queue& queue() const;
  // Every instance's list with the memory that the host patches, in the order of use. Kept only by
  // graphs that are not checked alone, and under TUFF_CHECK_HAZARDS.
  std::vector<struct ReplayInstance> replay_instances() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::hcq

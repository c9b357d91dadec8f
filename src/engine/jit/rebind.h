// ReboundGraph: captured calls of a device without buffer device addresses, whose graph is bound to
// its memory and cannot be patched: see docs/design/replay.md. Also how the buffers of a call are
// exchanged for others. Called by runs.cpp. Must never know Vulkan: the rule depends
// on TargetFeatures alone. Copies run in lists of their own beside the graph's, in the queue's
// order, recorded at each replay.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/jit/replay_strategy.h"
#include "engine/realize/linear.h"
#include "hcq/graph.h"

namespace tuff::engine {

// What lies in captured[i] at the same place of given[i].
void rebind(Ref<Buffer>& b, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given);
// The call with what lies in captured[i] at the same place of given[i].
void rebind(BoundCall& c, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given);

class ReboundGraph {
 public:
  // A graph of these calls whose buffers are all fixed.
  using MakeGraph =
      std::function<std::shared_ptr<hcq::CommandGraph>(std::span<const BoundCall> calls)>;

  ReboundGraph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
               MakeGraph make);
  // Returns the timeline value of the graph; copies that follow it are marked on their buffers.
  // `values` are the graph's.
  uint64_t replay(std::span<const Ref<Buffer>> inputs, std::span<const int64_t> values);
  const std::shared_ptr<hcq::CommandGraph>& graph() const { return graph_; }
  // Adds the copies that a replay makes as things stand, and the submissions that carry them.
  void count_copies(ReplayStats& stats) const;

 private:
  struct Slot {
    Ref<Buffer> own;            // memory of the graph's; allocated when it is first needed
    uint64_t captured_address;  // of the caller's memory
    bool read = false, written = false;
    bool moved = false;  // has been elsewhere: `own` is used
    bool copied_in() const { return moved && read; }
    bool copied_out() const { return moved && written; }
  };
  void record(std::span<const Ref<Buffer>> inputs);
  Ref<Buffer> front_of(size_t slot, const Buffer& given) const;

  MakeGraph make_;
  std::vector<Slot> slots_;
  std::vector<Ref<Buffer>> own_;  // of slots_, in order
  std::vector<BoundCall> calls_;  // inputs are `own_`, so that no caller's memory is kept alive
  std::shared_ptr<hcq::CommandGraph> graph_;
};

}  // namespace tuff::engine

// ReboundGraph: captured calls that are bound to the memory of some inputs and cannot be patched:
// of all of them on a device without buffer device addresses, elsewhere of those that a kernel
// reads as texels. Also how the buffers of a call are exchanged for others.
// Called by capture.cpp. Must never know Vulkan: the rule depends on TargetFeatures and argument
// layouts alone.
//
// The rule: such an input is used where it is as long as every replay gives the memory that it had
// at capture (kept alive so long, where addresses are used again). Once it is elsewhere it gets
// memory of the graph's own, against which the graph is recorded again, once per input at most;
// from then on it is copied there before each replay if the calls read it, and back after if they
// write it. Copies run in lists of their own beside the graph's, in the queue's order, recorded at
// each replay. Other inputs are patched.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/realize/linear.h"
#include "hcq/graph.h"

namespace tuff::engine {

// The slot whose memory `b` lies in, or -1.
int32_t input_slot(const Buffer& b, std::span<const Ref<Buffer>> inputs);
// The call with what lies in captured[i] at the same place of given[i].
void rebind(BoundCall& c, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given);

// Whether a graph of the calls is bound to the memory of any input.
bool binds_inputs(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs);

class ReboundGraph {
 public:
  // A graph of these calls, patched where buffers are one of these inputs.
  using MakeGraph = std::function<std::shared_ptr<hcq::CommandGraph>(
      std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs)>;

  ReboundGraph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
               MakeGraph make);
  // Returns the timeline value of the graph; copies that follow it are marked on their buffers.
  // `addresses` and `sizes` are the inputs', `values` the graph's.
  uint64_t replay(std::span<const Ref<Buffer>> inputs, std::span<const uint64_t> addresses,
                  std::span<const int64_t> values, std::span<const uint64_t> sizes);
  const std::shared_ptr<hcq::CommandGraph>& graph() const { return graph_; }
  // Of a replay as things stand: copies, and the submissions that carry them.
  uint32_t copies() const;
  uint32_t copy_submits() const;

 private:
  struct Slot {
    Ref<Buffer> own;            // memory of the graph's; allocated when it is first needed
    uint64_t captured_address;  // of the caller's memory
    Ref<Buffer> pinned;         // that memory, where its address could be used again
    bool bound = false;         // the graph cannot be patched with its address
    bool read = false, written = false;
    bool moved = false;  // has been elsewhere: `own` is used
    bool copied_in() const { return moved && read; }
    bool copied_out() const { return moved && written; }
  };
  void note_use(const Buffer& b, std::span<const Ref<Buffer>> inputs, bool read, bool write);
  void note_uses(const BoundCall& c, std::span<const Ref<Buffer>> inputs);
  void record(std::span<const Ref<Buffer>> inputs);
  Ref<Buffer> front_of(size_t slot, const Buffer& given) const;

  MakeGraph make_;
  std::vector<Slot> slots_;
  std::vector<Ref<Buffer>> own_;      // of slots_, in order
  std::vector<Ref<Buffer>> patched_;  // own_ where the graph is patched, else what no call names
  std::vector<BoundCall> calls_;      // inputs are `own_`
  std::vector<uint64_t> addresses_, sizes_;  // of one replay, where the graph is patched
  std::shared_ptr<hcq::CommandGraph> graph_;
};

}  // namespace tuff::engine

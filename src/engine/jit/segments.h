// SegmentedGraph: captured calls whose plan (plan.h) has more than one queue, as CommandGraphs and
// lists of the host's queues that wait for one another. A replay submits every segment and returns;
// nothing blocks the caller except that all instances of a segment are in flight, or a queue that
// cannot wait for signals (then replay() waits in its place). One strategy of a captured graph.
//
// A queue of a device waits for another queue of that device by its timeline. For another device's
// work it waits for a signal of its own device that the host's queue raises: the host's queue alone
// waits for two devices. It does so even where one side is the CPU, whose queue could copy itself:
// that would hold up what else the CPU has to do, and the loss of the other device would be its
// own.
//
// Devices of which one reaches the other (hcq::Device::reaches) have no host between them: one of
// them copies, and they wait for each other's timelines. A thread watches these, so that the loss
// of one is told by its name and does not leave the other waiting.
//
// Replays follow one another by what plan.h calls Entry and Exit: on each device the first work of
// a replay comes after the compute queue's last work before it, and that after all of the replay
// before.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/jit/plan.h"
#include "engine/jit/replay_strategy.h"
#include "engine/outcome.h"
#include "hcq/hazards.h"
#include "hcq/host_queue.h"

namespace tuff::engine {

class SegmentedGraph final : public ReplayStrategy {
 public:
  // Of `calls` and `inputs` only what the plan names is kept: buffers that are no inputs are
  // pinned.
  SegmentedGraph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                 const SegmentPlan& plan, const std::vector<ir::UOp>& variables,
                 bool host_waits = false);
  ~SegmentedGraph() override;  // waits for what is in flight, except on a device that is lost

  // Submits; marks the buffers' last uses. Throws DeviceLost if a replay before this one has failed
  // (its reason names the device), or a device of this one is lost.
  void replay(const ReplayInputs& inputs) override;
  ReplayStats stats() const override;

  std::vector<const hcq::CommandGraph*> graphs() const override;  // in order of submission
  uint32_t device_submits() const;                                 // of one replay
  uint32_t host_submits() const;
  uint32_t host_copies() const;  // between devices; each moves its bytes once
  uint32_t peer_copies() const;  // likewise, by one of the devices
  // Several replays in a row as the hazard checker takes them, all queues and the host's included;
  // names lists of this object. After the last one, by the label kWhatFollows, each device's
  // compute queue touches all of the graph's memory there, as eager work or a new owner may. Needs
  // TUFF_CHECK_HAZARDS at construction.
  static constexpr const char* kWhatFollows = "what follows";
  hcq::Trace trace(size_t replays) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::engine

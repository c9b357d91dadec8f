// SegmentedGraph: captured calls whose plan (plan.h) has more than one queue, as CommandGraphs and
// lists of the host's queues that wait for one another. A replay submits every segment and returns;
// nothing blocks the caller except that all instances of a segment are in flight, or a queue that
// cannot wait for signals (then replay() waits in its place). One strategy of a captured graph;
// docs/design/multi-device.md says which queue waits for what.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/jit/plan.h"
#include "engine/jit/replay_strategy.h"
#include "hcq/hazards.h"

namespace tuff::engine {

class SegmentedGraph final : public ReplayStrategy {
 public:
  // Keeps of `calls` and `inputs` what the plan names: buffers that are no inputs are pinned.
  SegmentedGraph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                 const SegmentPlan& plan, const std::vector<ir::UOp>& variables,
                 bool host_waits = false);
  ~SegmentedGraph() override;  // waits for what is in flight, except on a device that is lost

  // Submits; marks the buffers' last uses. Throws DeviceLost if a replay before this one has failed
  // (its reason names the device), or a device of this one is lost.
  void replay(const ReplayInputs& inputs) override;
  ReplayStats stats() const override;

  std::vector<const hcq::CommandGraph*> graphs() const override;  // in order of submission
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

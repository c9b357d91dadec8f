// Runs: a captured graph's calls as runs on one device after another, each a CommandGraph, with
// copies between devices made by the host between them. What most graphs are: one run. Where
// addresses cannot be patched a run is re-bound (rebind.h).
#pragma once

#include <span>
#include <vector>

#include "engine/jit/replay_strategy.h"
#include "engine/realize/linear.h"

namespace tuff::engine {

class Runs final : public ReplayStrategy {
 public:
  Runs(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
       const std::vector<ir::UOp>& variables);
  ~Runs() override;
  void replay(const ReplayInputs& inputs) override;
  ReplayStats stats() const override;
  std::vector<const hcq::CommandGraph*> graphs() const override;

 private:
  struct Run;
  void add_run(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
               const std::vector<ir::UOp>& variables);
  void add_host_copy(const BoundCopy& copy, std::span<const Ref<Buffer>> inputs);

  std::vector<Run> runs_;
  ReplayStats stats_;  // but for what count the runs' graphs
};

}  // namespace tuff::engine

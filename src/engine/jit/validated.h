// ValidatedCalls: a graph that was captured under TUFF_VALIDATE executes its calls one by one, each
// checked before the next reads its results.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/jit/replay_strategy.h"
#include "engine/realize/linear.h"

namespace tuff::engine {

class ValidatedCalls final : public ReplayStrategy {
 public:
  ValidatedCalls(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                 std::vector<ir::UOp> variables, std::unique_ptr<ReplayStrategy> counted);
  void replay(const ReplayInputs& inputs) override;
  // What replays would do without it.
  ReplayStats stats() const override { return counted_->stats(); }
  std::vector<const hcq::CommandGraph*> graphs() const override { return counted_->graphs(); }

 private:
  std::vector<BoundCall> calls_;
  std::vector<Ref<Buffer>> captured_;
  std::vector<ir::UOp> variables_;
  std::unique_ptr<ReplayStrategy> counted_;
};

}  // namespace tuff::engine

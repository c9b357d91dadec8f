#include "engine/jit/captured_graph.h"

#include <algorithm>

#include "base/check.h"
#include "engine/jit/runs.h"
#include "engine/jit/segments.h"
#include "engine/jit/validated.h"
#include "engine/profile/profile.h"
#include "engine/program/compile_options.h"
#include "engine/realize/bounds.h"
#include "engine/realize/call_bytes.h"
#include "engine/realize/launch.h"
#include "engine/realize/validate.h"
#include "engine/stats.h"

namespace tuff::engine {

namespace {

[[noreturn, gnu::noinline]] void refuse_read_only(size_t input) {
  fail<InvalidArgument>(
      "replay: the memory of input {} is read-only, and the captured function writes it: give "
      "it a copy, (x + 0).realize()",
      input);
}

}  // namespace

CapturedGraph::CapturedGraph(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                             std::vector<ir::UOp> variables, const CaptureOptions& options)
    : variables_(std::move(variables)),
      written_(inputs.size()),
      addresses_(inputs.size()),
      sizes_(inputs.size()),
      values_(variables_.size() + inputs.size()) {
  note_written(calls, inputs);
  choose_strategy(calls, inputs, options);
  if (checking_bounds() && !validating()) bounded_ = std::move(calls);
}

// As inputs other memory may be given than was captured; the rest replays write at any time.
void CapturedGraph::note_written(std::span<const BoundCall> calls,
                                 std::span<const Ref<Buffer>> inputs) {
  for (const BoundCall& c : calls)
    each_buffer(c, [&](const Ref<Buffer>& b, bool, bool is_written) {
      if (!is_written) return;
      const int32_t slot = input_slot(*b, inputs);
      slot < 0 ? b->known_integers().close() : void(written_[size_t(slot)] = true);
    });
}

void CapturedGraph::choose_strategy(std::span<const BoundCall> calls,
                                    std::span<const Ref<Buffer>> inputs,
                                    const CaptureOptions& options) {
  const SegmentPlan plan = plan_segments(calls, inputs, options.copy_queue_bytes);
  if (plan.simple() || !plan.patchable()) {
    strategy_ = std::make_unique<Runs>(calls, inputs, variables_);
  } else {
    auto graph =
        std::make_unique<SegmentedGraph>(calls, inputs, plan, variables_, options.host_waits);
    segmented_ = graph.get();
    strategy_ = std::move(graph);
  }
  if (validating())
    strategy_ = std::make_unique<ValidatedCalls>(std::vector<BoundCall>(calls.begin(), calls.end()),
                                                 inputs, variables_, std::move(strategy_));
}

void CapturedGraph::require_values(std::span<const int64_t> values) const {
  if (values.size() != variables_.size())
    fail<InvalidArgument>("replay: {} values given for {} variables", values.size(),
                          variables_.size());
  for (size_t i = 0; i < values.size(); i++) {
    const auto& v = variables_[i]->get<ir::VariableArg>();
    if (values[i] < v.min || values[i] > v.max)
      fail<InvalidArgument>("replay: variable {} = {} is outside its bounds {}..{}", v.name,
                            values[i], v.min, v.max);
  }
}

void CapturedGraph::replay(std::span<const Ref<Buffer>> inputs, std::span<const int64_t> values) {
  TUFF_CHECK(inputs.size() == addresses_.size(), "{} inputs given, captured with {}",
             inputs.size(), addresses_.size());
  if (!variables_.empty() || !values.empty()) require_values(values);
  const ProfiledScope scope("replay");
  std::copy(values.begin(), values.end(), values_.begin());
  for (size_t i = 0; i < inputs.size(); i++) {
    if (written_[i]) {
      if (inputs[i]->read_only()) [[unlikely]]
        refuse_read_only(i);
      inputs[i]->known_integers().forget();
    }
    addresses_[i] = inputs[i]->span().address();
    sizes_[i] = inputs[i]->size_bytes();
    values_[values.size() + i] = int64_t(sizes_[i]);
  }
  strategy_->replay({inputs, addresses_, sizes_, values_});
  counters().replays++;
  if (!bounded_.empty()) check_bounds(bounded_);
}

}  // namespace tuff::engine

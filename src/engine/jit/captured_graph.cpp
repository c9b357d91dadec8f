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

struct CapturedGraph::State {
  std::vector<ir::UOp> variables;
  std::unique_ptr<ReplayStrategy> strategy;
  const SegmentedGraph* segmented = nullptr;  // if that is the strategy
  std::vector<BoundCall> bounded;             // with TUFF_CHECK_OOB: what replays report
  std::vector<bool> written;                  // by input
  std::vector<uint64_t> addresses, sizes;     // of one replay's inputs
  std::vector<int64_t> values;                // the variables', then the inputs' sizes
  ReplayStats stats;

  // Of inputs others may be given than those that it was captured with; the rest replays write at
  // any time.
  void note_written(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs) {
    written.resize(inputs.size());
    for (const BoundCall& c : calls)
      each_buffer(c, [&](const Ref<Buffer>& b, bool, bool is_written) {
        if (!is_written) return;
        const int32_t slot = input_slot(*b, inputs);
        slot < 0 ? b->known_integers().close() : void(written[size_t(slot)] = true);
      });
  }

  void choose_strategy(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                       const CaptureOptions& options) {
    const SegmentPlan plan = plan_segments(calls, inputs, options.copy_queue_bytes);
    if (plan.simple() || !plan.patchable()) {
      strategy = std::make_unique<Runs>(calls, inputs, variables);
    } else {
      auto graph =
          std::make_unique<SegmentedGraph>(calls, inputs, plan, variables, options.host_waits);
      segmented = graph.get();
      strategy = std::move(graph);
    }
    if (validating())
      strategy = std::make_unique<ValidatedCalls>(
          std::vector<BoundCall>(calls.begin(), calls.end()), inputs, variables,
          std::move(strategy));
  }

  [[gnu::noinline]] static void refuse_read_only(size_t input) {
    fail<InvalidArgument>(
        "replay: the memory of input {} is read-only, and the captured function writes it: give "
        "it a copy, (x + 0).realize()",
        input);
  }

  static void require_written(Buffer& b, size_t input) {
    if (b.read_only()) [[unlikely]]
      refuse_read_only(input);
    b.known_integers().forget();
  }

  [[gnu::noinline]] void require_values(std::span<const int64_t> values) const {
    if (values.size() != variables.size())
      fail<InvalidArgument>("replay: {} values given for {} variables", values.size(),
                            variables.size());
    for (size_t i = 0; i < values.size(); i++) {
      const auto& v = variables[i]->get<ir::VariableArg>();
      if (values[i] < v.min || values[i] > v.max)
        fail<InvalidArgument>("replay: variable {} = {} is outside its bounds {}..{}", v.name,
                              values[i], v.min, v.max);
    }
  }
};

CapturedGraph::CapturedGraph(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                             std::vector<ir::UOp> variables, const CaptureOptions& options)
    : state_(std::make_unique<State>()) {
  State& st = *state_;
  st.variables = std::move(variables);
  st.addresses.resize(inputs.size());
  st.sizes.resize(inputs.size());
  st.values.resize(st.variables.size() + inputs.size());
  st.note_written(calls, inputs);
  st.choose_strategy(calls, inputs, options);
  if (checking_bounds() && !validating()) st.bounded = std::move(calls);
}

// The device may still run the last replay; the graphs wait for that themselves.
CapturedGraph::~CapturedGraph() = default;

void CapturedGraph::replay(std::span<const Ref<Buffer>> inputs, std::span<const int64_t> values) {
  State& st = *state_;
  TUFF_CHECK(inputs.size() == st.addresses.size(), "{} inputs given, captured with {}",
             inputs.size(), st.addresses.size());
  if (!st.variables.empty() || !values.empty()) st.require_values(values);
  const ProfiledScope scope("replay");
  std::copy(values.begin(), values.end(), st.values.begin());
  for (size_t i = 0; i < inputs.size(); i++) {
    if (st.written[i]) State::require_written(*inputs[i], i);
    st.addresses[i] = inputs[i]->span().address();
    st.sizes[i] = inputs[i]->size_bytes();
    st.values[values.size() + i] = int64_t(st.sizes[i]);
  }
  st.strategy->replay({inputs, st.addresses, st.sizes, st.values});
  counters().replays++;
  if (!st.bounded.empty()) check_bounds(st.bounded);
}

const ReplayStats& CapturedGraph::stats() const {
  return state_->stats = state_->strategy->stats();
}
std::vector<const hcq::CommandGraph*> CapturedGraph::graphs() const {
  return state_->strategy->graphs();
}
const SegmentedGraph* CapturedGraph::segmented() const { return state_->segmented; }

}  // namespace tuff::engine

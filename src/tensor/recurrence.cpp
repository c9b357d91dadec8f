// scan(): a step's graph, made a loop (ir/loop.h).
#include <tuff/scan.h>

#include "base/check.h"
#include "ir/batch.h"
#include "ir/extents.h"
#include "ir/loop.h"
#include "ir/rule.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff {

using detail::uop;
using ir::UOp;

namespace {

// Each step's calls are a part of the schedule: some hundred bytes for each.
constexpr int64_t kMaxSteps = 1 << 20;

// Rows and states lie in memory that has room for the largest of them.
void require_dense(const std::string& what, const Sizes& sizes) {
  if (!ir::is_dense(detail::shape_of(sizes)))
    fail<Unsupported>(
        "scan: {} is {}, of which more than the first extent varies ({}): permute() it, or pad it "
        "to the most there are",
        what, detail::text(sizes), detail::varying_text(sizes));
}

Size steps_of(const Tensors& sequences, const ScanOptions& options) {
  Size steps = options.steps;
  for (size_t i = 0; i < sequences.size(); i++) {
    const Tensor& x = sequences[i];
    if (x.dim() == 0) fail<ShapeError>("scan: sequence {} has no axis of steps", i);
    const Sizes sizes = x.sizes();
    require_dense(fmt::format("a row of sequence {}", i), {sizes.begin() + 1, sizes.end()});
    if (steps.max() >= 0 && !detail::same(sizes[0], steps))
      fail<ShapeError>("scan: sequence {} has {} rows for {} steps", i, sizes[0].str(),
                       steps.str());
    steps = sizes[0];
  }
  if (steps.max() < 0)
    fail<InvalidArgument>("scan: without sequences say how many steps there are");
  if (steps.max() == 0) fail<ShapeError>("scan: there are no steps");
  if (steps.max() > kMaxSteps)
    fail<Unsupported>("scan: {} steps, at most {}: go on from its last states with another one",
                      steps.max(), kMaxSteps);
  return steps;
}

void check_initial(const Tensors& initial, const Tensors& sequences) {
  if (initial.empty()) fail<InvalidArgument>("scan: there is no state: use vmap()");
  for (size_t k = 0; k < initial.size(); k++) {
    require_dense(fmt::format("state {}", k), initial[k].sizes());
    if (initial[k].dtype() != initial[0].dtype())
      fail<InvalidArgument>("scan: state 0 is {}, state {} is {}: cast one", name(initial[0].dtype()),
                            k, name(initial[k].dtype()));
    if (initial[k].numel().max() == 0) fail<ShapeError>("scan: state {} has no elements", k);
  }
  for (const Tensors* list : {&initial, &sequences})
    for (const Tensor& t : *list) detail::require_same_device("scan", initial[0], t);
}

void check_next(const Tensors& initial, const Tensors& next) {
  if (next.size() != initial.size())
    fail<InvalidArgument>("scan: a step gives {} states, there are {}", next.size(), initial.size());
  for (size_t k = 0; k < next.size(); k++) {
    if (!detail::same(next[k].sizes(), initial[k].sizes()))
      fail<ShapeError>("scan: state {} is {}, after a step {}", k, detail::text(initial[k].sizes()),
                       detail::text(next[k].sizes()));
    if (next[k].dtype() != initial[k].dtype())
      fail<InvalidArgument>("scan: state {} is {}, after a step {}: cast it", k,
                            name(initial[k].dtype()), name(next[k].dtype()));
    detail::require_same_device("scan", initial[k], next[k]);
  }
}

Tensors stand_ins(const Tensors& values, bool rows) {
  Tensors out;
  for (const Tensor& v : values) {
    Sizes sizes = v.sizes();
    if (rows) sizes.erase(sizes.begin());
    out.push_back(detail::stand_in(v.dtype(), sizes, v.device()));
  }
  return out;
}

std::vector<UOp> nodes(const Tensors& tensors) {
  std::vector<UOp> out;
  for (const Tensor& t : tensors) out.push_back(uop(t));
  return out;
}

// For all steps: of the states before and after each, as far as they need no more.
std::vector<UOp> outputs_of(const ir::LoopSpec& spec, const UOp& loop,
                            const std::vector<UOp>& outputs) {
  ir::UOpMap<UOp> after, all;
  for (size_t k = 0; k < spec.states.size(); k++) {
    const UOp& next = spec.next[k];
    const UOp stored = ir::place_like(spec.states[k]);
    all.emplace(stored, ir::states_after(loop, k));
    all.emplace(spec.states[k], ir::states_before(loop, k));
    after.emplace(next, stored);
  }
  for (size_t i = 0; i < spec.rows.size(); i++) all.emplace(spec.rows[i], spec.sequences[i]);
  return ir::batched(ir::substitute(outputs, after), spec.steps, all);
}

}  // namespace

Scanned scan(const ScanStep& f, const Tensors& initial, const Tensors& sequences,
             const ScanOptions& options) {
  check_initial(initial, sequences);
  const Size steps = steps_of(sequences, options);
  const Tensors states = stand_ins(initial, false), rows = stand_ins(sequences, true);
  const Scanned step = f(detail::same_values(states), detail::same_values(rows));
  check_next(initial, step.states);
  for (const Tensor& y : step.outputs) {
    detail::require_same_device("scan", initial[0], y);
  }
  const detail::BuildGuard section;
  const ir::LoopSpec spec{.states = nodes(states),
                          .initial = nodes(initial),
                          .next = nodes(step.states),
                          .rows = nodes(rows),
                          .sequences = nodes(sequences),
                          .steps = detail::dim_of(steps),
                          .reverse = options.reverse,
                          .ahead = options.ahead,
                          .device = initial[0].device()};
  const UOp loop = ir::loop(spec);
  Scanned out;
  for (size_t k = 0; k < initial.size(); k++)
    out.states.push_back(detail::derive(initial[k], ir::last_state(loop, k)));
  for (const UOp& y : outputs_of(spec, loop, nodes(step.outputs)))
    out.outputs.push_back(detail::derive(initial[0], y));
  return out;
}

}  // namespace tuff

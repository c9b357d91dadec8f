// Orders (sort(), argsort(), topk(), median() ...) as TopK, argmax() and argmin() as ArgMax and
// ArgMin, running sums as CumSum. What was sorted is where its bits are taken, what was compared or
// added stands beside a counter. Built again, an equal order is a proof.
#include <algorithm>
#include <unordered_set>

#include "onnx/exporter.h"
#include "tensor/impl.h"
#include "tensor/order.h"

namespace tuff::onnx {
namespace {

using ir::Op;
using ir::UOp;
using Given = std::span<const Exported>;

constexpr size_t kFew = 80;  // nodes below a result

// What may have been sorted: what the integers below are the bits of.
std::vector<UOp> sortable_below(const UOp& u) {
  std::vector<UOp> out, stack{u};
  std::unordered_set<const ir::Node*> seen;
  while (!stack.empty()) {
    const UOp n = stack.back();
    stack.pop_back();
    if (is_float(n->dtype) || !seen.insert(n.get()).second) continue;
    const bool is_key = (n->dtype == DType::U32 || n->dtype == DType::U64) &&
                        (n->op == Op::Bitcast || n->op == Op::Cast) &&
                        !n->src(0)->shape.empty();
    if (!is_key) {
      stack.insert(stack.end(), n->src().begin(), n->src().end());
      continue;
    }
    const UOp& from = n->src(0);
    // Floats of 16 bits are seen as integers first.
    out.push_back(from->op == Op::Bitcast ? from->src(0) : from);
  }
  return out;
}

// Where the first `count` elements of the last axis come from.
Tensor order_again(const UOp& x, bool descending, int64_t count) {
  const Tensor keys =
      detail::order_keys(detail::wrap(x, ir::device_of(x)), descending);
  return x->shape.back() == count ? detail::stable_order(keys)
                                  : detail::first_in_order(keys, count);
}

// Runtimes sort floats of 32 and 64 bits and integers of as many.
DType sorted_in(DType t) {
  switch (t) {
    case DType::F64:
    case DType::I64: return t;
    case DType::U32: return DType::I64;
    default: return is_float(t) ? DType::F32 : DType::I32;
  }
}

Exporter::Plan top(Exporter& e, const UOp& x, bool descending, const UOp& u) {
  return {{x}, [&e, x, descending, u](Given from) {
            const DType t = sorted_in(x->dtype);
            const Exported given = x->dtype == t ? from[0] : e.cast(from[0], t);
            const std::vector<std::string> made =
                e.nodes("TopK",
                        {e.exact(given, x->shape), e.integers({u->shape.back().value()})},
                        {attribute("largest", int64_t(descending))}, 2);
            return e.cast({made[1], u->shape, u->shape}, u->dtype);
          }};
}

// ---- positions of extremes: those that are equal to the extreme are counted from the end

UOp compared_below(const UOp& u) {
  std::vector<UOp> queue{u};
  for (size_t i = 0; i < queue.size() && queue.size() < kFew; i++) {
    if (queue[i]->op == Op::CmpEq) return queue[i];
    for (const UOp& s : queue[i]->src()) queue.push_back(s);
  }
  return {};
}

std::optional<Exporter::Plan> extreme(Exporter& e, const UOp& u) {
  if (u->op != Op::Sub || (u->dtype != DType::I32 && u->dtype != DType::I64)) return std::nullopt;
  UOp largest = u->src(1);
  while (largest->op == Op::Reshape) largest = largest->src(0);
  if (largest->op != Op::Reduce || largest->get<ir::ReduceArg>().op != Op::Max ||
      largest->get<ir::ReduceArg>().axes.size() != 1)
    return std::nullopt;
  const UOp equal = compared_below(largest->src(0));
  if (!equal) return std::nullopt;
  const int64_t axis = largest->get<ir::ReduceArg>().axes[0];
  const bool kept = u->shape.size() == largest->shape.size();
  for (const UOp& x : equal->src()) {
    const DType t = sorted_in(x->dtype);
    if (t == DType::I64 || x->dtype == DType::U64 || x->shape.size() != largest->shape.size())
      continue;
    const Tensor given = detail::wrap(x, ir::device_of(u));
    const bool is_max = e.is(given.argmax(axis, kept), u);
    if (!is_max && !e.is(given.argmin(axis, kept), u)) continue;
    return Exporter::Plan{{x}, [&e, x, t, is_max, axis, kept, u](Given from) {
                            const Exported in = x->dtype == t ? from[0] : e.cast(from[0], t);
                            const std::string at =
                                e.node(is_max ? "ArgMax" : "ArgMin", {e.exact(in, x->shape)},
                                       {attribute("axis", axis),
                                        attribute("keepdims", int64_t(kept))});
                            return e.cast({at, u->shape, u->shape}, u->dtype);
                          }};
  }
  return std::nullopt;
}

// ---- running sums

// What has the node's shape a few steps below it, beside a counter; none where there is no counter.
std::vector<UOp> counted_below(const UOp& u) {
  std::vector<UOp> out, queue{u};
  bool has_counter = false;
  for (size_t i = 0; i < queue.size() && queue.size() < kFew; i++) {
    has_counter = has_counter || queue[i]->op == Op::Iota;
    if (queue[i]->shape == u->shape && queue[i]->dtype == u->dtype && i > 0)
      out.push_back(queue[i]);
    for (const UOp& s : queue[i]->src())
      if (std::ranges::find(queue, s) == queue.end()) queue.push_back(s);
  }
  if (!has_counter) out.clear();
  return out;
}

std::optional<Exporter::Plan> running_sum(Exporter& e, const UOp& u) {
  const bool is_sum = u->op == Op::Reduce && u->get<ir::ReduceArg>().op == Op::Add;
  const bool may_be = is_sum || u->op == Op::Reshape || u->op == Op::Permute;
  if (!may_be || (u->dtype != DType::F32 && u->dtype != DType::F64 && u->dtype != DType::I32 &&
                  u->dtype != DType::I64))
    return std::nullopt;
  for (const UOp& x : counted_below(u)) {
    for (size_t axis = 0; axis < u->shape.size(); axis++) {
      if (!u->shape[axis].is_const()) continue;
      const Tensor again = detail::wrap(x, ir::device_of(u)).cumsum(int64_t(axis));
      if (!e.is(again, u)) continue;
      return Exporter::Plan{{x}, [&e, x, axis](Given from) {
                              const std::string at =
                                  e.number(Scalar::of_int(DType::I64, int64_t(axis))).name;
                              return Exported{e.node("CumSum", {e.exact(from[0], x->shape), at}),
                                              x->shape, x->shape};
                            }};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Exporter::Plan> order_plan(Exporter& e, const UOp& u) {
  if (auto found = extreme(e, u)) return found;
  if (auto found = running_sum(e, u)) return found;
  const bool may_be = u->op == Op::Scatter || u->op == Op::Shrink || u->op == Op::Reshape ||
                      u->op == Op::Reduce;
  if (!may_be || u->shape.empty() || (u->dtype != DType::I32 && u->dtype != DType::I64) ||
      ir::is_symbolic(u->shape))
    return std::nullopt;
  for (const UOp& x : sortable_below(u)) {
    ir::Shape first = x->shape;
    if (ir::is_symbolic(first) || x->dtype == DType::U64 || first.size() != u->shape.size() ||
        first.back().value() < u->shape.back().value())
      continue;
    first.back() = u->shape.back();
    if (first != u->shape) continue;
    for (const bool descending : {false, true})
      if (e.is(order_again(x, descending, u->shape.back().value()), u))
        return top(e, x, descending, u);
  }
  return std::nullopt;
}

}  // namespace tuff::onnx

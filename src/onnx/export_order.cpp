// Orders (sort(), argsort(), topk(), median() ...) as TopK. Kernels look at the bits of what they
// sort, and so the graph names it: where these bits are taken. Built again, an equal order is a
// proof.
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

}  // namespace

std::optional<Exporter::Plan> order_plan(Exporter& e, const UOp& u) {
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

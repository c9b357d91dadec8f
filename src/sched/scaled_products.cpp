#include "sched/scaled_products.h"

#include <vector>

#include "ir/walk.h"

namespace tuff::sched {

using namespace ir;

namespace {

const Node* below_movement(const Node* n) {
  while (is_movement(n->op)) n = n->src(0).get();
  return n;
}

bool is_narrow(const Node* n) {
  n = below_movement(n);
  return n->op == Op::Cast && is_float(n->src(0)->dtype) && size_bytes(n->src(0)->dtype) <= 2;
}

// A factor of a product without the constants that it is multiplied by.
struct Scaled {
  UOp rest;  // empty: it is no narrow number
  std::vector<UOp> constants;
};
Scaled without_constants(const UOp& factor) {
  std::vector<const Node*> moves;
  Scaled out;
  const Node* n = factor.get();
  for (;;) {
    if (is_movement(n->op)) {
      moves.push_back(n);
      n = n->src(0).get();
      continue;
    }
    const auto constant_at = [&](size_t i) {
      return below_movement(n->src(i).get())->op == Op::Const;
    };
    const bool first = n->op == Op::Mul && constant_at(0);
    if (!first && !(n->op == Op::Mul && constant_at(1))) break;
    out.constants.emplace_back(below_movement(n->src(first ? 0 : 1).get()));
    n = n->src(first ? 1 : 0).get();
  }
  if (!is_narrow(n)) return {};
  out.rest = UOp(n);
  for (size_t i = moves.size(); i-- > 0;) {
    const UOp source[] = {out.rest};
    out.rest = with_src(UOp(moves[i]), source);
  }
  return out;
}

}  // namespace

ScaledProducts scaled_products(const UOp& sum) {
  const UOp& product = sum->src(0);
  if (sum->get<ReduceArg>().op != Op::Add || product->op != Op::Mul || !is_float(sum->dtype))
    return {};
  const Scaled x = without_constants(product->src(0)), y = without_constants(product->src(1));
  std::vector<UOp> constants = x.constants;
  constants.insert(constants.end(), y.constants.begin(), y.constants.end());
  if (!x.rest || !y.rest || constants.empty()) return {};
  UOp scale = constants[0];
  for (size_t i = 1; i < constants.size(); i++) scale = alu(Op::Mul, {scale, constants[i]});
  const UOp products = alu(Op::Mul, {x.rest, y.rest});
  return {reduce(Op::Add, products, sum->get<ReduceArg>().axes),
          expand(reshape(scale, Shape(sum->shape.size(), Dim(1))), sum->shape)};
}

}  // namespace tuff::sched

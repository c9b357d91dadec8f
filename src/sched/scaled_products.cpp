#include "sched/scaled_products.h"

#include <cmath>
#include <vector>

#include "ir/walk.h"

namespace tuff::sched {

using namespace ir;

namespace {

// One constant for all elements; null: there is none. Zeros around a constant make it a mask.
const Node* constant_below(const Node* n) {
  while (is_movement(n->op) && n->op != Op::Pad) n = n->src(0).get();
  return n->op == Op::Const ? n : nullptr;
}

bool is_narrow(const Node* n) {
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
    if (n->op != Op::Mul) break;
    const Node* first = constant_below(n->src(0).get());
    const Node* constant = first ? first : constant_below(n->src(1).get());
    if (!constant) break;
    out.constants.emplace_back(constant);
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

// Products of bf16 come close to the ends of what f32 holds: a constant far from 1 may be what
// keeps them, or another constant, inside. Infinity times a sum is not the sum of infinities.
bool are_moderate(const std::vector<UOp>& constants) {
  constexpr double kMost = 1 << 16;
  const auto is_moderate = [](double x) {
    return std::abs(x) >= 1 / kMost && std::abs(x) <= kMost;
  };
  double all = 1;
  for (const UOp& c : constants) {
    const double x = c->get<Scalar>().as_double();
    all *= x;
    if (!is_moderate(x)) return false;
  }
  return is_moderate(all);
}

}  // namespace

ScaledProducts scaled_products(const UOp& sum) {
  const UOp& product = sum->src(0);
  if (sum->get<ReduceArg>().op != Op::Add || product->op != Op::Mul || !is_float(sum->dtype))
    return {};
  const Scaled x = without_constants(product->src(0)), y = without_constants(product->src(1));
  std::vector<UOp> constants = x.constants;
  constants.insert(constants.end(), y.constants.begin(), y.constants.end());
  if (!x.rest || !y.rest || constants.empty() || !are_moderate(constants)) return {};
  UOp scale = constants[0];
  for (size_t i = 1; i < constants.size(); i++) scale = alu(Op::Mul, {scale, constants[i]});
  const UOp products = alu(Op::Mul, {x.rest, y.rest});
  return {reduce(Op::Add, products, sum->get<ReduceArg>().axes),
          expand(reshape(scale, Shape(sum->shape.size(), Dim(1))), sum->shape)};
}

}  // namespace tuff::sched

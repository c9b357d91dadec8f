// Tensor expressions that the scheduler's tests share: the building blocks of a transformer, by
// hand.
#pragma once

#include "ir/uop.h"

namespace tuff::sched::testing {

using ir::Dim;
using ir::Op;
using ir::Shape;
using ir::UOp;

inline UOp number(double v) { return ir::constant(DType::F32, v); }
inline UOp add(const UOp& a, const UOp& b) { return alu(Op::Add, {a, b}); }
inline UOp sub(const UOp& a, const UOp& b) { return alu(Op::Sub, {a, b}); }
inline UOp mul(const UOp& a, const UOp& b) { return alu(Op::Mul, {a, b}); }
inline UOp neg(const UOp& x) { return alu(Op::Neg, {x}); }
inline UOp recip(const UOp& x) { return alu(Op::Recip, {x}); }
inline UOp relu(const UOp& x) { return alu(Op::Max, {x, number(0)}); }
inline UOp exp(const UOp& x) { return alu(Op::Exp2, {mul(x, number(1.4426950408889634))}); }
inline UOp assign(const UOp& target, const UOp& value) {
  return make(Op::Assign, DType::Void, {target, value});
}
inline UOp assign(const UOp& target, const ir::Pairs& part, const UOp& value) {
  return make(Op::Assign, DType::Void, {target, value}, part);
}
inline UOp contiguous(const UOp& x) { return make(Op::Contiguous, DType::Void, {x}); }
inline UOp to_device(const UOp& x, const std::string& device) {
  return make(Op::Copy, DType::Void, {x}, ir::Placement{{device}});
}

// Leading axes of size 1, then repeated.
inline UOp broadcast(UOp x, const Shape& to) {
  Shape s(to.size() - x->shape.size(), Dim(1));
  s.insert(s.end(), x->shape.begin(), x->shape.end());
  return expand(reshape(x, s), to);
}
inline UOp matmul(const UOp& a, const UOp& b) {
  const Dim m = a->shape[0], k = a->shape[1], n = b->shape[1];
  const UOp x = expand(reshape(a, {m, Dim(1), k}), {m, n, k});
  const UOp y = expand(reshape(permute(b, {1, 0}), {Dim(1), n, k}), {m, n, k});
  return reshape(reduce(Op::Add, mul(x, y), {2}), {m, n});
}
inline UOp softmax(const UOp& x) {
  const UOp e = exp(sub(x, expand(reduce(Op::Max, x, {1}), x->shape)));
  return mul(e, expand(recip(reduce(Op::Add, e, {1})), x->shape));
}
inline UOp layer_norm(const UOp& x, const UOp& weight) {
  const UOp n = number(1.0 / double(x->shape[1].value()));
  const UOp centered = sub(x, expand(mul(reduce(Op::Add, x, {1}), n), x->shape));
  const UOp variance = mul(reduce(Op::Add, mul(centered, centered), {1}), n);
  const UOp scale = recip(alu(Op::Sqrt, {add(variance, number(1e-5))}));
  return mul(mul(centered, expand(scale, x->shape)), broadcast(weight, x->shape));
}
// (n, c, h, w) by (o, c, 3, 3), padding 1, as tensor libraries spell it: repeat, shrink, reshape,
// shrink.
inline UOp conv3x3(const UOp& image, const UOp& weight) {
  const int64_t n = image->shape[0].value(), c = image->shape[1].value(),
                h = image->shape[2].value();
  const int64_t o = weight->shape[0].value(), p = h + 2;
  auto shape = [](std::initializer_list<int64_t> v) { return Shape(v.begin(), v.end()); };
  UOp x = pad(image, {{0, 0}, {0, 0}, {1, 1}, {1, 1}});
  x = reshape(expand(reshape(x, shape({n, c, 1, p, 1, p})), shape({n, c, 4, p, 4, p})),
              shape({n, c, 4 * p, 4 * p}));
  x = shrink(x, {{0, n}, {0, c}, {0, 3 * (p + 1)}, {0, 3 * (p + 1)}});
  x = shrink(reshape(x, shape({n, c, 3, p + 1, 3, p + 1})),
             {{0, n}, {0, c}, {0, 3}, {0, h}, {0, 3}, {0, h}});
  x = permute(x, {0, 1, 3, 5, 2, 4});
  const Shape all = shape({n, o, c, h, h, 3, 3});
  const UOp left = expand(reshape(x, shape({n, 1, c, h, h, 3, 3})), all);
  const UOp right = expand(reshape(weight, shape({1, o, c, 1, 1, 3, 3})), all);
  return reduce(Op::Add, mul(left, right), {2, 5, 6});
}

}  // namespace tuff::sched::testing

#include "tensor/two_words.h"

#include "tensor/impl.h"

namespace tuff::detail {

using ir::UOp;

namespace {

Tensor masked(const Tensor& x, int lowest_bit) {
  const DType bits = size_bytes(x.dtype()) == 8   ? DType::I64
                     : size_bytes(x.dtype()) == 4 ? DType::I32
                     : size_bytes(x.dtype()) == 2 ? DType::I16
                                                  : DType::I8;
  const UOp mask = ir::constant(Scalar::of_int(bits, int64_t(uint64_t(-1) << lowest_bit)));
  const Tensor whole = x.bitcast(bits);
  return derive(whole, ir::alu(ir::Op::And, {uop(whole), mask})).bitcast(x.dtype());
}

}  // namespace

Tensor upper_half(const Tensor& x) { return masked(x, x.dtype() == DType::F64 ? 27 : 12); }
Tensor zero_of_sign(const Tensor& x) { return masked(x, row(x.dtype()).storage_bits - 1); }

TwoWords ordered_sum(const Tensor& a, const Tensor& b) {
  const Tensor sum = a + b;
  return {sum, b - (sum - a)};
}

TwoWords product(const Tensor& a, const Tensor& b) {
  const Tensor p = a * b, ah = upper_half(a), bh = upper_half(b), al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

TwoWords product(const TwoWords& a, const TwoWords& b) {
  const TwoWords p = product(a.hi, b.hi);
  return ordered_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

TwoWords product(const TwoWords& a, const Tensor& b) {
  const TwoWords p = product(a.hi, b);
  return ordered_sum(p.hi, p.lo + a.lo * b);
}

TwoWords two_words_like(const Tensor& x, long double v) {
  const double hi = x.dtype() == DType::F64 ? double(v) : double(float(v));
  return {number_like(x, hi), number_like(x, double(v - (long double)(hi)))};
}

}  // namespace tuff::detail

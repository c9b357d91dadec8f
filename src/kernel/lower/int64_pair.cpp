#include "kernel/lower/int64_pair.h"

#include "base/check.h"
#include "ir/op_table.h"
#include "kernel/lower/words.h"

namespace tuff::kernel {

using namespace ir;

namespace {

UOp as_signed(const UOp& w) { return w->is_const() ? cast(w, DType::I32) : bitcast(w, DType::I32); }
UOp as_word(const UOp& x) { return x->is_const() ? cast(x, DType::U32) : bitcast(x, DType::U32); }
// All ones where the sign bit of a word is set, else 0.
UOp sign_mask(const UOp& w) {
  return as_word(shr(as_signed(w), constant(Scalar::of_int(DType::I32, 31))));
}
UOp is_zero(const UOp& w) { return equal(w, word(0)); }
UOp logical_or(const UOp& a, const UOp& b) { return alu(Op::Or, {a, b}); }

Pair add(const Pair& a, const Pair& b) {
  const UOp lo = a.lo + b.lo;
  return {lo, a.hi + b.hi + flag(lt(lo, a.lo))};
}
Pair subtract(const Pair& a, const Pair& b) {
  return {a.lo - b.lo, a.hi - b.hi - flag(lt(a.lo, b.lo))};
}
Pair negate(const Pair& a) { return subtract(pair_const(0), a); }
Pair multiply(const Pair& a, const Pair& b) {
  return {a.lo * b.lo, multiply_high(a.lo, b.lo) + a.lo * b.hi + a.hi * b.lo};
}
Pair bitwise(Op op, const Pair& a, const Pair& b) {
  return {alu(op, {a.lo, b.lo}), alu(op, {a.hi, b.hi})};
}

// Two shifts where one by 32 would be undefined; n is below 32 in `s`, at least 32 where `far`.
Pair shift_left(const Pair& a, const UOp& n) {
  const UOp s = word_and(n, word(31)), far = lt(word(31), n), lo = shl(a.lo, s);
  const UOp carried = shr(shr(a.lo, 1), word(31) - s);
  return {where(far, word(0), lo), where(far, lo, word_or(shl(a.hi, s), carried))};
}
Pair shift_right(const Pair& a, const UOp& n, bool arithmetic) {
  const UOp s = word_and(n, word(31)), far = lt(word(31), n);
  const UOp hi = arithmetic ? as_word(alu(Op::Shr, {as_signed(a.hi), as_signed(s)})) : shr(a.hi, s);
  const UOp carried = shl(shl(a.hi, 1), word(31) - s);
  const UOp fill = arithmetic ? sign_mask(a.hi) : word(0);
  return {where(far, hi, word_or(shr(a.lo, s), carried)), where(far, fill, hi)};
}

UOp less(const Pair& a, const Pair& b, bool is_signed) {
  const UOp above = is_signed ? lt(as_signed(a.hi), as_signed(b.hi)) : lt(a.hi, b.hi);
  return logical_or(above, logical_and(equal(a.hi, b.hi), lt(a.lo, b.lo)));
}
UOp equals(const Pair& a, const Pair& b) {
  return logical_and(equal(a.hi, b.hi), equal(a.lo, b.lo));
}
Pair magnitude(const Pair& a) {
  const UOp m = sign_mask(a.hi);
  const Pair mask{m, m};
  return subtract(bitwise(Op::Xor, a, mask), mask);
}

// x shifted left until its top bit is set, and by how much; 0 stays 0.
struct Normalized {
  UOp value, shift;
};
Normalized normalize(const UOp& x) {
  Normalized out{x, word(0)};
  for (int n : {16, 8, 4, 2, 1}) {
    const UOp small = lt(out.value, word(uint64_t(1) << (32 - n)));
    out.value = where(small, shl(out.value, n), out.value);
    out.shift = out.shift + where(small, word(uint64_t(n)), word(0));
  }
  return out;
}

UOp quotient(const UOp& a, const UOp& b) { return make(Op::IDiv, DType::U32, {a, b}); }

// One digit of base 2^16: (high:next) / v for v with its top bit set and high < v. The estimate by
// v's upper half is at most two too large (Knuth, The Art of Computer Programming 2, 4.3.1).
UOp quotient_digit(const UOp& high, const UOp& next, const UOp& v) {
  const UOp upper = shr(v, 16), lower = word_and(v, word(0xffff));
  UOp q = quotient(high, upper);
  UOp r = high - q * upper;
  for (int round = 0; round < 2; round++) {
    UOp over = logical_or(lt(word(0xffff), q), lt(shl(r, 16) + next, q * lower));
    if (round) over = logical_and(over, lt(r, word(0x10000)));
    q = q - flag(over);
    r = r + where(over, upper, word(0));
  }
  return q;
}
// (high:low) / v, one word: v has its top bit set, high < v.
UOp divide_word(const UOp& high, const UOp& low, const UOp& v) {
  const UOp upper = shr(low, 16), lower = word_and(low, word(0xffff));
  const UOp q1 = quotient_digit(high, upper, v);
  const UOp rest = shl(high, 16) + upper - q1 * v;
  return shl(q1, 16) + quotient_digit(rest, lower, v);
}

// Unsigned u / v, v > 0. A divisor of one word: two steps of long division. A wider one: the
// quotient of both halved by v's upper word, which is at most one too large after a decrement
// (Warren, Hacker's Delight, 9-5). Both end in one divide_word.
Pair divide(const Pair& u, const Pair& v) {
  const UOp narrow = is_zero(v.hi);
  const UOp q_high = quotient(u.hi, where(narrow, v.lo, word(1)));
  const UOp rest = u.hi - q_high * v.lo;
  const Normalized d = normalize(where(narrow, v.lo, v.hi));
  const UOp behind = word(31) - d.shift;
  const UOp divisor = where(narrow, d.value, word_or(d.value, shr(shr(v.lo, 1), behind)));
  const UOp shifted_high = word_or(shl(rest, d.shift), shr(shr(u.lo, 1), behind));
  const Pair half = shift_right(u, word(1), false);
  const UOp q = divide_word(where(narrow, shifted_high, half.hi),
                            where(narrow, shl(u.lo, d.shift), half.lo), divisor);
  UOp q_wide = shr(q, behind);
  q_wide = q_wide - flag(logical_not(is_zero(q_wide)));
  const Pair left = subtract(u, multiply({q_wide, word(0)}, v));
  q_wide = q_wide + flag(logical_not(less(left, v, false)));
  return {where(narrow, q, q_wide), where(narrow, q_high, word(0))};
}

// Truncated toward zero; the remainder has the sign of a.
Pair divide(Op op, DType t, const Pair& a, const Pair& b) {
  const bool has_sign = is_signed(t);
  const Pair u = has_sign ? magnitude(a) : a, v = has_sign ? magnitude(b) : b;
  const Pair q = divide(u, v);
  const Pair y = op == Op::IDiv ? q : subtract(u, multiply(q, v));
  if (!has_sign) return y;
  const UOp m = sign_mask(op == Op::IDiv ? alu(Op::Xor, {a.hi, b.hi}) : a.hi);
  const Pair mask{m, m};
  return subtract(bitwise(Op::Xor, y, mask), mask);
}

using InWords = Pair (*)(DType t, std::span<const Pair> x);
constexpr OpTable<InWords> kInWords{{
    {Op::Add, [](auto, auto x) { return add(x[0], x[1]); }},
    {Op::Sub, [](auto, auto x) { return subtract(x[0], x[1]); }},
    {Op::Mul, [](auto, auto x) { return multiply(x[0], x[1]); }},
    {Op::MulAdd, [](auto, auto x) { return add(multiply(x[0], x[1]), x[2]); }},
    {Op::Neg, [](auto, auto x) { return negate(x[0]); }},
    {Op::And, [](auto, auto x) { return bitwise(Op::And, x[0], x[1]); }},
    {Op::Or, [](auto, auto x) { return bitwise(Op::Or, x[0], x[1]); }},
    {Op::Xor, [](auto, auto x) { return bitwise(Op::Xor, x[0], x[1]); }},
    {Op::Shl, [](auto, auto x) { return shift_left(x[0], x[1].lo); }},
    {Op::Shr, [](auto t, auto x) { return shift_right(x[0], x[1].lo, is_signed(t)); }},
    {Op::Max, [](auto t, auto x) { return pair_where(less(x[0], x[1], is_signed(t)), x[1], x[0]); }},
    {Op::IDiv, [](auto t, auto x) { return divide(Op::IDiv, t, x[0], x[1]); }},
    {Op::IMod, [](auto t, auto x) { return divide(Op::IMod, t, x[0], x[1]); }},
}};
static_assert(kInWords.covers([](Op op) {
  return is_rendered(op) && takes_integers(op) && row(op).rule == DTypeRule::Same;
}), "kernel/lower/int64_pair.cpp: kInWords lacks an op of integers");

// ---- conversions ----------------------------------------------------------------------------

// |x| < 2^64 toward zero: the significand shifted by the exponent.
Pair from_f32(const UOp& x) {
  const UOp bits = bitcast(x, DType::U32);
  const UOp exponent = word_and(shr(bits, 23), word(0xff));  // biased by 127
  const UOp significand = word_or(word_and(bits, word(0x7fffff)), word(0x800000));
  const UOp whole = logical_not(lt(exponent, word(127 + 23)));
  const UOp down = word(127 + 23) - exponent;
  const UOp small = where(lt(word(31), down), word(0), shr(significand, word_and(down, word(31))));
  const Pair large =
      shift_left({significand, word(0)}, word_and(exponent - word(127 + 23), word(63)));
  const Pair m = pair_where(whole, large, {small, word(0)});
  const UOp s = sign_mask(bits);
  const Pair mask{s, s};
  return subtract(bitwise(Op::Xor, m, mask), mask);
}

// Exact: both words of |x| are numbers of at most 32 bits.
Pair from_f64(const UOp& x) {
  const UOp zero = constant(DType::F64, 0);
  const UOp negative = lt(x, zero);
  const UOp m = alu(Op::Trunc, {where(negative, zero - x, x)});
  const UOp hi = make(Op::Cast, DType::U32, {m * constant(DType::F64, 0x1p-32)});
  const UOp lo = m - make(Op::Cast, DType::F64, {hi}) * constant(DType::F64, 0x1p32);
  const Pair y{make(Op::Cast, DType::U32, {lo}), hi};
  return pair_where(negative, negate(y), y);
}

// The bits of the nearest f32: the normalized significand, rounded by its rest. A carry out of it
// raises the exponent, as it has to.
UOp f32_bits(const Pair& m) {
  const UOp narrow = is_zero(m.hi);
  const Normalized top = normalize(where(narrow, m.lo, m.hi));
  const UOp behind = word(31) - top.shift;
  const UOp hi = where(narrow, top.value, word_or(top.value, shr(shr(m.lo, 1), behind)));
  const UOp lo = where(narrow, word(0), shl(m.lo, top.shift));
  const UOp kept = shr(hi, 8), half = word_and(shr(hi, 7), word(1));
  const UOp rest = word_or(word_and(hi, word(0x7f)), lo);
  const UOp up = word_and(half, word_or(flag(logical_not(is_zero(rest))), word_and(kept, word(1))));
  const UOp exponent = where(narrow, word(127 + 31), word(127 + 63)) - top.shift;
  // kept has the implicit bit set, which adds one to the exponent.
  const UOp bits = shl(exponent - word(1), 23) + kept + up;
  return where(is_zero(word_or(m.hi, m.lo)), word(0), bits);
}

UOp to_f32(const Pair& x, DType from) {
  const bool has_sign = is_signed(from);
  const UOp bits = f32_bits(has_sign ? magnitude(x) : x);
  const UOp sign = has_sign ? word_and(x.hi, word(0x80000000)) : word(0);
  return bitcast(word_or(bits, sign), DType::F32);
}
// Both words are exact, their sum rounds once.
UOp to_f64(const Pair& x, DType from) {
  const UOp hi = make(Op::Cast, DType::F64, {is_signed(from) ? as_signed(x.hi) : x.hi});
  return hi * constant(DType::F64, 0x1p32) + make(Op::Cast, DType::F64, {x.lo});
}

}  // namespace

Pair pair_const(uint64_t v) { return {word(uint32_t(v)), word(v >> 32)}; }

Pair pair_where(const UOp& condition, const Pair& a, const Pair& b) {
  return {where(condition, a.lo, b.lo), where(condition, a.hi, b.hi)};
}

Pair pair_alu(Op op, DType t, std::span<const Pair> x) {
  const InWords* f = kInWords.find(op);
  if (!f) fail<Unsupported>("{} of {} has no form in 32-bit words", ir::name(op), name(t));
  return (*f)(t, x);
}

UOp pair_compare(Op op, DType t, const Pair& a, const Pair& b) {
  if (op == Op::CmpLt) return less(a, b, is_signed(t));
  return op == Op::CmpEq ? equals(a, b) : logical_not(equals(a, b));
}

Pair pair_from(const UOp& x, DType t) {
  const DType from = x->dtype;
  if (from == DType::F64) return from_f64(x);
  if (is_float(from)) return from_f32(cast(x, DType::F32));
  if (is_signed(from) || from == DType::Index) {
    const UOp lo = as_word(cast(x, DType::I32));
    return {lo, sign_mask(lo)};
  }
  TUFF_CHECK(from == DType::Bool || is_unsigned(from), "cast of {} to {}", name(from), name(t));
  return {cast(x, DType::U32), word(0)};
}

UOp pair_to(const Pair& x, DType from, DType to) {
  switch (to) {
    case DType::F64: return to_f64(x, from);
    case DType::F32: return to_f32(x, from);
    case DType::F8E4M3FN:
    case DType::F8E5M2:
    case DType::F16: return cast(to_f32(x, from), to);  // exact below 2^24, beyond them above it
    case DType::Bool: return logical_not(is_zero(word_or(x.lo, x.hi)));
    case DType::Index: return cast(as_signed(x.lo), to);
    case DType::I32: return as_signed(x.lo);
    default: return cast(x.lo, to);
  }
}

}  // namespace tuff::kernel

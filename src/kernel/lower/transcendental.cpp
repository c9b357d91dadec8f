#include "kernel/lower/transcendental.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "kernel/lower/words.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// The layout of one float type and the integer that holds its bits.
struct Format {
  DType t, bits;
  int mantissa, bias;
  UOp number(double v) const { return constant(t, v); }
  UOp integer(int64_t v) const { return constant(Scalar::of_int(bits, v)); }
  UOp as_bits(const UOp& x) const { return bitcast(x, bits); }
  UOp as_float(const UOp& x) const { return bitcast(x, t); }
  UOp power_of_two(const UOp& e) const {
    return as_float(alu(Op::Shl, {e + integer(bias), integer(mantissa)}));
  }
  int64_t infinity() const { return ((int64_t(1) << (t == DType::F32 ? 8 : 11)) - 1) << mantissa; }
  int64_t magnitude() const { return t == DType::F32 ? 0x7fffffff : 0x7fffffffffffffff; }
  double nan() const { return std::numeric_limits<double>::quiet_NaN(); }
};
Format format_of(DType t) {
  TUFF_CHECK(t == DType::F32 || t == DType::F64, "no polynomial for {}", tuff::name(t));
  return t == DType::F32 ? Format{t, DType::I32, 23, 127} : Format{t, DType::I64, 52, 1023};
}

UOp abs_bits(const Format& f, const UOp& x) {
  return alu(Op::And, {f.as_bits(x), f.integer(f.magnitude())});
}

// c[0] + x*(c[1] + x*(...))
UOp horner(const Format& f, const UOp& x, const std::vector<double>& c, bool fused = false) {
  UOp sum = f.number(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) {
    const UOp term = f.number(c[i]);
    sum = fused ? make(Op::MulAdd, f.t, {sum, x, term}) : sum * x + term;
  }
  return sum;
}

UOp round_nearest(const Format& f, const UOp& x) {
  const UOp half = where(lt(x, f.number(0)), f.number(-0.5), f.number(0.5));
  return alu(Op::Trunc, {x + half});
}

}  // namespace

UOp is_nan(const UOp& x) {
  const Format f = format_of(x->dtype);
  return lt(f.integer(f.infinity()), abs_bits(f, x));
}

namespace {

// y times 2^n, of a number whose lower bits hold n twice biased.
UOp biased_scaled(const Format& f, const UOp& y, const UOp& bits) {
  const UOp half = alu(Op::Shr, {bits, f.integer(1)});
  const auto scale = [&](const UOp& e) {
    return f.as_float(alu(Op::Shl, {e, f.integer(f.mantissa)}));
  };
  return y * scale(half) * scale(bits - half);
}
// y times 2^n of a whole number n.
UOp scaled(const Format& f, const UOp& y, const UOp& n) {
  const UOp e = cast(n, f.bits);
  const UOp e1 = alu(Op::Shr, {e, f.integer(1)});
  return y * f.power_of_two(e1) * f.power_of_two(e - e1);
}

// f32: x plus a number whose last bit counts ones is rounded, to nearest even; the sum's bits then
// hold n twice biased, and half of them are a scale each. A NaN stays one through all of it. What is
// far below has both scales 0, as a masked score has: CPUs take a hundred cycles for a product that
// is too small, and none for one of zero.
UOp single_exp2(const UOp& x, bool fused) {
  const Format f = format_of(x->dtype);
  const UOp low = f.number(-2 * f.bias), high = f.number(129);
  const UOp shift = f.number(0x1.8p23 + 2 * f.bias);
  UOp c = where(lt(high, x), high, x);
  c = where(lt(c, low), low, c);
  const UOp sum = c + shift;
  const UOp r = c - (sum - shift);
  // From the Chebyshev series of (2^r - 1) / r: within 0.15 ULP.
  const std::vector<double> near{
      1, 0x1.62e43p-1, 0x1.ebfbep-3, 0x1.c6af6cp-5, 0x1.3b2a1cp-7, 0x1.5f0896p-10, 0x1.444004p-13};
  return biased_scaled(f, horner(f, r, near, fused), f.as_bits(sum));
}

}  // namespace

// 2^x = 2^n 2^r, |r| <= 1/2; a polynomial for 2^r; the scale in two steps, so that subnormal
// results round once and the exponents stay in range.
UOp exp2_by_polynomial(const UOp& x, bool fused) {
  if (x->dtype == DType::F32) {
    const UOp y = single_exp2(x, fused);
    return fused ? y : where(is_nan(x), x, y);  // not every device keeps NaNs
  }
  const Format f = format_of(x->dtype);
  UOp c = where(lt(x, f.number(1025)), x, f.number(1025));
  c = where(lt(c, f.number(-1076)), f.number(-1076), c);
  const UOp n = round_nearest(f, c);
  const UOp r = c - n;
  std::vector<double> series;
  double term = 1;
  for (int i = 0; i <= 13; i++) {
    series.push_back(term);
    term *= std::numbers::ln2 / (i + 1);
  }
  return where(is_nan(x), x, scaled(f, horner(f, r, series, fused), n));
}

namespace {

// The part of ln 2 of which whole multiples of the size that an exponent has are exact, and the
// rest.
struct Ln2 {
  double upper, rest;
};
constexpr Ln2 kLn2F32{0x1.62e4p-1, 0x1.7f7d1cp-20};
constexpr Ln2 kLn2F64{0x1.62e42fefa3p-1, 0x1.3de6af278ece6p-42};

// n ln 2 off x (Cody and Waite); what is left is exact but for the last step's rounding.
UOp less_multiple_of_ln2(const Format& f, const UOp& x, const UOp& n, const Ln2& ln2, bool fused) {
  const auto less = [&](const UOp& from, double part) {
    return fused ? make(Op::MulAdd, f.t, {n, f.number(-part), from}) : from - n * f.number(part);
  };
  return less(less(x, ln2.upper), ln2.rest);
}

// As single_exp2, with the argument's multiple of ln 2 taken off in two parts.
UOp single_exp(const UOp& x, bool fused) {
  const Format f = format_of(x->dtype);
  const UOp low = f.number(-176), high = f.number(89), shift = f.number(0x1.8p23 + 2 * f.bias);
  UOp c = where(lt(high, x), high, x);
  c = where(lt(c, low), low, c);
  const UOp sum = c * f.number(std::numbers::log2e) + shift;
  const UOp r = less_multiple_of_ln2(f, c, sum - shift, kLn2F32, fused);
  // (e^r - 1 - r) / r^2 interpolated at Chebyshev nodes of [-0.347, 0.347]: within 0.18 ULP.
  const std::vector<double> near{1,             1,             0.5,           0x1.5554dcp-3,
                                 0x1.555518p-5, 0x1.120be2p-7, 0x1.6d117cp-10};
  return biased_scaled(f, horner(f, r, near, fused), f.as_bits(sum));
}

UOp double_exp(const UOp& x, bool fused) {
  const Format f = format_of(x->dtype);
  UOp c = where(lt(x, f.number(710)), x, f.number(710));
  c = where(lt(c, f.number(-746)), f.number(-746), c);
  const UOp n = round_nearest(f, c * f.number(std::numbers::log2e));
  const UOp r = less_multiple_of_ln2(f, c, n, kLn2F64, fused);
  std::vector<double> series;
  double term = 1;
  for (int i = 0; i <= 13; i++) {
    series.push_back(term);
    term /= i + 1;
  }
  return scaled(f, horner(f, r, series, fused), n);
}

}  // namespace

UOp exp_by_polynomial(const UOp& x, bool fused) {
  return where(is_nan(x), x, x->dtype == DType::F32 ? single_exp(x, fused) : double_exp(x, fused));
}

// 1/d for d in [low, high], by Newton's iteration from the line with the least relative error:
// additions and products alone, which every device rounds alike.
UOp reciprocal_within(const Format& f, const UOp& d, double low, double high, int iterations) {
  const double slope = 2 / (low * high + (low + high) * (low + high) / 4);
  UOp r = f.number(slope * (low + high)) - d * f.number(slope);
  for (int i = 0; i < iterations; i++) r = r * (f.number(2) - d * r);
  return r;
}

// x = 2^e m, m in [sqrt(1/2), sqrt(2)); with g = m-1 and s = g/(2+g), log(1+g) = g - s(g - R(s^2)),
// whose leading term is exact (fdlibm's e_log.c arrangement without its split of the series).
UOp log2_by_polynomial(const UOp& x) {
  const Format f = format_of(x->dtype);
  const bool single = x->dtype == DType::F32;
  // A subnormal's bits as an integer are what its significand counts: converted they are a normal
  // number, whatever the device does with subnormals.
  const int lift = single ? 149 : 1074;
  const UOp tiny = lt(f.as_bits(x), f.integer(int64_t(1) << f.mantissa));
  const UOp bits = f.as_bits(where(tiny, cast(f.as_bits(x), f.t), x));
  const int64_t sqrt_half = single ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
  const UOp k = alu(Op::Shr, {bits - f.integer(sqrt_half), f.integer(f.mantissa)});
  const UOp m = f.as_float(bits - alu(Op::Shl, {k, f.integer(f.mantissa)}));
  const UOp e = cast(k - where(tiny, f.integer(lift), f.integer(0)), f.t);
  const UOp g = m - f.number(1);
  const double root = std::numbers::sqrt2;
  const UOp s = g * reciprocal_within(f, g + f.number(2), 1 + root / 2, 1 + root, single ? 2 : 4);
  std::vector<double> series;
  for (int i = 1; i <= (single ? 5 : 10); i++) series.push_back(2.0 / (2 * i + 1));
  const UOp s2 = s * s;
  const UOp r = s2 * horner(f, s2, series);
  const UOp half_square = g * g * f.number(0.5);
  // log(1+g) = g - (h - s(h + r)), h = g*g/2. Times log2(e) = 1 + c: the 1 costs no rounding.
  const UOp rest = s * (half_square + r) - half_square;
  const UOp small =
      (rest * f.number(std::numbers::log2e - 1) + g * f.number(std::numbers::log2e - 1)) + rest;
  UOp y = (small + g) + e;
  const UOp magnitude = abs_bits(f, x);
  y = where(lt(f.as_bits(x), f.integer(0)), f.number(f.nan()), y);
  const UOp minus_infinity = f.number(-std::numeric_limits<double>::infinity());
  y = where(equal(magnitude, f.integer(0)), minus_infinity, y);
  const UOp infinite = equal(f.as_bits(x), f.integer(f.infinity()));
  return where(infinite, x, where(is_nan(x), x, y));
}

// Newton's iteration on 1/sqrt(x) from the exponent's half, and one correction of x/sqrt(x).
UOp sqrt_by_newton(const UOp& x) {
  const Format f = format_of(x->dtype);
  const bool single = x->dtype == DType::F32;
  const UOp tiny = lt(x, f.number(single ? 0x1p-100 : 0x1p-900));
  const UOp up = f.number(single ? 0x1p64 : 0x1p200), down = f.number(single ? 0x1p-32 : 0x1p-100);
  const UOp v = where(tiny, x * up, x);
  const int64_t magic = single ? 0x5f3759df : 0x5fe6eb50c7b537a9;
  UOp y = f.as_float(f.integer(magic) - alu(Op::Shr, {f.as_bits(v), f.integer(1)}));
  for (int i = 0; i < (single ? 3 : 4); i++) y = y * (f.number(1.5) - v * f.number(0.5) * y * y);
  UOp root = v * y;
  root = root + (v - root * root) * y * f.number(0.5);
  root = where(tiny, root * down, root);
  const UOp magnitude = abs_bits(f, x);
  const UOp same =
      alu(Op::Or, {equal(magnitude, f.integer(0)), ge(f.as_bits(x), f.integer(f.infinity()))});
  const UOp negative = lt(f.as_bits(x), f.integer(0));
  return where(same, x, where(negative, f.number(f.nan()), root));
}

namespace {

struct Reduced {
  UOp quadrant;  // integer of the format, modulo 4
  UOp angle;     // |angle| <= pi/4 and a little
};

// Cody and Waite: x - q*pi/2 with pi/2 in parts short enough that q times a part is exact.
Reduced reduce_by_parts(const Format& f, const UOp& x, std::span<const double> parts) {
  const UOp q = round_nearest(f, x * f.number(2 / std::numbers::pi));
  UOp r = x;
  for (double part : parts) r = r - q * f.number(part);
  return {cast(q, f.bits), r};
}

// A word of 32 bits from a bit of `hi` on. Two shifts: one by 32 would be undefined.
UOp window(const UOp& hi, const UOp& lo, const UOp& shift) {
  return word_or(alu(Op::Shl, {hi, shift}), alu(Op::Shr, {shr(lo, 1), word(31) - shift}));
}

// Payne and Hanek for f32 in 32-bit words: the significand times the 96 bits of 2/pi that matter
// for the exponent; what is left of the binary point modulo 4 is the quadrant. Valid for |x| >= 1.
Reduced reduce_by_table(const UOp& x) {
  static constexpr std::array<uint32_t, 7> two_over_pi = {
      0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041};
  const UOp bits = alu(Op::And, {bitcast(x, DType::U32), word(0x7fffffff)});
  const UOp e = shr(bits, 23) - word(127);  // 0..127
  const UOp significand =
      shl(alu(Op::Or, {alu(Op::And, {bits, word(0x7fffff)}), word(0x800000)}), 8);
  // x = significand * 2^(e-31). Words of 2/pi from bit e-1 on, so that the product's top two bits
  // modulo 2^96 are the quadrant. The table starts with the 32 zero bits before the point.
  const UOp position = e - word(1);
  const UOp first = shr(position, 5), shift = alu(Op::And, {position, word(31)});
  auto table = [&](int i) {
    UOp v = word(0);
    for (int w = 4; w >= 0; w--) {
      if (w + i < 7) v = where(equal(first, word(w)), word(two_over_pi[w + i]), v);
    }
    return v;
  };
  const UOp t0 = table(0), t1 = table(1), t2 = table(2), t3 = table(3);
  const UOp w0 = window(t0, t1, shift), w1 = window(t1, t2, shift), w2 = window(t2, t3, shift);
  // The product modulo 2^64 in units of 2^-62 of a quadrant's quarter turn.
  const UOp low_high = multiply_high(significand, w2);
  const UOp mid_low = significand * w1;
  const UOp low = mid_low + low_high;
  const UOp high = significand * w0 + multiply_high(significand, w1) + flag(lt(low, mid_low));
  // high:low is a fixed-point number with two bits before the point; round to the nearest integer.
  const UOp quadrant = shr(high + word(0x20000000), 30);
  const UOp signed_high = high - shl(quadrant, 30);  // in [-2^29, 2^29)
  const UOp below = ge(signed_high, word(0x80000000));
  // The magnitude of the 64-bit number, so that its parts all have one sign and nothing cancels.
  const UOp no_borrow = flag(equal(low, word(0)));
  const UOp fraction =
      bitcast(where(below, alu(Op::Xor, {signed_high, word(0xffffffff)}) + no_borrow, signed_high),
              DType::I32);
  const UOp tail = where(below, word(0) - low, low);
  const Format f = format_of(DType::F32);
  // 16 upper bits times 8 bits of pi/2 are exact; everything smaller is added to that once.
  const UOp upper = alu(Op::Shl, {alu(Op::Shr, {fraction, f.integer(13)}), f.integer(13)});
  const UOp turns = cast(upper, DType::F32) * f.number(0x1p-30);
  const UOp rest = cast(fraction - upper, DType::F32) * f.number(0x1p-30) +
                   cast(tail, DType::F32) * f.number(0x1p-62);
  const double half_pi = std::numbers::pi / 2, half_pi_short = 0x1.92p+0;
  UOp angle = turns * f.number(half_pi_short) +
              (turns * f.number(half_pi - half_pi_short) + rest * f.number(half_pi));
  angle = where(below, f.number(0) - angle, angle);
  const UOp negative = lt(bitcast(x, DType::I32), f.integer(0));
  return {
      where(negative, f.integer(0) - bitcast(quadrant, DType::I32), bitcast(quadrant, DType::I32)),
      where(negative, f.number(0) - angle, angle)};
}

// 2/pi in words, after the 64 zero bits before the point.
constexpr std::array<uint32_t, 38> kTwoOverPi = {
    0,          0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08};

// Six words of 2/pi from a bit on, 0..1023, the upper first: the words by halves of what is left to
// choose from, then a shift.
std::array<UOp, 6> words_of_two_over_pi(const UOp& position) {
  std::vector<UOp> words;
  for (const uint32_t w : kTwoOverPi) words.push_back(word(w));
  for (int step = 16; step > 0; step /= 2) {
    const UOp skip = alu(Op::CmpNe, {word_and(position, word(uint64_t(step) * 32)), word(0)});
    std::vector<UOp> chosen;
    for (size_t i = 0; i < size_t(6 + step); i++)
      chosen.push_back(where(skip, words[i + size_t(step)], words[i]));
    words = std::move(chosen);
  }
  const UOp shift = word_and(position, word(31));
  std::array<UOp, 6> out;
  for (size_t i = 0; i < 6; i++) out[i] = window(words[i], words[i + 1], shift);
  return out;
}

UOp wide(const UOp& w) { return cast(w, DType::U64); }
UOp wide_number(uint64_t v) { return constant(Scalar::of_int(DType::U64, int64_t(v))); }
UOp wide_shifted(Op op, const UOp& x, int n) { return alu(op, {x, wide_number(uint64_t(n))}); }

// A fixed-point number of 128 bits.
struct Fixed {
  UOp high, low;
};
// The significand times 2/pi modulo 4, two bits before the point. x = significand * 2^(e-63), and
// words of 2/pi from bit e-1 on make the product's top two bits modulo 2^192 the quadrant. The
// lowest two words only contribute their carries: what is lost is below 2^-122.
Fixed quarter_turns(const UOp& magnitude, const UOp& e) {
  const UOp fraction = wide_shifted(Op::Shl, bitcast(magnitude, DType::U64), 11);
  const UOp significand = alu(Op::Or, {fraction, wide_number(uint64_t(1) << 63)});
  const UOp mask = wide_number(0xffffffff);
  const UOp s[2] = {alu(Op::And, {significand, mask}), wide_shifted(Op::Shr, significand, 32)};
  const std::array<UOp, 6> w = words_of_two_over_pi(e - word(1));
  UOp sums[6];
  const auto add = [&](int at, const UOp& v) {
    if (at < 6) sums[at] = sums[at] ? sums[at] + v : v;
  };
  for (int i = 0; i < 2; i++) {
    for (int j = 1 - i; i + j < 6; j++) {
      const UOp product = s[i] * wide(w[size_t(5 - j)]);
      add(i + j, alu(Op::And, {product, mask}));
      add(i + j + 1, wide_shifted(Op::Shr, product, 32));
    }
  }
  for (int k = 2; k < 6; k++) sums[k] = sums[k] + wide_shifted(Op::Shr, sums[k - 1], 32);
  const auto joined = [&](int upper) {
    return word_or(wide_shifted(Op::Shl, sums[upper], 32), word_and(sums[upper - 1], mask));
  };
  return {joined(5), joined(3)};
}

// Payne and Hanek for f64. Valid for |x| >= 1.
Reduced wide_reduce_by_table(const Format& f, const UOp& x) {
  const UOp magnitude = abs_bits(f, x);
  const UOp e = cast(alu(Op::Shr, {magnitude, f.integer(52)}) - f.integer(1023), DType::U32);
  const Fixed turned = quarter_turns(magnitude, e);
  const UOp quadrant = wide_shifted(Op::Shr, turned.high + wide_number(uint64_t(1) << 61), 62);
  const UOp high = bitcast(turned.high - wide_shifted(Op::Shl, quadrant, 62), DType::I64);
  const UOp below = lt(high, f.integer(0));
  // The magnitude, so that its parts all have one sign and nothing cancels.
  const UOp borrow = where(equal(turned.low, wide_number(0)), f.integer(0), f.integer(1));
  const UOp size = where(below, f.integer(0) - high - borrow, high);
  const UOp low = where(below, wide_number(0) - turned.low, turned.low);
  // 30 upper bits times 23 bits of pi/2 are exact; everything smaller is added to that once.
  const UOp upper = alu(Op::Shl, {alu(Op::Shr, {size, f.integer(32)}), f.integer(32)});
  const UOp turns = cast(upper, f.t) * f.number(0x1p-62);
  const UOp tail = cast(bitcast(wide_shifted(Op::Shr, low, 1), DType::I64), f.t);
  const UOp rest = cast(size - upper, f.t) * f.number(0x1p-62) + tail * f.number(0x1p-125);
  UOp angle = turns * f.number(0x1.921fb4p+0) +
              (turns * f.number(0x1.4442d18469899p-24) + rest * f.number(std::numbers::pi / 2));
  const UOp negative = lt(f.as_bits(x), f.integer(0));
  angle = where(alu(Op::CmpNe, {below, negative}), f.number(0) - angle, angle);
  const UOp q = bitcast(quadrant, DType::I64);
  return {where(negative, f.integer(0) - q, q), angle};
}

UOp sine_of(const Format& f, const Reduced& r) {
  const int terms = f.t == DType::F32 ? 5 : 9;
  std::vector<double> sine, cosine;
  double factorial = 1;
  for (int i = 0; i < 2 * terms; i++) {
    if (i) factorial *= i;
    const double sign = i / 2 % 2 ? -1 : 1;
    (i % 2 ? sine : cosine).push_back(sign / factorial);
  }
  const UOp r2 = r.angle * r.angle;
  const UOp s = r.angle + r.angle * r2 * horner(f, r2, {sine.begin() + 1, sine.end()});
  const UOp c = f.number(1) + r2 * horner(f, r2, {cosine.begin() + 1, cosine.end()});
  auto bit = [&](int64_t b) {
    return alu(Op::CmpNe, {alu(Op::And, {r.quadrant, f.integer(b)}), f.integer(0)});
  };
  const UOp y = where(bit(1), c, s);
  return where(bit(2), alu(Op::Neg, {y}), y);
}

}  // namespace

UOp sin_by_polynomial(const UOp& x, int64_t quarter_turns) {
  const Format f = format_of(x->dtype);
  const bool single = f.t == DType::F32;
  const UOp magnitude = abs_bits(f, x);
  // pi/2 in parts of 11, 11, 11 and 24 bits: the first three times q < 2^13 are exact; fdlibm's
  // pio2_1, pio2_2, pio2_3 (33 bits each, exact times q < 2^20) and the tail.
  static constexpr double kParts32[] = {0x1.92p+0, 0x1.fb4p-12, 0x1.444p-24, 0x1.68c234p-39};
  static constexpr double kParts64[] = {1.57079632673412561417e+00, 6.07710050630396597660e-11,
                                        2.02226624871116645580e-21, 8.47842766036889956997e-32};
  const double limit = single ? 16 : 0x1p19;
  const UOp large = ge(magnitude, f.as_bits(f.number(limit)));
  const Reduced a = reduce_by_parts(f, where(large, f.number(0), x),
                                    single ? std::span(kParts32) : std::span(kParts64));
  const UOp far = where(large, x, f.number(limit));
  const Reduced b = single ? reduce_by_table(far) : wide_reduce_by_table(f, far);
  const UOp quadrant = where(large, b.quadrant, a.quadrant) + f.integer(quarter_turns);
  UOp y = sine_of(f, {quadrant, where(large, b.angle, a.angle)});
  const UOp at_zero = quarter_turns % 2 ? y : quarter_turns ? alu(Op::Neg, {x}) : x;
  y = where(equal(magnitude, f.integer(0)), at_zero, y);
  return where(ge(magnitude, f.integer(f.infinity())), f.number(f.nan()), y);
}

}  // namespace tuff::kernel

// What the Target lacks, made of what it has; and the ops whose exact meaning no instruction has:
// division by zero, saturating casts, Threefry. Also arithmetic of narrow floats through f32.
#include <algorithm>
#include <cmath>

#include "ir/kernel_floor.h"
#include "ir/op_table.h"
#include "kernel/analysis/ranges.h"
#include "kernel/lower/transcendental.h"
#include "kernel/lower/words.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Threefry-2x32, 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2,
// 3).
UOp threefry(std::span<const UOp> src, int64_t word) {
  static constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  auto number = [](uint32_t v) { return int_const(DType::U32, v); };
  auto rotate = [&](const UOp& x, int n) {
    return alu(Op::Or, {alu(Op::Shl, {x, number(uint32_t(n))}),
                        alu(Op::Shr, {x, number(uint32_t(32 - n))})});
  };
  const UOp key[3] = {src[2], src[3],
                      alu(Op::Xor, {alu(Op::Xor, {src[2], src[3]}), number(0x1bd11bda)})};
  UOp x0 = src[0] + key[0], x1 = src[1] + key[1];
  for (int round = 0; round < 20; round++) {
    x0 = x0 + x1;
    x1 = alu(Op::Xor, {rotate(x1, rotations[round % 8]), x0});
    if (round % 4 != 3) continue;
    const int inject = round / 4 + 1;
    x0 = x0 + key[inject % 3];
    x1 = x1 + key[(inject + 1) % 3] + number(uint32_t(inject));
  }
  return word == 0 ? x0 : x1;
}

// Quotients by zero are 0 and the lowest integer by -1 wraps; a divisor known to be neither is
// left.
UOp total_division(Op op, const UOp& a, const UOp& b) {
  const DType t = a->dtype;
  if (b->is_const() ? b->const_int() != 0 && b->const_int() != -1 : b->min > 0)
    return make(op, t, {a, b});
  const UOp zero = int_const(t, 0), minus_one = int_const(t, -1);
  const UOp by_zero = alu(Op::CmpEq, {b, zero});
  if (is_unsigned(t)) {
    return where(by_zero, zero, make(op, t, {a, where(by_zero, int_const(t, 1), b)}));
  }
  const UOp by_minus = alu(Op::CmpEq, {b, minus_one});
  const UOp safe = where(alu(Op::Or, {by_zero, by_minus}), int_const(t, 1), b);
  const UOp minus = op == Op::IDiv ? zero - a : zero;
  return where(by_zero, zero, where(by_minus, minus, make(op, t, {a, safe})));
}

// Float to integer truncates and saturates, NaN gives 0; the conversion itself sees only what fits.
UOp saturating_cast(const UOp& x, DType to) {
  const DType t = x->dtype;
  const int bits = row(to).storage_bits;
  const double low = is_signed(to) ? -std::ldexp(1.0, bits - 1) : 0.0;
  const double beyond = std::ldexp(1.0, is_signed(to) ? bits - 1 : bits);
  const double high =
      t == DType::F32 ? double(std::nextafterf(float(beyond), 0.0f)) : std::nextafter(beyond, 0.0);
  const int64_t least =
      is_signed(to) ? int64_t(uint64_t(1) << (bits - 1)) * (bits == 64 ? 1 : -1) : 0;
  const int64_t most = is_signed(to) ? int64_t((uint64_t(1) << (bits - 1)) - 1) : -1;
  const UOp below = lt(x, constant(t, low)), above = lt(constant(t, high), x);
  const UOp safe = where(below, constant(t, 0),
                         where(above, constant(t, 0), where(is_nan(x), constant(t, 0), x)));
  const UOp converted =
      bits < 32 ? cast(make(Op::Cast, DType::I32, {safe}), to) : make(Op::Cast, to, {safe});
  return where(below, int_const(to, least), where(above, int_const(to, most), converted));
}

// b where a < b or b is NaN, else a (which may be NaN). A constant is no NaN.
UOp maximum(const UOp& a, const UOp& b) {
  if (a->dtype == DType::Bool) return alu(Op::Or, {a, b});
  // A source may have become a constant just now.
  if (a->is_const() && b->is_const()) return alu(Op::Max, {a, b});
  if (a->is_const()) return maximum(b, a);
  const UOp less = alu(Op::CmpLt, {a, b});
  if (!is_float(a->dtype) || b->is_const()) return where(less, b, a);
  const UOp nan = alu(Op::CmpNe, {b, b});
  return where(alu(Op::Or, {less, nan}), b, a);
}

UOp reciprocal(const UOp& x) { return make(Op::Div, x->dtype, {constant(x->dtype, 1), x}); }

UOp bf16_from_f32(const UOp& x) {
  const UOp bits = bitcast(x, DType::U32);
  const UOp odd = word_and(shr(bits, 16), word(1));
  const UOp rounded = shr(bits + word(0x7fff) + odd, 16);
  const UOp quiet = word_or(shr(bits, 16), word(0x40));
  return bitcast(cast(where(is_nan(x), quiet, rounded), DType::U16), DType::BF16);
}
UOp f32_from_bf16(const UOp& x) {
  return bitcast(shl(cast(bitcast(x, DType::U16), DType::U32), 16), DType::F32);
}

// A format with fewer exponents than f32 has.
struct SmallFormat {
  int cut;          // bits of f32's significand that it lacks
  uint32_t rebias;  // what f32's exponents are biased by above its own
  uint32_t end;     // the f32 from which on all are beyond it
  uint32_t beyond;  // its bits for these
};
constexpr SmallFormat kHalf{13, 112, 0x47800000, 0x7c00}, kF8E4M3FN{20, 120, 0x43f00000, 0x7f},
    kF8E5M2{21, 112, 0x47800000, 0x7c};

// The bits of an f32's magnitude, which is no NaN. To nearest even in integers, so that no device's
// flushing of subnormals or rounding mode matters.
UOp rounded_magnitude(const UOp& a, const SmallFormat& f) {
  const UOp based = a - word(f.rebias << 23);
  const UOp below_half = word((1u << (f.cut - 1)) - 1);
  const UOp normal =
      shr(based + below_half + word_and(shr(based, f.cut), word(1)), f.cut);
  // Below the normal numbers: units of the least one, the significand shifted by more places.
  const UOp tiny = lt(a, word((f.rebias + 1) << 23));
  const UOp places = where(tiny, word(f.rebias + uint32_t(f.cut) + 1) - shr(a, 23),
                          word(uint32_t(f.cut) + 1));
  const UOp by = where(lt(word(25), places), word(25), places);
  const UOp significand = word_or(word_and(a, word(0x7fffff)), word(0x800000));
  const UOp kept = shr(significand, by), half = shl(word(1), by - word(1));
  const UOp rest = significand - shl(kept, by);
  const UOp tie_up = logical_and(equal(rest, half), equal(word_and(kept, word(1)), word(1)));
  const UOp subnormal = kept + flag(alu(Op::Or, {lt(half, rest), tie_up}));
  return where(lt(a, word(f.end)), where(tiny, subnormal, normal), word(f.beyond));
}

UOp f16_from_f32(const UOp& x) {
  const UOp bits = bitcast(x, DType::U32), a = word_and(bits, word(0x7fffffff));
  UOp y = rounded_magnitude(a, kHalf);
  const UOp quiet = word_or(word(0x7e00), word_and(shr(a, 13), word(0x3ff)));
  y = word_or(where(lt(word(0x7f800000), a), quiet, y), word_and(shr(bits, 16), word(0x8000)));
  return bitcast(cast(y, DType::U16), DType::F16);
}
// Of an f16's bits. Subnormals are whole numbers of 2^-24, which f32 has as normal numbers.
UOp f32_from_half(const UOp& bits) {
  const UOp a = word_and(bits, word(0x7fff));
  const UOp based = shl(a, 13) + word(112u << 23);
  const UOp small = bitcast(cast(a, DType::F32) * constant(DType::F32, 0x1p-24), DType::U32);
  const UOp finite = where(lt(a, word(0x400)), small, based);
  const UOp y = where(lt(a, word(0x7c00)), finite, based + word(112u << 23));
  return bitcast(word_or(y, shl(word_and(bits, word(0x8000)), 16)), DType::F32);
}
UOp f32_from_f16(const UOp& x) {
  return f32_from_half(cast(bitcast(x, DType::U16), DType::U32));
}

UOp f8_from_f32(const UOp& x, DType to) {
  const UOp bits = bitcast(x, DType::U32), a = word_and(bits, word(0x7fffffff));
  const UOp rounded = rounded_magnitude(a, to == DType::F8E5M2 ? kF8E5M2 : kF8E4M3FN);
  const UOp magnitude = where(lt(word(0x7f800000), a), word(0x7f), rounded);
  const UOp y = word_or(magnitude, word_and(shr(bits, 24), word(0x80)));
  return bitcast(cast(y, DType::U8), to);
}
UOp f32_from_f8(const UOp& x) {
  const UOp bits = cast(bitcast(x, DType::U8), DType::U32);
  if (x->dtype == DType::F8E5M2) return f32_from_half(shl(bits, 8));
  const UOp a = word_and(bits, word(0x7f));
  const UOp small = bitcast(cast(a, DType::F32) * constant(DType::F32, 0x1p-9), DType::U32);
  const UOp finite = where(lt(a, word(8)), small, shl(a, 20) + word(120u << 23));
  const UOp y = where(lt(a, word(0x7f)), finite, word(0x7fc00000));
  return bitcast(word_or(y, shl(word_and(bits, word(0x80)), 24)), DType::F32);
}

// Half of x, its last bit kept as a sticky one, is a signed number.
UOp f32_from_u32(const UOp& x) {
  const UOp half = word_or(shr(x, 1), word_and(x, word(1)));
  const auto converted = [](const UOp& v) {
    return make(Op::Cast, DType::F32, {bitcast(v, DType::I32)});
  };
  return where(lt(x, word(0x80000000)), converted(x), converted(half) * constant(DType::F32, 2));
}

// What rounds into a narrow float as x itself does, though it goes through f32: where bits get lost
// on that way, one well below the narrow type's last place says so (rounding to odd: Boldo, Melquiond,
// "When double rounding is odd", 2005).
UOp odd_f32(const UOp& x) {  // of an f64
  const DType t = x->dtype;
  const UOp y = make(Op::Cast, DType::F32, {x}), bits = bitcast(y, DType::U32);
  const UOp back = make(Op::Cast, t, {y});
  const UOp away = where(lt(x, constant(t, 0)), lt(back, x), lt(x, back));
  const UOp odd = bitcast(word_or(bits - flag(away), word(1)), DType::F32);
  const UOp inexact = alu(Op::Or, {lt(back, x), lt(x, back)});  // neither with NaN
  return where(inexact, odd, y);
}
UOp sticky_integer(const UOp& x) {
  // From 2^least on, `dropped` low bits become one: f32 holds what is left exactly.
  struct Tier {
    int least, dropped;
  };
  static constexpr Tier kTiers[] = {{24, 10}, {34, 25}, {49, 40}};
  const DType t = x->dtype;
  UOp y = x;
  for (const Tier& tier : kTiers) {
    if (tier.least >= row(t).storage_bits) break;
    const UOp unit = int_const(t, int64_t(1) << tier.dropped), low = unit - int_const(t, 1);
    const UOp rest = alu(Op::And, {x, low}), zero = int_const(t, 0);
    const UOp kept = x - rest;
    const UOp cut = where(alu(Op::CmpNe, {rest, zero}), alu(Op::Or, {kept, unit}), kept);
    const UOp bound = int_const(t, int64_t(1) << tier.least);
    // One comparison: of two with constants, of a number that was widened, Mesa 22.3 makes another.
    const DType u = t == DType::I64 ? DType::U64 : t == DType::I32 ? DType::U32 : t;
    const UOp from_least = is_signed(t) ? bitcast(x + bound, u) : x;
    const int64_t range = int64_t(is_signed(t) ? 2 : 1) << tier.least;
    const UOp large = logical_not(lt(from_least, int_const(u, range)));
    y = where(large, cut, y);
  }
  return y;
}

// x of a cast of x to a wider integer that has all its values; empty for any other. A counter that
// has 32 bits counts as an int32.
UOp widened(const UOp& u) {
  if (u->op != Op::Cast || !is_int(u->dtype)) return {};
  const UOp& x = u->src(0);
  const DType from = x->dtype;
  if (from == DType::Index) {
    const bool fits = x->min >= (is_signed(u->dtype) ? INT32_MIN : 0) && x->max <= INT32_MAX;
    return fits && size_bytes(u->dtype) > 4 ? cast(x, DType::I32) : UOp();
  }
  const bool keeps = is_int(from) && size_bytes(from) < size_bytes(u->dtype) &&
                     (is_signed(u->dtype) || !is_signed(from));
  return keeps ? u->src(0) : UOp();
}
// c as a value of a narrower integer, if it is one.
UOp narrowed(const UOp& c, DType to) {
  const UOp n = cast(c, to);
  return n->is_const() && cast(n, c->dtype) == c ? n : UOp();
}
// An int64 whose numbers all have 32 bits, as an int32: what is reckoned from constants and widened
// integers and counters, such as a mask's positions. Empty for any other.
struct Bounded {
  UOp x;
  int64_t min = 0, max = 0;
  static Bounded of(UOp x, int64_t min, int64_t max) {
    return min < INT32_MIN || max > INT32_MAX ? Bounded{} : Bounded{std::move(x), min, max};
  }
};
// At most so many sums deep: what is shared is not walked again and again.
constexpr int kMostSums = 4;
Bounded in_32_bits(const UOp& u, int sums = kMostSums) {
  if (u->is_const()) return Bounded::of(cast(u, DType::I32), u->const_int(), u->const_int());
  if (const UOp x = widened(u)) {
    // A widened Index has gone through I32.
    const UOp& origin = x->op == Op::Cast && x->src(0)->dtype == DType::Index ? x->src(0) : x;
    if (origin->dtype == DType::Index) return Bounded::of(x, origin->min, origin->max);
    const int bits = int(8 * size_bytes(x->dtype)) - int(is_signed(x->dtype));
    const int64_t most = (int64_t(1) << bits) - 1;
    return Bounded::of(cast(x, DType::I32), is_signed(x->dtype) ? -most - 1 : 0, most);
  }
  if (sums == 0 || (u->op != Op::Add && u->op != Op::Sub)) return {};
  const Bounded a = in_32_bits(u->src(0), sums - 1), b = in_32_bits(u->src(1), sums - 1);
  if (!a.x || !b.x) return {};
  const bool sum = u->op == Op::Add;
  return Bounded::of(sum ? a.x + b.x : a.x - b.x, a.min + (sum ? b.min : -b.max),
                     a.max + (sum ? b.max : -b.min));
}

// Of widened integers the narrow ones are compared. lavapipe's comparisons with a constant of what
// it has widened itself are wrong (x < 4 is false for each x of int32 as int64; Mesa 22.3.6).
UOp narrow_comparison(Op op, const UOp& a, const UOp& b) {
  UOp x = widened(a), y = widened(b);
  const UOp& c = x && b->is_const() ? b : y && a->is_const() ? a : UOp();
  if (c) {
    (x ? y : x) = narrowed(c, (x ? x : y)->dtype);
    // No narrow number is equal to it: all are on one side of it.
    const bool above = c->const_int() > 0 || is_unsigned(c->dtype);
    if (!x || !y) return bool_const(op == Op::CmpNe || (op == Op::CmpLt && above == (c == b)));
  }
  if (x && y && x->dtype == y->dtype) return make(op, DType::Bool, {x, y});
  if (a->dtype != DType::I64) return {};
  const Bounded p = in_32_bits(a), q = in_32_bits(b);
  return p.x && q.x ? make(op, DType::Bool, {p.x, q.x}) : UOp();
}

// Made of other ops on every device.
using Making = UOp (*)(std::span<const UOp> src, const Arg& arg);
constexpr OpTable<Making> kMade{{
    {Op::Threefry, [](auto src, auto& arg) { return threefry(src, std::get<int64_t>(arg)); }},
    {Op::Max, [](auto src, auto&) { return maximum(src[0], src[1]); }},
    {Op::IDiv, [](auto src, auto&) { return total_division(Op::IDiv, src[0], src[1]); }},
    {Op::IMod, [](auto src, auto&) { return total_division(Op::IMod, src[0], src[1]); }},
    {Op::Recip, [](auto src, auto&) { return reciprocal(src[0]); }},
    {Op::CmpLt, [](auto src, auto&) { return narrow_comparison(Op::CmpLt, src[0], src[1]); }},
    {Op::CmpEq, [](auto src, auto&) { return narrow_comparison(Op::CmpEq, src[0], src[1]); }},
    {Op::CmpNe, [](auto src, auto&) { return narrow_comparison(Op::CmpNe, src[0], src[1]); }},
}};

// Functions of f32 and f64: what says that a device has its own, and what they are made of.
struct Function {
  bool TargetFeatures::*own = nullptr;
  UOp (*made)(const UOp& x, const int64_t* variant, bool fused) = nullptr;
};
constexpr OpTable<Function> kFunctions{{
    {Op::Exp2,
     {&TargetFeatures::exp2,
      [](auto& x, auto e, bool f) { return (e ? exp_by_polynomial : exp2_by_polynomial)(x, f); }}},
    {Op::Log2, {&TargetFeatures::log2, [](auto& x, auto, bool) { return log2_by_polynomial(x); }}},
    {Op::Sin,
     {&TargetFeatures::sin,
      [](auto& x, auto turns, bool) { return sin_by_polynomial(x, turns ? *turns : 0); }}},
    {Op::Sqrt, {&TargetFeatures::sqrt, [](auto& x, auto, bool) { return sqrt_by_newton(x); }}},
}};
// Counters are index_type.cpp's.
static_assert(!any_op([](Op op) {
  return has_flag(op, kDecomposed) && row(op).dtypes != OpDTypes::Counters && !kMade.find(op) &&
         !kFunctions.find(op);
}), "kernel/lower/decompose.cpp: kMade and kFunctions lack an op that no renderer has");

class Decomposer {
 public:
  // same_everywhere: no function of the device's own, whose last bits are its own too.
  Decomposer(const Target& t, bool same_everywhere)
      : target_(t), f_(t.features), same_everywhere_(same_everywhere) {
    if (same_everywhere) f_.exp2 = f_.log2 = f_.sin = f_.sqrt = false;
  }

  UOp operator()(const UOp& old, std::span<const UOp> src) const {
    refuse_absent(old);
    if (!is_alu(old->op) || matrix_of(old.get())) return {};
    // A counter as a number that is made of others.
    if (old->op == Op::Cast && src[0]->dtype == DType::Index && emulated(old->dtype))
      return cast_of(make(Op::Cast, DType::F32, {src[0]}), old->dtype);
    if (old->dtype == DType::Index || (src.size() > 0 && src[0]->dtype == DType::Index)) return {};
    return alu_of(old->op, old->dtype, src, old->arg);
  }

 private:
  bool emulated(DType t) const {
    return (t == DType::F16 && !f_.f16) || (t == DType::BF16 && !f_.bf16) ||
           (is_float8(t) && !f_.f8);
  }

  void refuse_absent(const UOp& u) const {
    if (u->dtype == DType::F64 && !f_.f64)
      fail<Unsupported>("{} of float64: {} has no float64: cast to float32, or use another device",
                        ir::name(u->op), target_.describe());
  }

  UOp alu_of(Op op, DType t, std::span<const UOp> src, const Arg& arg) const {
    const DType from = src[0]->dtype;
    if (op == Op::Cast) return cast_of(src[0], t);
    if (op == Op::Bitcast || op == Op::Where) return {};
    if (emulated(from)) return through_f32(op, t, src, arg);
    if (const Function* f = kFunctions.find(op)) return function_of(op, *f, src[0], arg);
    const Making* making = kMade.find(op);
    return making ? (*making)(src, arg) : UOp();
  }

  UOp narrow_float(const UOp& x, DType to) const {
    const bool wide_integer = is_int(x->dtype) && size_bytes(x->dtype) >= 4;
    const UOp y = x->dtype == DType::F64
                      ? odd_f32(x)
                      : cast_of(wide_integer ? sticky_integer(x) : x, DType::F32);
    if (is_float8(to)) return f8_from_f32(y, to);
    return to == DType::F16 ? f16_from_f32(y) : bf16_from_f32(y);
  }

  UOp through_f32(Op op, DType t, std::span<const UOp> src, const Arg& arg) const {
    std::vector<UOp> wide;
    for (const UOp& s : src) wide.push_back(cast_of(s, DType::F32));
    const DType to = t == DType::Bool ? t : DType::F32;
    UOp y = alu_of(op, to, wide, arg);
    if (!y) y = make(op, to, wide, arg);
    return t == DType::Bool ? y : cast_of(y, t);
  }

  // Among the devices' own functions only the root takes doubles, and none is promised to keep a
  // NaN (GLSL.std.450: Exp2, Log2 and Sin are of 16 and 32 bits; SwiftShader's exp2(NaN) is
  // infinite).
  UOp function_of(Op op, const Function& f, const UOp& x, const Arg& arg) const {
    const DType t = x->dtype;
    if (size_bytes(t) < 4)
      return cast_of(function_of(op, f, cast_of(x, DType::F32), arg), t);
    const int64_t* variant = std::get_if<int64_t>(&arg);
    if (op == Op::Sqrt && f_.sqrt) return make(op, t, {x});
    if (f.own && f_.*f.own && !variant && t == DType::F32)
      return where(is_nan(x), x, make(op, t, {x}));
    return f.made(x, variant, !same_everywhere_);
  }

  UOp cast_of(const UOp& x, DType to) const {
    const DType from = x->dtype;
    if (from == to) return x;
    if (x->is_const()) return cast(x, to);
    if (to == DType::Bool) {
      const UOp v = emulated(from) ? cast_of(x, DType::F32) : x;
      return alu(Op::CmpNe, {v, int_const(v->dtype, 0)});
    }
    if (from == DType::BF16 && !f_.bf16) return cast_of(f32_from_bf16(x), to);
    if (from == DType::F16 && !f_.f16_casts) return cast_of(f32_from_f16(x), to);
    if (is_float8(from) && !f_.f8) return cast_of(f32_from_f8(x), to);
    if ((to == DType::BF16 && !f_.bf16) || (to == DType::F16 && !f_.f16_casts) ||
        (is_float8(to) && !f_.f8))
      return narrow_float(x, to);
    if (from == DType::U32 && to == DType::F32 && !f_.u32_to_f32) return f32_from_u32(x);
    if (is_float(from) && is_int(to)) {
      const bool narrow = from == DType::F16 || is_float8(from);
      return saturating_cast(narrow ? cast(x, DType::F32) : x, to);
    }
    return make(Op::Cast, to, {x});
  }

  const Target& target_;
  TargetFeatures f_;
  bool same_everywhere_;
};

// Random numbers are promised to have the same bits on every device.
bool draws_random_numbers(const UOp& ast) {
  const std::vector<const Node*> nodes = toposort(ast);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* n) { return n->op == Op::Threefry; });
}

}  // namespace

void pass_decompose(Lowering& l) {
  const Decomposer d(l.target, draws_random_numbers(l.ast));
  l.ast = rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) { return d(old, src); });
}

}  // namespace tuff::kernel

#include "ir/scalar_eval.h"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "ir/op_table.h"
#include "ir/variants.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

// sin(x + quarter_turns * pi/2)
double turned_sine(double x, int64_t quarter_turns) {
  const double y = quarter_turns % 2 ? std::cos(x) : std::sin(x);
  return quarter_turns < 2 ? y : -y;
}

// Double arithmetic on floats, rounded to float: + - * / and sqrt are exact to one rounding that
// way (Figueroa, "When is double rounding innocuous?", 1995).
Scalar float_result(DType t, double v) {
  if (t == DType::F64) return Scalar::of_double(t, v);
  return Scalar::of_double(t, double(float(v)));
}

template <Op op>
int64_t shifted(DType t, int64_t x, int64_t y) {
  const uint64_t width = row(t).storage_bits;
  if (uint64_t(y) >= width) return op == Op::Shr && is_signed(t) && x < 0 ? -1 : 0;
  if (op == Op::Shl) return int64_t(uint64_t(x) << y);
  return is_unsigned(t) ? int64_t(uint64_t(x) >> y) : x >> y;
}

template <Op op>
int64_t divided(DType t, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (is_unsigned(t))
    return op == Op::IDiv ? int64_t(uint64_t(x) / uint64_t(y)) : int64_t(uint64_t(x) % uint64_t(y));
  if (y == -1) return op == Op::IDiv || op == Op::FloorDiv ? int64_t(0 - uint64_t(x)) : 0;
  const int64_t q = x / y, r = x % y;
  const bool below = r != 0 && (r < 0) != (y < 0);
  switch (op) {
    case Op::IDiv: return q;
    case Op::IMod: return r;
    case Op::FloorDiv: return q - below;
    default: return below ? r + y : r;
  }
}

double larger(double x, double y) {
  return std::isnan(x) ? x : std::isnan(y) ? y : (x < y ? y : x);
}
int64_t larger_integer(DType t, int64_t x, int64_t y) {
  return is_unsigned(t) ? int64_t(std::max(uint64_t(x), uint64_t(y))) : std::max(x, y);
}

// Floats of up to 32 bits compute in float, f64 in double; the result is rounded once into the
// dtype.
struct OfOne {
  OptionalFunction<double(double x, int64_t variant)> floats;
  OptionalFunction<uint64_t(uint64_t x)> integers;
};
constexpr OpTable<OfOne> kOfOne{{
    {Op::Neg, {[](double x, auto) { return -x; }, [](uint64_t x) { return 0 - x; }}},
    {Op::Recip, {[](double x, auto) { return 1.0 / x; }}},
    {Op::Sqrt, {[](double x, auto) { return std::sqrt(x); }}},
    {Op::Exp2, {[](double x, auto v) { return v == kNaturalBase ? std::exp(x) : std::exp2(x); }}},
    {Op::Log2, {[](double x, auto) { return std::log2(x); }}},
    {Op::Sin, {turned_sine}},
    {Op::Trunc, {[](double x, auto) { return std::trunc(x); }}},
}};
static_assert(!any_op([](Op op) {
  const OfOne* m = kOfOne.find(op);
  return has_flag(op, kUnary) && row(op).rule == DTypeRule::Same &&
         !(m && (m->floats || !takes_floats(op)) && (m->integers || !takes_integers(op)));
}), "ir/scalar_eval.cpp: kOfOne lacks an op, or a dtype of one");

struct OfTwo {
  OptionalFunction<double(double x, double y)> floats;
  OptionalFunction<int64_t(DType t, int64_t x, int64_t y)> integers;
  OptionalFunction<bool(bool x, bool y)> bools;
};
template <class F>
double floats(double x, double y) { return F()(x, y); }
template <class F>
int64_t words(DType, int64_t x, int64_t y) { return int64_t(F()(uint64_t(x), uint64_t(y))); }
template <class F>
bool bools(bool x, bool y) { return F()(x, y); }
constexpr OpTable<OfTwo> kOfTwo{{
    {Op::Add, {floats<std::plus<>>, words<std::plus<>>, bools<std::logical_or<>>}},
    {Op::Sub, {floats<std::minus<>>, words<std::minus<>>, bools<std::not_equal_to<>>}},
    {Op::Mul, {floats<std::multiplies<>>, words<std::multiplies<>>, bools<std::logical_and<>>}},
    {Op::Div, {floats<std::divides<>>}},      {Op::IDiv, {nullptr, divided<Op::IDiv>}},
    {Op::IMod, {nullptr, divided<Op::IMod>}},
    {Op::FloorDiv, {nullptr, divided<Op::FloorDiv>}},
    {Op::FloorMod, {nullptr, divided<Op::FloorMod>}},
    {Op::Max, {larger, larger_integer, bools<std::logical_or<>>}},
    {Op::And, {nullptr, words<std::bit_and<>>, bools<std::logical_and<>>}},
    {Op::Or, {nullptr, words<std::bit_or<>>, bools<std::logical_or<>>}},
    {Op::Xor, {nullptr, words<std::bit_xor<>>, bools<std::not_equal_to<>>}},
    {Op::Shl, {nullptr, shifted<Op::Shl>}}, {Op::Shr, {nullptr, shifted<Op::Shr>}},
}};
static_assert(!any_op([](Op op) {
  const OfTwo* m = kOfTwo.find(op);
  return has_flag(op, kBinary) && row(op).rule == DTypeRule::Same &&
         !(m && (m->floats || !takes_floats(op)) && (m->integers || !takes_integers(op)) &&
           (m->bools || !takes_bools(op)));
}), "ir/scalar_eval.cpp: kOfTwo lacks an op, or a dtype of one");

template <class F>
bool compared(const Scalar& a, const Scalar& b) {
  if (is_float(a.dtype)) return F()(a.as_double(), b.as_double());
  const bool with_sign = is_signed(a.dtype) || a.dtype == DType::Index || a.dtype == DType::WeakInt;
  return with_sign ? F()(int64_t(a.bits), int64_t(b.bits)) : F()(a.bits, b.bits);
}
constexpr OpTable<bool (*)(const Scalar&, const Scalar&)> kComparisons{{
    {Op::CmpLt, compared<std::less<>>},
    {Op::CmpNe, compared<std::not_equal_to<>>},
    {Op::CmpEq, compared<std::equal_to<>>},
}};
static_assert(kComparisons.covers([](Op op) { return row(op).rule == DTypeRule::Bool; }),
              "ir/scalar_eval.cpp: kComparisons lacks an op");

Scalar bitcast_scalar(const Scalar& v, DType to) {
  std::byte memory[8] = {};
  store_scalar(v, memory);
  return load_scalar(to, memory);
}

// Threefry-2x32, 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers, SC 2011).
uint32_t threefry(uint32_t c0, uint32_t c1, uint32_t k0, uint32_t k1, int64_t word) {
  static constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  uint32_t x0 = c0 + keys[0], x1 = c1 + keys[1];
  for (int round = 0; round < 20; round++) {
    x0 += x1;
    x1 = std::rotl(x1, kRotations[round % 8]) ^ x0;
    if (round % 4 == 3) {
      const int s = round / 4 + 1;
      x0 += keys[s % 3];
      x1 += keys[(s + 1) % 3] + uint32_t(s);
    }
  }
  return word == 0 ? x0 : x1;
}

Scalar eval_unary(Op op, DType to, const Scalar& x, int64_t variant) {
  const DType t = x.dtype;
  if (op == Op::Cast) return x.cast(to);
  if (op == Op::Bitcast) return bitcast_scalar(x, to);
  if (t == DType::Bool && op == Op::Neg) return x;
  const OfOne m = kOfOne.find(op) ? *kOfOne.find(op) : OfOne{};
  TUFF_CHECK(is_float(t) ? !!m.floats : !!m.integers, "{} is not defined on {}", name(op), tuff::name(t));
  if (is_float(t)) return float_result(t, m.floats(x.as_double(), variant));
  return Scalar::of_int(t, int64_t(m.integers(x.bits)));
}

Scalar eval_binary(Op op, const Scalar& x, const Scalar& y) {
  const DType t = x.dtype;
  if (const auto* holds = kComparisons.find(op)) return {DType::Bool, (*holds)(x, y)};
  const OfTwo m = kOfTwo.find(op) ? *kOfTwo.find(op) : OfTwo{};
  TUFF_CHECK(is_float(t) ? !!m.floats : t == DType::Bool ? !!m.bools : !!m.integers,
             "{} is not defined on {}", name(op), tuff::name(t));
  if (is_float(t)) return float_result(t, m.floats(x.as_double(), y.as_double()));
  if (t == DType::Bool) return {t, m.bools(x.as_bool(), y.as_bool())};
  return Scalar::of_int(t, m.integers(t, int64_t(x.bits), int64_t(y.bits)));
}

}  // namespace

Scalar eval_scalar(Op op, DType to, std::span<const Scalar> src, int64_t word) {
  if (src.size() == 1) return eval_unary(op, to, src[0], word);
  if (op == Op::Where) return src[0].as_bool() ? src[1] : src[2];
  if (op == Op::Threefry) {
    return {DType::U32, threefry(uint32_t(src[0].bits), uint32_t(src[1].bits),
                                 uint32_t(src[2].bits), uint32_t(src[3].bits), word)};
  }
  if (op == Op::MulAdd) {
    const Scalar product[2] = {eval_scalar(Op::Mul, to, src.subspan(0, 2)), src[2]};
    return eval_scalar(Op::Add, to, product);
  }
  return eval_binary(op, src[0], src[1]);
}

namespace {

Scalar variable_value(const VariableArg& v, const VariableValues& values) {
  const auto it = values.find(v.name);
  if (it == values.end()) fail<InvalidArgument>("variable {} has no value bound to it", v.name);
  if (it->second < v.min || it->second > v.max) {
    fail<InvalidArgument>("variable {} = {} is outside its bounds {}..{}", v.name, it->second,
                          v.min, v.max);
  }
  return Scalar::of_int(DType::Index, it->second);
}

}  // namespace

int64_t evaluate_index(const UOp& x, const VariableValues& values) {
  std::unordered_map<const Node*, Scalar> results;
  for (const Node* n : toposort(x)) {
    if (n->op == Op::Const) {
      results[n] = n->get<Scalar>();
    } else if (n->op == Op::Variable) {
      results[n] = variable_value(n->get<VariableArg>(), values);
    } else {
      Scalar src[4];
      for (uint32_t i = 0; i < n->src_count; i++) src[i] = results.at(n->src(i).get());
      results[n] = eval_scalar(n->op, n->dtype, {src, n->src_count});
    }
  }
  return results.at(x.get()).as_int();
}

Scalar reduce_identity(Op op, DType t) {
  if (op == Op::Add) return Scalar::of_int(t, 0);
  if (op == Op::Mul) return Scalar::of_int(t, 1);
  if (is_float(t) && !has_infinity(t)) return Scalar::of_double(t, -largest_value(t));
  if (is_float(t)) return Scalar::of_double(t, -std::numeric_limits<double>::infinity());
  if (t == DType::Bool || is_unsigned(t)) return Scalar::of_int(t, 0);
  return Scalar::of_int(t, int64_t(uint64_t(-1) << (row(t).storage_bits - 1)));
}

DType reference_accumulator(Op op, DType t) {
  if (op == Op::Max || !is_float(t)) return t;
  return op == Op::Add ? DType::F64 : accumulator(t);
}

}  // namespace tuff::ir

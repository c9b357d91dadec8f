#include "ir/scalar_eval.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ir/curved.h"
#include "ir/walk.h"

namespace tuff::ir {
namespace {

// f16, bf16 and f32 compute in float, f64 in double; the result is rounded once into the dtype.
double compute(Op op, double x, double y) {
  switch (op) {
    case Op::Add: return x + y;
    case Op::Sub: return x - y;
    case Op::Mul: return x * y;
    case Op::Div: return x / y;
    case Op::Max: return std::isnan(x) ? x : std::isnan(y) ? y : (x < y ? y : x);
    default: TUFF_CHECK(false, "{} is not defined on floats", name(op));
  }
  return 0;
}

// sin(x + quarter_turns * pi/2)
double turned_sine(double x, int64_t quarter_turns) {
  const double y = quarter_turns % 2 ? std::cos(x) : std::sin(x);
  return quarter_turns < 2 ? y : -y;
}

double compute(Op op, double x, int64_t variant) {
  switch (op) {
    case Op::Neg: return -x;
    case Op::Recip: return 1.0 / x;
    case Op::Sqrt: return std::sqrt(x);
    case Op::Exp2: return variant == kNaturalBase ? std::exp(x) : std::exp2(x);
    case Op::Log2: return std::log2(x);
    case Op::Sin: return turned_sine(x, variant);
    case Op::Trunc: return std::trunc(x);
    default: TUFF_CHECK(false, "{} is not defined on floats", name(op));
  }
  return 0;
}

// Double arithmetic on floats, rounded to float: + - * / and sqrt are exact to one rounding that
// way (Figueroa, "When is double rounding innocuous?", 1995).
Scalar float_result(DType t, double v) {
  if (t == DType::F64) return Scalar::of_double(t, v);
  return Scalar::of_double(t, double(float(v)));
}

int64_t shifted(Op op, DType t, uint64_t x, uint64_t y) {
  const uint64_t width = row(t).storage_bits;
  if (y >= width) return op == Op::Shr && is_signed(t) && int64_t(x) < 0 ? -1 : 0;
  if (op == Op::Shl) return int64_t(x << y);
  return is_unsigned(t) ? int64_t(x >> y) : int64_t(x) >> y;
}

int64_t divided(Op op, DType t, int64_t x, int64_t y) {
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

int64_t compute_int(Op op, DType t, int64_t x, int64_t y) {
  const uint64_t a = uint64_t(x), b = uint64_t(y);
  switch (op) {
    case Op::Add: return int64_t(a + b);
    case Op::Sub: return int64_t(a - b);
    case Op::Mul: return int64_t(a * b);
    case Op::Max: return is_unsigned(t) ? int64_t(std::max(a, b)) : std::max(x, y);
    case Op::And: return x & y;
    case Op::Or: return x | y;
    case Op::Xor: return x ^ y;
    case Op::Shl:
    case Op::Shr: return shifted(op, t, a, b);
    case Op::IDiv:
    case Op::IMod:
    case Op::FloorDiv:
    case Op::FloorMod: return divided(op, t, x, y);
    default: TUFF_CHECK(false, "{} is not defined on {}", name(op), tuff::name(t));
  }
  return 0;
}

bool compute_bool(Op op, bool x, bool y) {
  switch (op) {
    case Op::Add:
    case Op::Max:
    case Op::Or: return x || y;
    case Op::Mul:
    case Op::And: return x && y;
    case Op::Sub:
    case Op::Xor: return x != y;
    default: TUFF_CHECK(false, "{} is not defined on bool", name(op));
  }
  return false;
}

bool compare(Op op, const Scalar& a, const Scalar& b) {
  if (is_float(a.dtype)) {
    const double x = a.as_double(), y = b.as_double();
    return op == Op::CmpLt ? x < y : op == Op::CmpNe ? x != y : x == y;
  }
  if (op == Op::CmpLt)
    return is_signed(a.dtype) || a.dtype == DType::Index || a.dtype == DType::WeakInt
               ? int64_t(a.bits) < int64_t(b.bits)
               : a.bits < b.bits;
  return op == Op::CmpNe ? a.bits != b.bits : a.bits == b.bits;
}

Scalar bitcast_scalar(const Scalar& v, DType to) {
  std::byte memory[8] = {};
  store_scalar(v, memory);
  return load_scalar(to, memory);
}

uint32_t rotate_left(uint32_t x, int n) { return std::rotl(x, n); }

// Threefry-2x32, 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers, SC 2011).
uint32_t threefry(uint32_t c0, uint32_t c1, uint32_t k0, uint32_t k1, int64_t word) {
  static constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  uint32_t x0 = c0 + keys[0], x1 = c1 + keys[1];
  for (int round = 0; round < 20; round++) {
    x0 += x1;
    x1 = rotate_left(x1, kRotations[round % 8]) ^ x0;
    if (round % 4 == 3) {
      const int s = round / 4 + 1;
      x0 += keys[s % 3];
      x1 += keys[(s + 1) % 3] + uint32_t(s);
    }
  }
  return word == 0 ? x0 : x1;
}

Scalar eval_unary(Op op, DType to, const Scalar& x, int64_t variant) {
  if (op == Op::Cast) return x.cast(to);
  if (op == Op::Bitcast) return bitcast_scalar(x, to);
  if (is_float(x.dtype)) return float_result(x.dtype, compute(op, x.as_double(), variant));
  TUFF_CHECK(op == Op::Neg, "{} is not defined on {}", name(op), tuff::name(x.dtype));
  if (x.dtype == DType::Bool) return x;
  return Scalar::of_int(x.dtype, int64_t(0 - x.bits));
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
  const DType t = src[0].dtype;
  if (op == Op::CmpLt || op == Op::CmpNe || op == Op::CmpEq)
    return {DType::Bool, compare(op, src[0], src[1])};
  if (is_float(t)) return float_result(t, compute(op, src[0].as_double(), src[1].as_double()));
  if (t == DType::Bool) return {DType::Bool, compute_bool(op, src[0].as_bool(), src[1].as_bool())};
  return Scalar::of_int(t, compute_int(op, t, int64_t(src[0].bits), int64_t(src[1].bits)));
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
      results[n] = eval_scalar(n->op, n->dtype, std::span<const Scalar>(src, n->src_count));
    }
  }
  return results.at(x.get()).as_int();
}

Scalar reduce_identity(Op op, DType t) {
  if (op == Op::Add) return Scalar::of_int(t, 0);
  if (op == Op::Mul) return Scalar::of_int(t, 1);
  if (is_float(t)) return Scalar::of_double(t, -std::numeric_limits<double>::infinity());
  if (t == DType::Bool || is_unsigned(t)) return Scalar::of_int(t, 0);
  return Scalar::of_int(t, int64_t(uint64_t(-1) << (row(t).storage_bits - 1)));
}

}  // namespace tuff::ir

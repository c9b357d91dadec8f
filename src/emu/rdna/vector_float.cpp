// Floating-point arithmetic of vector instructions.
#include <cstring>

#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {
namespace {

// Transcendental units read and write no denormals of 32 bits.
float flush(float a) { return flush_denormal(a); }
float exp2_of(float a) { return flush(float(std::exp2(double(flush(a))))); }
float log2_of(float a) { return float(std::log2(double(flush(a)))); }
float rcp_of(float a) { return flush(float(1.0 / double(flush(a)))); }
float rsq_of(float a) { return float(1.0 / std::sqrt(double(flush(a)))); }
float sqrt_of(float a) { return std::sqrt(flush(a)); }
// Inputs in revolutions; beyond 256 the unit gives up.
float sin_of(float a) {
  const double turns = double(a) - std::floor(double(a));
  return std::fabs(a) > 256 ? 0 : float(std::sin(turns * 6.283185307179586476925));
}
float cos_of(float a) {
  const double turns = double(a) - std::floor(double(a));
  return std::fabs(a) > 256 ? 1 : float(std::cos(turns * 6.283185307179586476925));
}

template <class T>
T fract_of(T a) {
  const T below_one = std::nextafter(T(1), T(0));
  return std::isfinite(a) ? std::min(a - std::floor(a), below_one)
                          : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
int32_t exponent_of(T a) {
  int exponent = 0;
  if (std::isfinite(a) && a != 0) std::frexp(a, &exponent);
  return exponent;
}
template <class T>
T mantissa_of(T a) {
  int exponent = 0;
  return std::isfinite(a) ? std::frexp(a, &exponent) : a;
}

// Multiplication where zero times anything is zero.
float dx9_mul(float a, float b) { return a == 0 || b == 0 ? 0 : a * b; }

template <class T>
struct DivisionLimits;
template <>
struct DivisionLimits<float> {
  static constexpr int far = 96, scale = 64, tiny = 23, bias = 127, below = -150;
};
template <>
struct DivisionLimits<double> {
  static constexpr int far = 768, scale = 128, tiny = 53, bias = 1023, below = -1075;
};

template <class T>
int biased_exponent(T a) {
  if constexpr (sizeof(T) == 4)
    return int(std::bit_cast<uint32_t>(a) >> 23 & 0xFF);
  else
    return int(std::bit_cast<uint64_t>(a) >> 52 & 0x7FF);
}

template <class T>
bool subnormal(T a) {
  return std::fpclassify(a) == FP_SUBNORMAL;
}

// a: the one to scale, b: denominator, c: numerator. Sets `post` where the quotient must be scaled
// back. ISA 16.12, V_DIV_SCALE.
template <class T>
T div_scale(T a, T b, T c, bool& post) {
  using L = DivisionLimits<T>;
  post = false;
  if (b == 0 || c == 0) return std::numeric_limits<T>::quiet_NaN();
  const bool denominator =
      std::memcmp(&a, &b, sizeof a) == 0;  // by bits: the instruction names one of the two
  const bool numerator = std::memcmp(&a, &c, sizeof a) == 0;
  if (biased_exponent(c) - biased_exponent(b) >= L::far) {
    post = true;
    return denominator ? std::ldexp(a, L::scale) : a;
  }
  if (subnormal(b)) return std::ldexp(a, L::scale);
  const bool small_inverse = subnormal(T(1) / b), small_quotient = subnormal(c / b);
  if (small_inverse && small_quotient) {
    post = true;
    return denominator ? std::ldexp(a, -L::scale) : a;
  }
  if (small_inverse) return std::ldexp(a, -L::scale);
  if (small_quotient) {
    post = true;
    return numerator ? std::ldexp(a, L::scale) : a;
  }
  return biased_exponent(c) <= L::tiny ? std::ldexp(a, L::scale) : a;
}

template <class T>
void div_scale_lanes(Wave& w, const Instruction& i) {
  Lanes<T> a, b, c;
  fetch_number<T>(w, i, *i.find('0'), a);
  fetch_number<T>(w, i, *i.find('1'), b);
  fetch_number<T>(w, i, *i.find('2'), c);
  const uint32_t lanes = active_lanes(w, i);
  uint32_t mask = 0;
  for (int k = 0; k < kLanes; ++k) {
    bool post = false;
    a[k] = div_scale(a[k], b[k], c[k], post);
    mask |= uint32_t(post) << k;
  }
  store<T>(w, i, *i.find('D'), a, lanes);
  write_scalar(w, i.find('S')->index, mask & lanes);
}

// 2^exponent (a b + c), rounded once: a tie among subnormals falls to where the sum's own error
// lies.
template <class T>
T scaled_fma(T a, T b, T c, int exponent) {
  const T sum = std::fma(a, b, c), scaled = std::ldexp(sum, exponent);
  const T back = std::ldexp(scaled, -exponent), left = sum - back;
  const T spacing = std::ldexp(std::numeric_limits<T>::denorm_min(), -exponent);
  if (!std::isfinite(sum) || exponent > 0 || 2 * std::fabs(left) != spacing) return scaled;
  const T error = std::fma(a, b, c - sum), other = std::ldexp(back + 2 * left, exponent);
  if (error == 0) return scaled;
  return (error > 0) == (other > scaled) ? other : scaled;
}

template <class T>
void div_fmas_lanes(Wave& w, const Instruction& i) {
  Lanes<T> a, b, c;
  fetch_number<T>(w, i, *i.find('0'), a);
  fetch_number<T>(w, i, *i.find('1'), b);
  fetch_number<T>(w, i, *i.find('2'), c);
  using L = DivisionLimits<T>;
  for (int k = 0; k < kLanes; ++k) {
    const int direction = biased_exponent(c[k]) > L::bias ? L::scale : -L::scale;
    a[k] = w.vcc() >> k & 1 ? scaled_fma(a[k], b[k], c[k], direction) : std::fma(a[k], b[k], c[k]);
  }
  apply_output<T>(w, i, a);
  store<T>(w, i, *i.find('D'), a, active_lanes(w, i));
}

// a: the quotient so far, b: denominator, c: numerator.
template <class T>
T div_fixup(T a, T b, T c) {
  const T sign = std::signbit(b) != std::signbit(c) ? T(-1) : T(1);
  if (std::isnan(c)) return c;
  if (std::isnan(b)) return b;
  if ((b == 0 && c == 0) || (std::isinf(b) && std::isinf(c))) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  if (b == 0 || std::isinf(c)) return std::copysign(std::numeric_limits<T>::infinity(), sign);
  if (std::isinf(b) || c == 0) return std::copysign(T(0), sign);
  if (biased_exponent(c) - biased_exponent(b) < DivisionLimits<T>::below) {
    return std::copysign(T(0), sign);
  }
  // The steps before made infinity less infinity of a quotient that is too large.
  if (std::isnan(a)) return std::copysign(std::numeric_limits<T>::infinity(), sign);
  return std::copysign(a, sign);
}

// Half precision is divided in f32, so only the special values are left to mend.
float div_fixup_half(float a, float b, float c) {
  return std::isnan(a) || std::isnan(b) || std::isnan(c) || b == 0 || c == 0 || std::isinf(b) ||
                 std::isinf(c)
             ? div_fixup(a, b, c)
             : std::copysign(a, std::signbit(b) != std::signbit(c) ? -1.0f : 1.0f);
}

// fma of the width of T; of f16 it is exact in double, and rounded where it is stored.
template <class T, class Value = typename Computed<T>::type>
Value fma_of(Value a, Value b, Value c) {
  if constexpr (std::is_same_v<T, F16>) {
    return half_fma(a, b, c);
  } else {
    return std::fma(a, b, c);
  }
}

// Sources in other fields: the destination, or a literal.
#define FMA_OF(op, T, second, third) \
  TUFF_RDNA_LANES(                   \
      op, (vector3<T, T, T, T>(      \
              w, i, [](auto a, auto b, auto c) { return fma_of<T>(a, b, c); }, second, third)))

#define ORDER2(op, T, expr) \
  TUFF_RDNA_ROW(op, (vector2<T, T, T>(w, i, [o = Order(w)](auto a, auto b) { return expr; })))
#define ORDER3(op, T, expr) \
  TUFF_RDNA_ROW(            \
      op, (vector3<T, T, T, T>(w, i, [o = Order(w)](auto a, auto b, auto c) { return expr; })))

#define FLOATS(S, T)                                                                \
  BINARY(V_ADD_##S, T, a + b), BINARY(V_MUL_##S, T, a* b),                          \
      TERNARY(V_FMA_##S, T, fma_of<T>(a, b, c)), ORDER2(V_MIN_##S, T, o.min(a, b)), \
      ORDER2(V_MAX_##S, T, o.max(a, b)), UNARY(V_TRUNC_##S, T, std::trunc(a)),      \
      UNARY(V_CEIL_##S, T, std::ceil(a)), UNARY(V_FLOOR_##S, T, std::floor(a)),     \
      UNARY(V_RNDNE_##S, T, std::nearbyint(a)), UNARY(V_FREXP_MANT_##S, T, mantissa_of(a))
#define SHORT_FLOATS(S, T)                                                                        \
  FLOATS(S, T), BINARY(V_SUB_##S, T, a - b), BINARY(V_SUBREV_##S, T, b - a),                      \
      ORDER3(V_MIN3_##S, T, o.min(o.min(a, b), c)), ORDER3(V_MAX3_##S, T, o.max(o.max(a, b), c)), \
      ORDER3(V_MED3_##S, T, o.med(a, b, c)), ORDER3(V_MAXMIN_##S, T, o.min(o.max(a, b), c)),      \
      ORDER3(V_MINMAX_##S, T, o.max(o.min(a, b), c)), FMA_OF(V_FMAC_##S, T, '1', 'D'),            \
      FMA_OF(V_FMAAK_##S, T, '1', 'K'), FMA_OF(V_FMAMK_##S, T, 'K', '1')

constexpr Handler kRows[] = {
    SHORT_FLOATS(F32, float),
    SHORT_FLOATS(F16, F16),
    FLOATS(F64, double),
    BINARY(V_MUL_DX9_ZERO_F32, float, dx9_mul(a, b)),
    VECTOR2(V_LDEXP_F32, float, float, int32_t, std::ldexp(a, b)),
    VECTOR2(V_LDEXP_F64, double, double, int32_t, std::ldexp(a, b)),
    VECTOR2(V_LDEXP_F16, F16, F16, int16_t, std::ldexp(a, b)),
    UNARY(V_FRACT_F32, float, fract_of(a)),
    UNARY(V_EXP_F32, float, exp2_of(a)),
    UNARY(V_LOG_F32, float, log2_of(a)),
    UNARY(V_RCP_F32, float, rcp_of(a)),
    UNARY(V_RCP_IFLAG_F32, float, rcp_of(a)),
    UNARY(V_RSQ_F32, float, rsq_of(a)),
    UNARY(V_SQRT_F32, float, sqrt_of(a)),
    UNARY(V_SIN_F32, float, sin_of(a)),
    UNARY(V_COS_F32, float, cos_of(a)),
    VECTOR1(V_FREXP_EXP_I32_F32, int32_t, float, exponent_of(a)),
    VECTOR1(V_FREXP_EXP_I32_F64, int32_t, double, exponent_of(a)),
    VECTOR1(V_FREXP_EXP_I16_F16, int16_t, F16, exponent_of(a)),
    UNARY(V_FRACT_F64, double, fract_of(a)),
    UNARY(V_RCP_F64, double, 1 / a),
    UNARY(V_RSQ_F64, double, 1 / std::sqrt(a)),
    UNARY(V_SQRT_F64, double, std::sqrt(a)),
    UNARY(V_RCP_F16, F16, 1 / a),
    UNARY(V_SQRT_F16, F16, std::sqrt(a)),
    UNARY(V_RSQ_F16, F16, 1 / std::sqrt(a)),
    UNARY(V_LOG_F16, F16, std::log2(a)),
    UNARY(V_EXP_F16, F16, std::exp2(a)),
    UNARY(V_SIN_F16, F16, sin_of(a)),
    UNARY(V_COS_F16, F16, cos_of(a)),
    {Op::V_DIV_SCALE_F32, div_scale_lanes<float>},
    {Op::V_DIV_SCALE_F64, div_scale_lanes<double>},
    {Op::V_DIV_FMAS_F32, div_fmas_lanes<float>},
    {Op::V_DIV_FMAS_F64, div_fmas_lanes<double>},
    TERNARY(V_DIV_FIXUP_F32, float, div_fixup(a, b, c)),
    TERNARY(V_DIV_FIXUP_F64, double, div_fixup(a, b, c)),
    TERNARY(V_DIV_FIXUP_F16, F16, div_fixup_half(a, b, c)),
};

}  // namespace

std::span<const Handler> float_handlers() { return kRows; }

}  // namespace tuff::emu::rdna

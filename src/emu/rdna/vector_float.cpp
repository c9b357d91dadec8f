// Floating-point arithmetic of vector instructions.
#include <cstring>

#include "emu/rdna/meanings.h"

namespace tuff::emu::rdna {
namespace {

template <class T>
bool signals(T a) {
  if constexpr (sizeof(T) == 4)
    return std::isnan(a) && !(std::bit_cast<uint32_t>(a) >> 22 & 1);
  else
    return std::isnan(a) && !(std::bit_cast<uint64_t>(a) >> 51 & 1);
}

// IEEE 754-2008's minNum and maxNum that order the zeros; a signalling NaN is quieted and returned
// where MODE has IEEE. Those of halves have become quiet by being widened.
struct Order {
  explicit Order(const Wave& w) : ieee(w.mode & kIeee) {}
  bool ieee;

  template <class T>
  T pick(T a, T b, bool first) const {
    if (ieee && (signals(a) || signals(b))) return a + b;
    if (std::isnan(a)) return std::isnan(b) ? a + b : b;
    return std::isnan(b) || first ? a : b;
  }
  template <class T>
  T min(T a, T b) const {
    return pick(a, b, a == b ? std::signbit(a) : a < b);
  }
  template <class T>
  T max(T a, T b) const {
    return pick(a, b, a == b ? std::signbit(b) : a > b);
  }
  template <class T>
  T med(T a, T b, T c) const {
    if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return min(min(a, b), c);
    return max(min(a, b), min(max(a, b), c));
  }
};

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

#define ACCUMULATE(op, R, A, expr) \
  TUFF_RDNA_LANES(                 \
      op, (vector3<R, A, A, R>(    \
              w, i, [](auto a, auto b, auto c) { return Computed<R>::type(expr); }, '1', 'D')))
#define WITH_LITERAL(op, T, second, third) \
  TUFF_RDNA_LANES(                         \
      op, (vector3<T, T, T, T>(            \
              w, i, [](float a, float b, float c) { return fma_of<T>(a, b, c); }, second, third)))

#define ORDER2(op, T, expr) \
  TUFF_RDNA_ROW(op, (vector2<T, T, T>(w, i, [o = Order(w)](auto a, auto b) { return expr; })))
#define ORDER3(op, T, expr) \
  TUFF_RDNA_ROW(            \
      op, (vector3<T, T, T, T>(w, i, [o = Order(w)](auto a, auto b, auto c) { return expr; })))

// fma of the width of T; of f16 it is exact in double, and rounded where it is stored.
template <class T>
float fma_of(float a, float b, float c) {
  if constexpr (std::is_same_v<T, F16>) {
    return odd_from_f64(double(a) * double(b) + double(c));
  } else {
    return std::fma(a, b, c);
  }
}

constexpr Meaning kRows[] = {
    VECTOR2(V_ADD_F32, float, float, float, a + b),
    VECTOR2(V_SUB_F32, float, float, float, a - b),
    VECTOR2(V_SUBREV_F32, float, float, float, b - a),
    VECTOR2(V_MUL_F32, float, float, float, a* b),
    VECTOR2(V_MUL_DX9_ZERO_F32, float, float, float, dx9_mul(a, b)),
    ORDER2(V_MIN_F32, float, o.min(a, b)),
    ORDER2(V_MAX_F32, float, o.max(a, b)),
    ACCUMULATE(V_FMAC_F32, float, float, std::fma(a, b, c)),
    ACCUMULATE(V_FMAC_F16, F16, F16, fma_of<F16>(a, b, c)),
    WITH_LITERAL(V_FMAAK_F32, float, '1', 'K'),
    WITH_LITERAL(V_FMAMK_F32, float, 'K', '1'),
    WITH_LITERAL(V_FMAAK_F16, F16, '1', 'K'),
    WITH_LITERAL(V_FMAMK_F16, F16, 'K', '1'),
    VECTOR3(V_FMA_F32, float, float, float, float, std::fma(a, b, c)),
    VECTOR3(V_FMA_F64, double, double, double, double, std::fma(a, b, c)),
    VECTOR3(V_FMA_F16, F16, F16, F16, F16, fma_of<F16>(a, b, c)),
    ORDER3(V_MIN3_F32, float, o.min(o.min(a, b), c)),
    ORDER3(V_MAX3_F32, float, o.max(o.max(a, b), c)),
    ORDER3(V_MED3_F32, float, o.med(a, b, c)),
    ORDER3(V_MIN3_F16, F16, o.min(o.min(a, b), c)),
    ORDER3(V_MAX3_F16, F16, o.max(o.max(a, b), c)),
    ORDER3(V_MED3_F16, F16, o.med(a, b, c)),
    ORDER3(V_MAXMIN_F32, float, o.min(o.max(a, b), c)),
    ORDER3(V_MINMAX_F32, float, o.max(o.min(a, b), c)),
    ORDER3(V_MAXMIN_F16, F16, o.min(o.max(a, b), c)),
    ORDER3(V_MINMAX_F16, F16, o.max(o.min(a, b), c)),
    VECTOR2(V_ADD_F64, double, double, double, a + b),
    VECTOR2(V_MUL_F64, double, double, double, a* b),
    ORDER2(V_MIN_F64, double, o.min(a, b)),
    ORDER2(V_MAX_F64, double, o.max(a, b)),
    VECTOR2(V_ADD_F16, F16, F16, F16, a + b),
    VECTOR2(V_SUB_F16, F16, F16, F16, a - b),
    VECTOR2(V_SUBREV_F16, F16, F16, F16, b - a),
    VECTOR2(V_MUL_F16, F16, F16, F16, a* b),
    ORDER2(V_MIN_F16, F16, o.min(a, b)),
    ORDER2(V_MAX_F16, F16, o.max(a, b)),
    VECTOR2(V_LDEXP_F32, float, float, int32_t, std::ldexp(a, b)),
    VECTOR2(V_LDEXP_F64, double, double, int32_t, std::ldexp(a, b)),
    VECTOR2(V_LDEXP_F16, F16, F16, int16_t, std::ldexp(a, b)),
    VECTOR1(V_FRACT_F32, float, float, fract_of(a)),
    VECTOR1(V_TRUNC_F32, float, float, std::trunc(a)),
    VECTOR1(V_CEIL_F32, float, float, std::ceil(a)),
    VECTOR1(V_RNDNE_F32, float, float, std::nearbyint(a)),
    VECTOR1(V_FLOOR_F32, float, float, std::floor(a)),
    VECTOR1(V_EXP_F32, float, float, exp2_of(a)),
    VECTOR1(V_LOG_F32, float, float, log2_of(a)),
    VECTOR1(V_RCP_F32, float, float, rcp_of(a)),
    VECTOR1(V_RCP_IFLAG_F32, float, float, rcp_of(a)),
    VECTOR1(V_RSQ_F32, float, float, rsq_of(a)),
    VECTOR1(V_SQRT_F32, float, float, sqrt_of(a)),
    VECTOR1(V_SIN_F32, float, float, sin_of(a)),
    VECTOR1(V_COS_F32, float, float, cos_of(a)),
    VECTOR1(V_FREXP_EXP_I32_F32, int32_t, float, exponent_of(a)),
    VECTOR1(V_FREXP_MANT_F32, float, float, mantissa_of(a)),
    VECTOR1(V_FREXP_EXP_I32_F64, int32_t, double, exponent_of(a)),
    VECTOR1(V_FREXP_MANT_F64, double, double, mantissa_of(a)),
    VECTOR1(V_FREXP_EXP_I16_F16, int16_t, F16, exponent_of(a)),
    VECTOR1(V_FREXP_MANT_F16, F16, F16, mantissa_of(a)),
    VECTOR1(V_FRACT_F64, double, double, fract_of(a)),
    VECTOR1(V_TRUNC_F64, double, double, std::trunc(a)),
    VECTOR1(V_CEIL_F64, double, double, std::ceil(a)),
    VECTOR1(V_RNDNE_F64, double, double, std::nearbyint(a)),
    VECTOR1(V_FLOOR_F64, double, double, std::floor(a)),
    VECTOR1(V_RCP_F64, double, double, 1 / a),
    VECTOR1(V_RSQ_F64, double, double, 1 / std::sqrt(a)),
    VECTOR1(V_SQRT_F64, double, double, std::sqrt(a)),
    VECTOR1(V_RCP_F16, F16, F16, 1 / a),
    VECTOR1(V_SQRT_F16, F16, F16, std::sqrt(a)),
    VECTOR1(V_RSQ_F16, F16, F16, 1 / std::sqrt(a)),
    VECTOR1(V_LOG_F16, F16, F16, std::log2(a)),
    VECTOR1(V_EXP_F16, F16, F16, std::exp2(a)),
    VECTOR1(V_SIN_F16, F16, F16, sin_of(a)),
    VECTOR1(V_COS_F16, F16, F16, cos_of(a)),
    VECTOR1(V_FLOOR_F16, F16, F16, std::floor(a)),
    VECTOR1(V_CEIL_F16, F16, F16, std::ceil(a)),
    VECTOR1(V_TRUNC_F16, F16, F16, std::trunc(a)),
    VECTOR1(V_RNDNE_F16, F16, F16, std::nearbyint(a)),
    {Op::V_DIV_SCALE_F32, div_scale_lanes<float>},
    {Op::V_DIV_SCALE_F64, div_scale_lanes<double>},
    {Op::V_DIV_FMAS_F32, div_fmas_lanes<float>},
    {Op::V_DIV_FMAS_F64, div_fmas_lanes<double>},
    VECTOR3(V_DIV_FIXUP_F32, float, float, float, float, div_fixup(a, b, c)),
    VECTOR3(V_DIV_FIXUP_F64, double, double, double, double, div_fixup(a, b, c)),
    VECTOR3(V_DIV_FIXUP_F16, F16, F16, F16, F16, div_fixup_half(a, b, c)),
};

}  // namespace

std::span<const Meaning> float_meanings() { return kRows; }

}  // namespace tuff::emu::rdna

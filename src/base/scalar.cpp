// Scalar: one exact value of any dtype; its conversions, loads and stores; bulk conversion.
#include <tuff/dtype.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"

namespace tuff {
namespace {

// Truncation toward zero that saturates; NaN becomes 0. Bounds are exact powers of two.
template <class T, class F>
T saturate(F v) {
  constexpr int kDigits = std::numeric_limits<T>::digits;
  const F above = F(std::ldexp(1.0, kDigits));  // the least power of two that T cannot hold
  if (std::isnan(v)) return 0;
  if (v >= above) return std::numeric_limits<T>::max();
  if constexpr (std::is_signed_v<T>) {
    if (v < -above) return std::numeric_limits<T>::min();
  } else {
    if (v <= 0) return 0;
  }
  return T(v);
}

// Two's complement of t's width, extended to 64 bits by t's sign.
uint64_t wrap(DType t, uint64_t bits) {
  if (t == DType::Bool) return bits != 0;
  const int unused = 64 - row(t).storage_bits;
  if (is_unsigned(t)) return bits << unused >> unused;
  return uint64_t(int64_t(bits << unused) >> unused);
}

// The double nearest to a 64-bit magnitude, rounded to odd, so that a second rounding to fewer bits
// gives what a single one would have (Boldo and Melquiond, "When double rounding is odd", 2005).
double round_to_odd(uint64_t magnitude) {
  if (magnitude >> 53 == 0) return double(magnitude);
  const int shift = std::bit_width(magnitude) - 53;
  const bool sticky = (magnitude & ((uint64_t{1} << shift) - 1)) != 0;
  return std::ldexp(double(magnitude >> shift | uint64_t(sticky)), shift);
}

Scalar float_of_magnitude(DType t, bool negative, uint64_t magnitude) {
  const bool wide = t == DType::F64 || t == DType::WeakFloat;
  const double v = wide ? double(magnitude) : round_to_odd(magnitude);
  return Scalar::of_double(t, negative ? -v : v);
}

double round_to(DType t, double v) {
  switch (t) {
    case DType::F16: return double(f16_to_f32(f16_from_f64(v)));
    case DType::BF16: return double(bf16_to_f32(bf16_from_f64(v)));
    case DType::F8E4M3FN: return double(f8e4m3fn_to_f32(f8e4m3fn_from_f64(v)));
    case DType::F8E5M2: return double(f8e5m2_to_f32(f8e5m2_from_f64(v)));
    case DType::F32: return double(float(v));
    default: return v;
  }
}

template <class T>
T read(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void write(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

[[noreturn]] void no_value(const char* what) {
  fail<InvalidArgument>("{}: void has no values", what);
}

}  // namespace

Scalar Scalar::of_int(DType t, int64_t v) {
  if (t == DType::Void) no_value("Scalar::of_int");
  if (is_float(t))
    return float_of_magnitude(t, v < 0, v < 0 ? uint64_t(0) - uint64_t(v) : uint64_t(v));
  return {t, wrap(t, uint64_t(v))};
}

Scalar Scalar::of_double(DType t, double v) {
  switch (t) {
    case DType::Void: no_value("Scalar::of_double");
    case DType::Bool: return {t, uint64_t(v != 0)};
    case DType::I8: return {t, uint64_t(int64_t(saturate<int8_t>(v)))};
    case DType::U8: return {t, uint64_t(saturate<uint8_t>(v))};
    case DType::I16: return {t, uint64_t(int64_t(saturate<int16_t>(v)))};
    case DType::U16: return {t, uint64_t(saturate<uint16_t>(v))};
    case DType::I32: return {t, uint64_t(int64_t(saturate<int32_t>(v)))};
    case DType::U32: return {t, uint64_t(saturate<uint32_t>(v))};
    case DType::U64: return {t, saturate<uint64_t>(v)};
    case DType::I64:
    case DType::Index:
    case DType::WeakInt: return {t, uint64_t(saturate<int64_t>(v))};
    default: return {t, std::bit_cast<uint64_t>(round_to(t, v))};
  }
}

int64_t Scalar::as_int() const {
  if (is_float(dtype)) return saturate<int64_t>(std::bit_cast<double>(bits));
  return int64_t(bits);
}

double Scalar::as_double() const {
  if (is_float(dtype)) return std::bit_cast<double>(bits);
  return is_signed(dtype) ? double(int64_t(bits)) : double(bits);
}

Scalar Scalar::cast(DType to) const {
  if (dtype == DType::Void || to == DType::Void) no_value("Scalar::cast");
  if (is_float(dtype)) return of_double(to, std::bit_cast<double>(bits));
  if (!is_float(to)) return {to, wrap(to, bits)};
  const bool negative = is_signed(dtype) && int64_t(bits) < 0;
  return float_of_magnitude(to, negative, negative ? uint64_t(0) - bits : bits);
}

Scalar load_scalar(DType t, const void* p) {
  switch (t) {
    case DType::Void: no_value("load_scalar");
    case DType::Bool: return {t, uint64_t(read<uint8_t>(p) != 0)};
    case DType::I8: return {t, uint64_t(int64_t(read<int8_t>(p)))};
    case DType::U8: return {t, read<uint8_t>(p)};
    case DType::I16: return {t, uint64_t(int64_t(read<int16_t>(p)))};
    case DType::U16: return {t, read<uint16_t>(p)};
    case DType::I32: return {t, uint64_t(int64_t(read<int32_t>(p)))};
    case DType::U32: return {t, read<uint32_t>(p)};
    case DType::F16: return {t, std::bit_cast<uint64_t>(double(f16_to_f32(read<uint16_t>(p))))};
    case DType::BF16: return {t, std::bit_cast<uint64_t>(double(bf16_to_f32(read<uint16_t>(p))))};
    case DType::F8E4M3FN:
      return {t, std::bit_cast<uint64_t>(double(f8e4m3fn_to_f32(read<uint8_t>(p))))};
    case DType::F8E5M2:
      return {t, std::bit_cast<uint64_t>(double(f8e5m2_to_f32(read<uint8_t>(p))))};
    case DType::F32: return {t, std::bit_cast<uint64_t>(double(read<float>(p)))};
    default: return {t, read<uint64_t>(p)};
  }
}

void store_scalar(const Scalar& v, void* p) {
  switch (v.dtype) {
    case DType::Void: no_value("store_scalar");
    case DType::F16: return write(p, f16_from_f64(v.as_double()));
    case DType::BF16: return write(p, bf16_from_f64(v.as_double()));
    case DType::F8E4M3FN: return write(p, f8e4m3fn_from_f64(v.as_double()));
    case DType::F8E5M2: return write(p, f8e5m2_from_f64(v.as_double()));
    case DType::F32: return write(p, float(v.as_double()));
    default: break;
  }
  switch (size_bytes(v.dtype)) {
    case 1: return write(p, uint8_t(v.bits));
    case 2: return write(p, uint16_t(v.bits));
    case 4: return write(p, uint32_t(v.bits));
    default: return write(p, v.bits);
  }
}

}  // namespace tuff

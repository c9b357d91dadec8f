// convert(): arrays from one dtype to another. Pairs with float32 run as plain loops over native
// types, which compilers vectorize; the rest goes value by value through Scalar::cast.
#include <tuff/dtype.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "base/narrow_float.h"

namespace tuff {
namespace {

// How each dtype is held in memory and turned into float32 and back with Scalar::cast's rounding.
template <class T>
struct Plain {
  using Memory = T;
  static float to_f32(T v) { return float(v); }
  static T from_f32(float v) {
    if constexpr (std::is_floating_point_v<T>) {
      return T(v);
    } else {
      // 2^digits is exact in float32 for every T, so the comparisons saturate exactly.
      constexpr float kAbove = float(uint64_t{1} << (std::numeric_limits<T>::digits - 1)) * 2.0f;
      if (!(v < kAbove)) return std::isnan(v) ? T(0) : std::numeric_limits<T>::max();
      constexpr float kBelow = std::is_signed_v<T> ? -kAbove : 0.0f;
      if (v <= kBelow) return std::numeric_limits<T>::min();
      return T(v);
    }
  }
};
struct Truth {
  using Memory = uint8_t;
  static float to_f32(uint8_t v) { return v != 0 ? 1.0f : 0.0f; }
  static uint8_t from_f32(float v) { return v != 0; }
};
struct Half {
  using Memory = uint16_t;
  static float to_f32(uint16_t v) { return narrow::f16_to_f32(v); }
  static uint16_t from_f32(float v) { return narrow::f16_from_f32(v); }
};
struct Brain {
  using Memory = uint16_t;
  static float to_f32(uint16_t v) { return narrow::bf16_to_f32(v); }
  static uint16_t from_f32(float v) { return narrow::bf16_from_f32(v); }
};
struct F8E4M3FN {
  using Memory = uint8_t;
  static float to_f32(uint8_t v) { return narrow::f8e4m3fn_to_f32(v); }
  static uint8_t from_f32(float v) { return narrow::f8e4m3fn_from_f32(v); }
};
struct F8E5M2 {
  using Memory = uint8_t;
  static float to_f32(uint8_t v) { return narrow::f8e5m2_to_f32(v); }
  static uint8_t from_f32(float v) { return narrow::f8e5m2_from_f32(v); }
};

// Calls f with the format of t; false if t has no native loop.
template <class F>
bool with_format(DType t, F f) {
  switch (t) {
    case DType::Bool: f(Truth{}); return true;
    case DType::I8: f(Plain<int8_t>{}); return true;
    case DType::U8: f(Plain<uint8_t>{}); return true;
    case DType::I16: f(Plain<int16_t>{}); return true;
    case DType::U16: f(Plain<uint16_t>{}); return true;
    case DType::I32: f(Plain<int32_t>{}); return true;
    case DType::U32: f(Plain<uint32_t>{}); return true;
    case DType::I64: f(Plain<int64_t>{}); return true;
    case DType::U64: f(Plain<uint64_t>{}); return true;
    case DType::F16: f(Half{}); return true;
    case DType::BF16: f(Brain{}); return true;
    case DType::F8E4M3FN: f(F8E4M3FN{}); return true;
    case DType::F8E5M2: f(F8E5M2{}); return true;
    case DType::F64: f(Plain<double>{}); return true;
    default: return false;
  }
}

template <class From, class To, class F>
void each(const void* src, void* dst, size_t n, F f) {
  const auto* in = static_cast<const std::byte*>(src);
  auto* out = static_cast<std::byte*>(dst);
  for (size_t i = 0; i < n; ++i) {
    From v;
    std::memcpy(&v, in + i * sizeof(From), sizeof v);
    const To w = f(v);
    std::memcpy(out + i * sizeof(To), &w, sizeof w);
  }
}

bool convert_with_f32(DType from, const void* src, DType to, void* dst, size_t n) {
  if (to == DType::F32) {
    return with_format(from, [&](auto format) {
      using Format = decltype(format);
      each<typename Format::Memory, float>(src, dst, n, [](auto v) { return Format::to_f32(v); });
    });
  }
  if (from != DType::F32) return false;
  return with_format(to, [&](auto format) {
    using Format = decltype(format);
    each<float, typename Format::Memory>(src, dst, n, [](float v) { return Format::from_f32(v); });
  });
}

}  // namespace

void convert(DType from, const void* src, DType to, void* dst, size_t n) {
  if (from == DType::Void || to == DType::Void)
    fail<InvalidArgument>("convert: {} to {}: void has no values", name(from), name(to));
  if (n == 0) return;
  if (from == to) {
    std::memmove(dst, src, n * size_bytes(from));
    return;
  }
  if (convert_with_f32(from, src, to, dst, n)) return;
  const auto* in = static_cast<const std::byte*>(src);
  auto* out = static_cast<std::byte*>(dst);
  for (size_t i = 0; i < n; ++i)
    store_scalar(load_scalar(from, in + i * size_bytes(from)).cast(to), out + i * size_bytes(to));
}

}  // namespace tuff

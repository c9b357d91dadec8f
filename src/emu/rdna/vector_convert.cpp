// Conversions between number formats. Floats become integers towards zero, held within the range of
// the integer; NaN becomes zero.
#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {
namespace {

template <class To, class From>
To saturate(From a) {
  if (std::isnan(a)) return 0;
  const double value = double(a);
  if (value <= double(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (value >= double(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return To(value);
}

// Towards zero: the nearest, one step back where that is beyond.
uint32_t f16_toward_zero(float a) {
  const uint16_t near = narrow::f16_from_f32(a);
  const bool beyond = std::fabs(narrow::f16_to_f32(near)) > std::fabs(a);
  return beyond && !std::isinf(a) ? near - 1u : near;
}
uint32_t pack_toward_zero(float a, float b) {
  return f16_toward_zero(a) | f16_toward_zero(b) << 16;
}
template <class T>
uint32_t normalized(float a) {
  const float held =
      std::isnan(a) ? 0 : std::fmin(std::fmax(a, std::is_signed_v<T> ? -1.f : 0.f), 1.f);
  return uint16_t(T(std::nearbyint(held * float(std::numeric_limits<T>::max()))));
}
uint32_t low16(uint32_t low, uint32_t high) { return (low & 0xFFFF) | high << 16; }
uint32_t held_u16(uint32_t a) { return a > 0xFFFF ? 0xFFFF : a; }
uint32_t held_i16(int32_t a) { return uint16_t(a > 32767 ? 32767 : a < -32768 ? -32768 : a); }

void pack_f16(Wave& w, const Instruction& i) {
  vector2<uint32_t, uint16_t, uint16_t>(w, i, [](uint32_t a, uint32_t b) { return low16(a, b); });
}
void pack_byte(Wave& w, const Instruction& i) {
  vector3<uint32_t, float, uint32_t, uint32_t>(w, i, [](float a, uint32_t b, uint32_t c) {
    const uint32_t at = 8 * (b & 3);
    const float held = std::isnan(a) ? 0 : std::fmin(std::fmax(a, 0.f), 255.f);
    return (c & ~(0xFFu << at)) | uint32_t(std::nearbyint(held)) << at;
  });
}

constexpr Handler kRows[] = {
    VECTOR1(V_CVT_F32_I32, float, int32_t, a),
    VECTOR1(V_CVT_F32_U32, float, uint32_t, a),
    VECTOR1(V_CVT_F64_I32, double, int32_t, a),
    VECTOR1(V_CVT_F64_U32, double, uint32_t, a),
    VECTOR1(V_CVT_F64_F32, double, float, a),
    VECTOR1(V_CVT_F32_F64, float, double, a),
    VECTOR1(V_CVT_F16_F32, F16, float, a),
    VECTOR1(V_CVT_F32_F16, float, F16, a),
    VECTOR1(V_CVT_F16_U16, F16, uint16_t, a),
    VECTOR1(V_CVT_F16_I16, F16, int16_t, a),
    VECTOR1(V_CVT_U16_F16, uint16_t, F16, saturate<uint16_t>(a)),
    VECTOR1(V_CVT_I16_F16, int16_t, F16, saturate<int16_t>(a)),
    VECTOR1(V_CVT_I32_F32, int32_t, float, saturate<int32_t>(a)),
    VECTOR1(V_CVT_U32_F32, uint32_t, float, saturate<uint32_t>(a)),
    VECTOR1(V_CVT_I32_F64, int32_t, double, saturate<int32_t>(a)),
    VECTOR1(V_CVT_U32_F64, uint32_t, double, saturate<uint32_t>(a)),
    VECTOR1(V_CVT_NEAREST_I32_F32, int32_t, float, saturate<int32_t>(std::floor(double(a) + 0.5))),
    VECTOR1(V_CVT_FLOOR_I32_F32, int32_t, float, saturate<int32_t>(std::floor(a))),
    VECTOR1(V_CVT_I32_I16, int32_t, int16_t, a),
    VECTOR1(V_CVT_U32_U16, uint32_t, uint16_t, a),
    VECTOR1(V_CVT_F32_UBYTE0, float, uint32_t, a & 0xFF),
    VECTOR1(V_CVT_F32_UBYTE1, float, uint32_t, a >> 8 & 0xFF),
    VECTOR1(V_CVT_F32_UBYTE2, float, uint32_t, a >> 16 & 0xFF),
    VECTOR1(V_CVT_F32_UBYTE3, float, uint32_t, a >> 24),
    VECTOR2(V_CVT_PK_RTZ_F16_F32, uint32_t, float, float, pack_toward_zero(a, b)),
    BINARY(V_CVT_PK_U16_U32, uint32_t, low16(held_u16(a), held_u16(b))),
    VECTOR2(V_CVT_PK_I16_I32, uint32_t, int32_t, int32_t, low16(held_i16(a), held_i16(b))),
    VECTOR2(V_CVT_PK_I16_F32, uint32_t, float, float,
            low16(uint16_t(saturate<int16_t>(a)), uint16_t(saturate<int16_t>(b)))),
    VECTOR2(V_CVT_PK_U16_F32, uint32_t, float, float,
            low16(saturate<uint16_t>(a), saturate<uint16_t>(b))),
    VECTOR2(V_CVT_PK_NORM_I16_F32, uint32_t, float, float,
            low16(normalized<int16_t>(a), normalized<int16_t>(b))),
    VECTOR2(V_CVT_PK_NORM_U16_F32, uint32_t, float, float,
            low16(normalized<uint16_t>(a), normalized<uint16_t>(b))),
    {Op::V_PACK_B32_F16, pack_f16},
    {Op::V_CVT_PK_U8_F32, pack_byte},
};

}  // namespace

std::span<const Handler> convert_handlers() { return kRows; }

}  // namespace tuff::emu::rdna

#include "emu/rdna/float_mode.h"

#include <cfenv>
#include <initializer_list>
#include <vector>

namespace tuff::emu::rdna {
namespace {

uint16_t f16_towards_zero(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7FFFFFFF;
  const uint32_t exponent = magnitude >> 23;
  uint32_t out = (magnitude - 0x38000000) >> 13;
  if (exponent < 103) {  // less than 2^-24
    out = 0;
  } else if (exponent < 113) {  // less than 2^-14, in units of 2^-24
    out = ((magnitude & 0x7FFFFF) | 0x800000) >> (126 - exponent);
  } else if (exponent > 142) {
    out = 0x7BFF;
  }
  return uint16_t(out | (bits >> 16 & 0x8000));
}

}  // namespace

uint16_t f16_directed(float value, Rounding rounding) {
  if (!std::isfinite(value)) return narrow::f16_from_f32(value);
  const uint16_t held = f16_towards_zero(value);
  const bool away = rounding == (std::signbit(value) ? Rounding::Down : Rounding::Up);
  return narrow::f16_to_f32(held) != value && away ? uint16_t(held + 1) : held;
}

// Operations that are not named are rounded by nothing.
RoundedBy rounded_by(Op op) {
  static const auto table = [] {
    using enum Op;
    std::vector<RoundedBy> all(size_t(Op::Count));
    const auto set = [&](RoundedBy by, std::initializer_list<Op> ops) {
      for (const Op one : ops) all[size_t(one)] = by;
    };
    set(RoundedBy::Single, {V_ADD_F32, V_SUB_F32, V_SUBREV_F32, V_MUL_F32, V_MUL_DX9_ZERO_F32,
                            V_FMAC_F32, V_FMAAK_F32, V_FMAMK_F32, V_FMA_F32, V_LDEXP_F32,
                            V_FRACT_F32, V_CVT_F32_I32, V_CVT_F32_U32, V_FMA_MIX_F32});
    set(RoundedBy::Double,
        {V_ADD_F64,     V_MUL_F64,     V_FMA_F64,    V_LDEXP_F64,  V_FRACT_F64,
         V_ADD_F16,     V_SUB_F16,     V_SUBREV_F16, V_MUL_F16,    V_FMAC_F16,
         V_FMAAK_F16,   V_FMAMK_F16,   V_FMA_F16,    V_LDEXP_F16,  V_CVT_F16_F32,
         V_CVT_F16_U16, V_CVT_F16_I16, V_PK_ADD_F16, V_PK_MUL_F16, V_PK_FMA_F16});
    set(RoundedBy::Both, {V_CVT_F32_F64, V_FMA_MIXLO_F16, V_FMA_MIXHI_F16});
    set(RoundedBy::NearestOnly,
        {V_DIV_FMAS_F32, V_DIV_FMAS_F64, V_CVT_PK_U8_F32, V_DOT2_F32_F16, V_DOT2ACC_F32_F16});
    set(RoundedBy::DefaultOnly,
        {V_DOT2_F32_BF16, V_DOT2_F16_F16, V_DOT2_BF16_BF16, V_WMMA_BF16_16X16X16_BF16});
    // Products of halves are 2^-48 at least, and their sums in halves too: none is a denormal of 32
    // bits.
    set(RoundedBy::DefaultUnlessDenormal,
        {V_WMMA_F32_16X16X16_F16, V_WMMA_F32_16X16X16_BF16, V_WMMA_F16_16X16X16_F16});
    return all;
  }();
  return table[size_t(op)];
}

bool is_emulated(RoundedBy kind, uint32_t mode) {
  switch (kind) {
    case RoundedBy::Both: return rounding_of<4>(mode) == rounding_of<8>(mode);
    case RoundedBy::NearestOnly: return (mode & kRoundingBits) == 0;
    case RoundedBy::DefaultOnly: return (mode & kFloatBits) == kDefaultMode;
    case RoundedBy::DefaultUnlessDenormal:
      return ((mode | kSingleDenormals) & kFloatBits) == kDefaultMode;
    default: return true;
  }
}

HostRounding::HostRounding(RoundedBy kind, uint32_t mode) {
  constexpr int kHost[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  if (kind == RoundedBy::Nothing) return;
  const Rounding rounding = kind == RoundedBy::Double ? rounding_of<8>(mode) : rounding_of<4>(mode);
  changed_ = rounding != Rounding::Nearest;
  if (changed_) std::fesetround(kHost[size_t(rounding)]);
}

HostRounding::~HostRounding() {
  if (changed_) std::fesetround(FE_TONEAREST);
}

}  // namespace tuff::emu::rdna

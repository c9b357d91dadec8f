#include "emu/rdna/float_mode.h"

#include <cfenv>
#include <vector>

namespace tuff::emu::rdna {
namespace {

struct Row {
  Op op;
  RoundedBy by;
};

// Operations that are not named are rounded by nothing.
constexpr Row kRows[] = {
    {Op::V_ADD_F32, RoundedBy::Single},
    {Op::V_SUB_F32, RoundedBy::Single},
    {Op::V_SUBREV_F32, RoundedBy::Single},
    {Op::V_MUL_F32, RoundedBy::Single},
    {Op::V_MUL_DX9_ZERO_F32, RoundedBy::Single},
    {Op::V_FMAC_F32, RoundedBy::Single},
    {Op::V_FMAAK_F32, RoundedBy::Single},
    {Op::V_FMAMK_F32, RoundedBy::Single},
    {Op::V_FMA_F32, RoundedBy::Single},
    {Op::V_LDEXP_F32, RoundedBy::Single},
    {Op::V_FRACT_F32, RoundedBy::Single},
    {Op::V_CVT_F32_I32, RoundedBy::Single},
    {Op::V_CVT_F32_U32, RoundedBy::Single},
    {Op::V_FMA_MIX_F32, RoundedBy::Single},
    {Op::V_ADD_F64, RoundedBy::Double},
    {Op::V_MUL_F64, RoundedBy::Double},
    {Op::V_FMA_F64, RoundedBy::Double},
    {Op::V_LDEXP_F64, RoundedBy::Double},
    {Op::V_FRACT_F64, RoundedBy::Double},
    {Op::V_ADD_F16, RoundedBy::Double},
    {Op::V_SUB_F16, RoundedBy::Double},
    {Op::V_SUBREV_F16, RoundedBy::Double},
    {Op::V_MUL_F16, RoundedBy::Double},
    {Op::V_FMAC_F16, RoundedBy::Double},
    {Op::V_FMAAK_F16, RoundedBy::Double},
    {Op::V_FMAMK_F16, RoundedBy::Double},
    {Op::V_FMA_F16, RoundedBy::Double},
    {Op::V_LDEXP_F16, RoundedBy::Double},
    {Op::V_CVT_F16_F32, RoundedBy::Double},
    {Op::V_CVT_F16_U16, RoundedBy::Double},
    {Op::V_CVT_F16_I16, RoundedBy::Double},
    {Op::V_PK_ADD_F16, RoundedBy::Double},
    {Op::V_PK_MUL_F16, RoundedBy::Double},
    {Op::V_PK_FMA_F16, RoundedBy::Double},
    {Op::V_CVT_F32_F64, RoundedBy::Both},
    {Op::V_FMA_MIXLO_F16, RoundedBy::Both},
    {Op::V_FMA_MIXHI_F16, RoundedBy::Both},
    {Op::V_DIV_FMAS_F32, RoundedBy::NearestOnly},
    {Op::V_DIV_FMAS_F64, RoundedBy::NearestOnly},
    {Op::V_CVT_PK_U8_F32, RoundedBy::NearestOnly},
    {Op::V_DOT2_F32_F16, RoundedBy::NearestOnly},
    {Op::V_DOT2ACC_F32_F16, RoundedBy::NearestOnly},
    {Op::V_DOT2_F32_BF16, RoundedBy::DefaultOnly},
    {Op::V_DOT2_F16_F16, RoundedBy::DefaultOnly},
    {Op::V_DOT2_BF16_BF16, RoundedBy::DefaultOnly},
    {Op::V_WMMA_F32_16X16X16_F16, RoundedBy::DefaultOnly},
    {Op::V_WMMA_F32_16X16X16_BF16, RoundedBy::DefaultOnly},
    {Op::V_WMMA_F16_16X16X16_F16, RoundedBy::DefaultOnly},
    {Op::V_WMMA_BF16_16X16X16_BF16, RoundedBy::DefaultOnly},
};

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

RoundedBy rounded_by(Op op) {
  static const auto table = [] {
    std::vector<RoundedBy> all(size_t(Op::Count));
    for (const Row& row : kRows) all[size_t(row.op)] = row.by;
    return all;
  }();
  return table[size_t(op)];
}

bool is_emulated(RoundedBy kind, uint32_t mode) {
  switch (kind) {
    case RoundedBy::Both: return rounding_of<4>(mode) == rounding_of<8>(mode);
    case RoundedBy::NearestOnly: return (mode & kRoundingBits) == 0;
    case RoundedBy::DefaultOnly: return (mode & kFloatBits) == kDefaultMode;
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

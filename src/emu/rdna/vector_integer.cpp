// Integer and bit arithmetic of vector instructions.
#include <algorithm>

#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {
namespace {

int32_t sign24(uint32_t a) { return int32_t(a << 8) >> 8; }

uint32_t bfe_unsigned(uint32_t a, uint32_t b, uint32_t c) {
  return a >> (b & 31) & ((1u << (c & 31)) - 1);
}
uint32_t bfe_signed(int32_t a, uint32_t b, uint32_t c) {
  const uint32_t width = c & 31;
  if (width == 0) return 0;
  // A field that ends beyond bit 31 takes the sign from there: the shift before is arithmetic.
  const uint32_t shifted = uint32_t(a >> (b & 31)) & ((1u << width) - 1);
  return uint32_t(int32_t(shifted << (32 - width)) >> (32 - width));
}

// Byte `selector` of the eight bytes a:b, or a constant. ISA 16.12, V_PERM_B32.
uint32_t permuted_byte(uint64_t bytes, uint32_t selector) {
  if (selector >= 13) return 0xFF;
  if (selector == 12) return 0;
  if (selector >= 8) return bytes >> (16 * (selector - 8) + 15) & 1 ? 0xFF : 0;
  return uint32_t(bytes >> (8 * selector)) & 0xFF;
}
uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t bytes = uint64_t(a) << 32 | b;
  uint32_t out = 0;
  for (int k = 0; k < 32; k += 8) out |= permuted_byte(bytes, c >> k & 0xFF) << k;
  return out;
}

uint32_t difference(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
uint32_t sad8(uint32_t a, uint32_t b, uint32_t c, bool masked) {
  for (int k = 0; k < 32; k += 8) {
    const uint32_t other = b >> k & 0xFF;
    if (!masked || other != 0) c += difference(a >> k & 0xFF, other);
  }
  return c;
}
uint32_t lerp8(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t out = 0;
  for (int k = 0; k < 32; k += 8) {
    out |= (((a >> k & 0xFF) + (b >> k & 0xFF) + (c >> k & 1)) >> 1) << k;
  }
  return out;
}

template <class T>
T med3(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// Additions saturate where the instruction says clamp.
template <class T, bool Add, bool Reversed = false>
void add_or_subtract(Wave& w, const Instruction& i) {
  const bool clamp = i.clamp;
  vector2<T, T, T>(w, i, [clamp](T a, T b) {
    using Limits = std::numeric_limits<T>;
    if (Reversed) std::swap(a, b);
    const int64_t sum = Add ? int64_t(a) + b : int64_t(a) - b;
    return T(clamp ? std::clamp<int64_t>(sum, Limits::min(), Limits::max()) : sum);
  });
}

#define MIN_MAX(S, T)                                                         \
  BINARY(V_MIN_##S, T, std::min(a, b)), BINARY(V_MAX_##S, T, std::max(a, b)), \
      TERNARY(V_MIN3_##S, T, std::min(std::min(a, b), c)),                    \
      TERNARY(V_MAX3_##S, T, std::max(std::max(a, b), c)), TERNARY(V_MED3_##S, T, med3(a, b, c))

constexpr Handler kRows[] = {
    UNARY(V_MOV_B32, uint32_t, a),
    UNARY(V_MOV_B16, uint16_t, a),
    UNARY(V_NOT_B32, uint32_t, ~a),
    UNARY(V_NOT_B16, uint16_t, ~a),
    UNARY(V_BFREV_B32, uint32_t, reverse_bits(a)),
    VECTOR1(V_CLZ_I32_U32, int32_t, uint32_t, a == 0 ? -1 : std::countl_zero(a)),
    VECTOR1(V_CTZ_I32_B32, int32_t, uint32_t, a == 0 ? -1 : std::countr_zero(a)),
    UNARY(V_CLS_I32, int32_t, leading_sign_bits(a)),
    {Op::V_ADD_NC_U32, add_or_subtract<uint32_t, true>},
    {Op::V_SUB_NC_U32, add_or_subtract<uint32_t, false>},
    {Op::V_SUBREV_NC_U32, add_or_subtract<uint32_t, false, true>},
    {Op::V_ADD_NC_I32, add_or_subtract<int32_t, true>},
    {Op::V_SUB_NC_I32, add_or_subtract<int32_t, false>},
    BINARY(V_MUL_I32_I24, uint32_t, uint32_t(sign24(a)) * uint32_t(sign24(b))),
    BINARY(V_MUL_HI_I32_I24, uint32_t, uint64_t(int64_t(sign24(a)) * sign24(b)) >> 32),
    BINARY(V_MUL_U32_U24, uint32_t, (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    BINARY(V_MUL_HI_U32_U24, uint32_t, uint64_t(a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32),
    BINARY(V_MUL_LO_U32, uint32_t, a* b),
    BINARY(V_MUL_HI_U32, uint32_t, uint64_t(a) * b >> 32),
    VECTOR2(V_MUL_HI_I32, uint32_t, int32_t, int32_t, uint64_t(int64_t(a) * b) >> 32),
    BINARY(V_LSHLREV_B32, uint32_t, b << (a & 31)),
    BINARY(V_LSHRREV_B32, uint32_t, b >> (a & 31)),
    VECTOR2(V_ASHRREV_I32, int32_t, uint32_t, int32_t, b >> (a & 31)),
    BINARY(V_AND_B32, uint32_t, a& b),
    BINARY(V_OR_B32, uint32_t, a | b),
    BINARY(V_XOR_B32, uint32_t, a ^ b),
    BINARY(V_XNOR_B32, uint32_t, ~(a ^ b)),
    BINARY(V_AND_B16, uint16_t, a& b),
    BINARY(V_OR_B16, uint16_t, a | b),
    BINARY(V_XOR_B16, uint16_t, a ^ b),
    VECTOR2(V_LSHLREV_B64, uint64_t, uint32_t, uint64_t, b << (a & 63)),
    VECTOR2(V_LSHRREV_B64, uint64_t, uint32_t, uint64_t, b >> (a & 63)),
    VECTOR2(V_ASHRREV_I64, int64_t, uint32_t, int64_t, b >> (a & 63)),
    BINARY(V_LSHLREV_B16, uint16_t, b << (a & 15)),
    BINARY(V_LSHRREV_B16, uint16_t, b >> (a & 15)),
    VECTOR2(V_ASHRREV_I16, int16_t, uint16_t, int16_t, b >> (a & 15)),
    {Op::V_ADD_NC_U16, add_or_subtract<uint16_t, true>},
    {Op::V_SUB_NC_U16, add_or_subtract<uint16_t, false>},
    {Op::V_ADD_NC_I16, add_or_subtract<int16_t, true>},
    {Op::V_SUB_NC_I16, add_or_subtract<int16_t, false>},
    BINARY(V_MUL_LO_U16, uint16_t, uint32_t(a) * b),
    BINARY(V_BFM_B32, uint32_t, ((1u << (a & 31)) - 1) << (b & 31)),
    BINARY(V_BCNT_U32_B32, uint32_t, uint32_t(std::popcount(a)) + b),
    TERNARY(V_MAD_I32_I24, uint32_t, uint32_t(sign24(a)) * uint32_t(sign24(b)) + c),
    TERNARY(V_MAD_U32_U24, uint32_t, (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    TERNARY(V_MAD_U16, uint16_t, uint32_t(a) * b + c),
    TERNARY(V_MAD_I16, uint16_t, uint32_t(a) * b + c),
    VECTOR3(V_MAD_U32_U16, uint32_t, uint16_t, uint16_t, uint32_t, uint32_t(a) * b + c),
    VECTOR3(V_MAD_I32_I16, uint32_t, int16_t, int16_t, uint32_t, uint32_t(int32_t(a) * b) + c),
    TERNARY(V_BFE_U32, uint32_t, bfe_unsigned(a, b, c)),
    VECTOR3(V_BFE_I32, uint32_t, int32_t, uint32_t, uint32_t, bfe_signed(a, b, c)),
    TERNARY(V_BFI_B32, uint32_t, (a & b) | (~a & c)),
    TERNARY(V_ALIGNBIT_B32, uint32_t, (uint64_t(a) << 32 | b) >> (c & 31)),
    TERNARY(V_ALIGNBYTE_B32, uint32_t, (uint64_t(a) << 32 | b) >> (8 * (c & 3))),
    TERNARY(V_PERM_B32, uint32_t, permute(a, b, c)),
    TERNARY(V_LERP_U8, uint32_t, lerp8(a, b, c)),
    TERNARY(V_SAD_U8, uint32_t, sad8(a, b, c, false)),
    TERNARY(V_MSAD_U8, uint32_t, sad8(a, b, c, true)),
    TERNARY(V_SAD_U32, uint32_t, difference(a, b) + c),
    MIN_MAX(I32, int32_t),
    MIN_MAX(U32, uint32_t),
    MIN_MAX(I16, int16_t),
    MIN_MAX(U16, uint16_t),
    TERNARY(V_MAXMIN_U32, uint32_t, std::min(std::max(a, b), c)),
    TERNARY(V_MINMAX_U32, uint32_t, std::max(std::min(a, b), c)),
    TERNARY(V_MAXMIN_I32, int32_t, std::min(std::max(a, b), c)),
    TERNARY(V_MINMAX_I32, int32_t, std::max(std::min(a, b), c)),
    TERNARY(V_XOR3_B32, uint32_t, a ^ b ^ c),
    TERNARY(V_XAD_U32, uint32_t, (a ^ b) + c),
    TERNARY(V_LSHL_ADD_U32, uint32_t, (a << (b & 31)) + c),
    TERNARY(V_ADD_LSHL_U32, uint32_t, (a + b) << (c & 31)),
    TERNARY(V_ADD3_U32, uint32_t, a + b + c),
    TERNARY(V_LSHL_OR_B32, uint32_t, (a << (b & 31)) | c),
    TERNARY(V_AND_OR_B32, uint32_t, (a & b) | c),
    TERNARY(V_OR3_B32, uint32_t, a | b | c),
};

}  // namespace

std::span<const Handler> integer_handlers() { return kRows; }

}  // namespace tuff::emu::rdna

// Scalar arithmetic. SCC is said with each row: unchanged, "result is not zero", or a carry.
#include <algorithm>

#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {
namespace {

template <class T>
T scalar_source(const Wave& w, const Instruction& i, char field) {
  const Operand& o = *i.find(field);
  return from_bits<T>(uniform_bits<T>(w, i, o));
}

template <class T>
void write_result(Wave& w, const Instruction& i, T value) {
  const uint16_t index = i.find('D')->index;
  const uint64_t bits = uint64_t(value);
  write_scalar(w, index, uint32_t(bits));
  if constexpr (sizeof(T) == 8) write_scalar(w, index + 1u, uint32_t(bits >> 32));
}

// f takes the sources and returns the result; it may set `scc`, which is kept then.
template <class R, class A, class F>
void scalar1(Wave& w, const Instruction& i, F f) {
  bool scc = w.scc;
  const R r = f(scalar_source<A>(w, i, '0'), scc);
  write_result<R>(w, i, r);
  w.scc = scc;
}
template <class R, class A, class B, class F>
void scalar2(Wave& w, const Instruction& i, F f) {
  bool scc = w.scc;
  const R r = f(scalar_source<A>(w, i, '0'), scalar_source<B>(w, i, '1'), scc);
  write_result<R>(w, i, r);
  w.scc = scc;
}

template <class T>
T nonzero(T value, bool& scc) {
  scc = value != 0;
  return value;
}
uint32_t carry_out(uint64_t sum, bool& scc) {
  scc = sum >> 32 & 1;
  return uint32_t(sum);
}
uint32_t overflow(int64_t sum, bool& scc) {
  scc = sum != int64_t(int32_t(sum));
  return uint32_t(sum);
}
template <class T>
T first_if(bool first, T a, T b, bool& scc) {
  scc = first;
  return first ? a : b;
}
uint64_t extract(uint64_t a, uint32_t b, int width_mask, bool negative) {
  const uint32_t at = b & uint32_t(width_mask), count = std::min(b >> 16 & 127, 64u);
  if (count == 0) return 0;
  const uint64_t shifted = negative ? uint64_t(int64_t(a) >> at) : a >> at;
  const int rest = int(64 - count);
  return negative ? uint64_t(int64_t(shifted << rest) >> rest) : shifted << rest >> rest;
}
uint64_t double_bits(uint32_t a) {
  uint64_t out = 0;
  for (int k = 0; k < 32; ++k) out |= uint64_t(a >> k & 1) * 3 << (2 * k);
  return out;
}

// EXEC combined with a source; the old EXEC is the result.
template <class F>
void save_exec(Wave& w, const Instruction& i, F f) {
  const uint32_t a = scalar_source<uint32_t>(w, i, '0'), old = w.exec();
  const uint32_t now = f(a, old);
  write_result<uint32_t>(w, i, old);
  write_scalar(w, source::ExecLo, now);
  w.scc = now != 0;
}
template <class F>
void write_exec(Wave& w, const Instruction& i, F f) {
  const uint32_t now = f(scalar_source<uint32_t>(w, i, '0'), w.exec());
  write_scalar(w, source::ExecLo, now);
  write_result<uint32_t>(w, i, now);
  w.scc = now != 0;
}

template <class A, class B, class F>
void scalar_compare(Wave& w, const Instruction& i, F f) {
  w.scc = f(scalar_source<A>(w, i, '0'), scalar_source<B>(w, i, '1'));
}

// SOPK: the register and 16 bits, sign-extended.
template <class T, class F>
void constant_compare(Wave& w, const Instruction& i, F f) {
  const uint32_t immediate = i.find('I')->value;
  const T b = std::is_signed_v<T> ? T(int16_t(immediate)) : T(immediate);
  w.scc = f(T(read_scalar(w, i.find('D')->index)), b);
}
int32_t immediate16(const Instruction& i) { return int16_t(i.find('I')->value); }

template <class T>
void conditional_move(Wave& w, const Instruction& i) {
  if (w.scc) write_result<T>(w, i, scalar_source<T>(w, i, '0'));
}
void move_constant(Wave& w, const Instruction& i) {
  write_result<uint32_t>(w, i, uint32_t(immediate16(i)));
}
void conditional_move_constant(Wave& w, const Instruction& i) {
  if (w.scc) move_constant(w, i);
}
void add_constant(Wave& w, const Instruction& i) {
  bool scc = false;
  const int64_t a = int32_t(read_scalar(w, i.find('D')->index));
  write_result<uint32_t>(w, i, overflow(a + immediate16(i), scc));
  w.scc = scc;
}
void multiply_constant(Wave& w, const Instruction& i) {
  write_result<uint32_t>(w, i, read_scalar(w, i.find('D')->index) * uint32_t(immediate16(i)));
}
template <bool set, class T>
void set_bit(Wave& w, const Instruction& i) {
  const uint32_t index = i.find('D')->index;
  const T old = sizeof(T) == 8 ? T(read_scalar64(w, index)) : T(read_scalar(w, index));
  const T bit = T(1) << (scalar_source<uint32_t>(w, i, '0') & (sizeof(T) * 8 - 1));
  write_result<T>(w, i, set ? old | bit : old & ~bit);
}

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

#define S1(op, R, A, expr) \
  TUFF_RDNA_ROW(op,        \
                (scalar1<R, A>(w, i, [](auto a, [[maybe_unused]] bool& scc) { return R(expr); })))
#define S2(op, R, A, B, expr)                                                                \
  TUFF_RDNA_ROW(op, (scalar2<R, A, B>(w, i, [](auto a, auto b, [[maybe_unused]] bool& scc) { \
                  return R(expr);                                                            \
                })))
#define BITS(op, expr)                                  \
  S2(op##_B32, u32, u32, u32, nonzero<u32>(expr, scc)), \
      S2(op##_B64, u64, u64, u64, nonzero<u64>(expr, scc))
#define SAVE(op, expr) TUFF_RDNA_ROW(op, (save_exec(w, i, [](u32 a, u32 exec) { return expr; })))
#define WRITE(op, expr) TUFF_RDNA_ROW(op, (write_exec(w, i, [](u32 a, u32 exec) { return expr; })))
#define BITCMP(op, A, B, expr) \
  TUFF_RDNA_ROW(op, (scalar_compare<A, B>(w, i, [](auto a, auto b) -> bool { return expr; })))
#define CMP(op, T, expr) BITCMP(op, T, T, expr)
#define CMPK(op, T, expr) \
  TUFF_RDNA_ROW(op, (constant_compare<T>(w, i, [](auto a, auto b) -> bool { return expr; })))

#define ORDERED(row, op, S, T)                                                          \
  row(op##_EQ_##S, T, a == b), row(op##_LG_##S, T, a != b), row(op##_GT_##S, T, a > b), \
      row(op##_GE_##S, T, a >= b), row(op##_LT_##S, T, a < b), row(op##_LE_##S, T, a <= b)

constexpr Handler kRows[] = {
    S1(S_MOV_B32, u32, u32, a),
    S1(S_MOV_B64, u64, u64, a),
    {Op::S_CMOV_B32, conditional_move<u32>},
    {Op::S_CMOV_B64, conditional_move<u64>},
    S1(S_BREV_B32, u32, u32, reverse_bits(a)),
    S1(S_BREV_B64, u64, u64, reverse_bits(a)),
    S1(S_CTZ_I32_B32, u32, u32, a == 0 ? -1 : std::countr_zero(a)),
    S1(S_CTZ_I32_B64, u32, u64, a == 0 ? -1 : std::countr_zero(a)),
    S1(S_CLZ_I32_U32, u32, u32, a == 0 ? -1 : std::countl_zero(a)),
    S1(S_CLZ_I32_U64, u32, u64, a == 0 ? -1 : std::countl_zero(a)),
    S1(S_CLS_I32, u32, i32, leading_sign_bits(a)),
    S1(S_CLS_I32_I64, u32, i64, leading_sign_bits(a)),
    S1(S_SEXT_I32_I8, u32, u32, int8_t(a)),
    S1(S_SEXT_I32_I16, u32, u32, int16_t(a)),
    {Op::S_BITSET0_B32, set_bit<false, u32>},
    {Op::S_BITSET1_B32, set_bit<true, u32>},
    {Op::S_BITSET0_B64, set_bit<false, u64>},
    {Op::S_BITSET1_B64, set_bit<true, u64>},
    S1(S_BITREPLICATE_B64_B32, u64, u32, double_bits(a)),
    S1(S_ABS_I32, u32, u32, nonzero<u32>(i32(a) < 0 ? 0u - a : a, scc)),
    S1(S_BCNT0_I32_B32, u32, u32, nonzero<u32>(u32(std::popcount(~a)), scc)),
    S1(S_BCNT0_I32_B64, u32, u64, nonzero<u32>(u32(std::popcount(~a)), scc)),
    S1(S_BCNT1_I32_B32, u32, u32, nonzero<u32>(u32(std::popcount(a)), scc)),
    S1(S_BCNT1_I32_B64, u32, u64, nonzero<u32>(u32(std::popcount(a)), scc)),
    S1(S_NOT_B32, u32, u32, nonzero<u32>(~a, scc)),
    S1(S_NOT_B64, u64, u64, nonzero<u64>(~a, scc)),
    SAVE(S_AND_SAVEEXEC_B32, a& exec),
    SAVE(S_OR_SAVEEXEC_B32, a | exec),
    SAVE(S_XOR_SAVEEXEC_B32, a ^ exec),
    SAVE(S_NAND_SAVEEXEC_B32, ~(a& exec)),
    SAVE(S_NOR_SAVEEXEC_B32, ~(a | exec)),
    SAVE(S_XNOR_SAVEEXEC_B32, ~(a ^ exec)),
    SAVE(S_AND_NOT0_SAVEEXEC_B32, ~a& exec),
    SAVE(S_OR_NOT0_SAVEEXEC_B32, ~a | exec),
    SAVE(S_AND_NOT1_SAVEEXEC_B32, a & ~exec),
    SAVE(S_OR_NOT1_SAVEEXEC_B32, a | ~exec),
    WRITE(S_AND_NOT0_WREXEC_B32, ~a& exec),
    WRITE(S_AND_NOT1_WREXEC_B32, a & ~exec),
    S2(S_ADD_U32, u32, u32, u32, carry_out(u64(a) + b, scc)),
    S2(S_SUB_U32, u32, u32, u32, carry_out(u64(a) - b, scc)),
    S2(S_ADD_I32, u32, i32, i32, overflow(i64(a) + b, scc)),
    S2(S_SUB_I32, u32, i32, i32, overflow(i64(a) - b, scc)),
    S2(S_ADDC_U32, u32, u32, u32, carry_out(u64(a) + b + scc, scc)),
    S2(S_SUBB_U32, u32, u32, u32, carry_out(u64(a) - b - scc, scc)),
    S2(S_ABSDIFF_I32, u32, i32, i32, nonzero<u32>(u32(a > b ? i64(a) - b : i64(b) - a), scc)),
    S2(S_LSHL_B32, u32, u32, u32, nonzero<u32>(a << (b & 31), scc)),
    S2(S_LSHL_B64, u64, u64, u32, nonzero<u64>(a << (b & 63), scc)),
    S2(S_LSHR_B32, u32, u32, u32, nonzero<u32>(a >> (b & 31), scc)),
    S2(S_LSHR_B64, u64, u64, u32, nonzero<u64>(a >> (b & 63), scc)),
    S2(S_ASHR_I32, u32, i32, u32, nonzero<u32>(u32(a >> (b & 31)), scc)),
    S2(S_ASHR_I64, u64, i64, u32, nonzero<u64>(u64(a >> (b & 63)), scc)),
    S2(S_LSHL1_ADD_U32, u32, u32, u32, (scc = (u64(a) << 1) + b > ~0u, (a << 1) + b)),
    S2(S_LSHL2_ADD_U32, u32, u32, u32, (scc = (u64(a) << 2) + b > ~0u, (a << 2) + b)),
    S2(S_LSHL3_ADD_U32, u32, u32, u32, (scc = (u64(a) << 3) + b > ~0u, (a << 3) + b)),
    S2(S_LSHL4_ADD_U32, u32, u32, u32, (scc = (u64(a) << 4) + b > ~0u, (a << 4) + b)),
    S2(S_MIN_I32, u32, i32, i32, first_if(a < b, a, b, scc)),
    S2(S_MIN_U32, u32, u32, u32, first_if(a < b, a, b, scc)),
    S2(S_MAX_I32, u32, i32, i32, first_if(a >= b, a, b, scc)),
    S2(S_MAX_U32, u32, u32, u32, first_if(a >= b, a, b, scc)),
    BITS(S_AND, a& b),
    BITS(S_OR, a | b),
    BITS(S_XOR, a ^ b),
    BITS(S_NAND, ~(a& b)),
    BITS(S_NOR, ~(a | b)),
    BITS(S_XNOR, ~(a ^ b)),
    BITS(S_AND_NOT1, a & ~b),
    BITS(S_OR_NOT1, a | ~b),
    S2(S_BFE_U32, u32, u32, u32, nonzero<u32>(u32(extract(a, b, 31, false)), scc)),
    S2(S_BFE_I32, u32, u32, u32, nonzero<u32>(u32(extract(u64(i64(i32(a))), b, 31, true)), scc)),
    S2(S_BFE_U64, u64, u64, u32, nonzero<u64>(extract(a, b, 63, false), scc)),
    S2(S_BFE_I64, u64, u64, u32, nonzero<u64>(extract(a, b, 63, true), scc)),
    S2(S_BFM_B32, u32, u32, u32, ((1u << (a & 31)) - 1) << (b & 31)),
    S2(S_BFM_B64, u64, u32, u32, ((u64(1) << (a & 63)) - 1) << (b & 63)),
    S2(S_MUL_I32, u32, u32, u32, a* b),
    S2(S_MUL_HI_U32, u32, u32, u32, u64(a) * b >> 32),
    S2(S_MUL_HI_I32, u32, i32, i32, u64(i64(a) * b) >> 32),
    S2(S_CSELECT_B32, u32, u32, u32, scc ? a : b),
    S2(S_CSELECT_B64, u64, u64, u64, scc ? a : b),
    S2(S_PACK_LL_B32_B16, u32, u32, u32, (a & 0xFFFF) | b << 16),
    S2(S_PACK_LH_B32_B16, u32, u32, u32, (a & 0xFFFF) | (b & 0xFFFF0000)),
    S2(S_PACK_HH_B32_B16, u32, u32, u32, a >> 16 | (b & 0xFFFF0000)),
    S2(S_PACK_HL_B32_B16, u32, u32, u32, a >> 16 | b << 16),
    ORDERED(CMP, S_CMP, I32, i32),
    ORDERED(CMP, S_CMP, U32, u32),
    CMP(S_CMP_EQ_U64, u64, a == b),
    CMP(S_CMP_LG_U64, u64, a != b),
    BITCMP(S_BITCMP0_B32, u32, u32, (a >> (b & 31) & 1) == 0),
    BITCMP(S_BITCMP1_B32, u32, u32, (a >> (b & 31) & 1) == 1),
    BITCMP(S_BITCMP0_B64, u64, u32, (a >> (b & 63) & 1) == 0),
    BITCMP(S_BITCMP1_B64, u64, u32, (a >> (b & 63) & 1) == 1),
    ORDERED(CMPK, S_CMPK, I32, i32),
    ORDERED(CMPK, S_CMPK, U32, u32),
    {Op::S_MOVK_I32, move_constant},
    {Op::S_CMOVK_I32, conditional_move_constant},
    {Op::S_ADDK_I32, add_constant},
    {Op::S_MULK_I32, multiply_constant},
};

}  // namespace

std::span<const Handler> scalar_handlers() { return kRows; }

}  // namespace tuff::emu::rdna

#include "render/c_dialect.h"

namespace tuff::render {

namespace {

// Quotients that are total.
constexpr const char* kDividend = R"c(
#ifndef TUFF_DIVIDEND
#define TUFF_DIVIDEND(T, x) (x)
#endif
)c";
constexpr const char* kQuotient = R"c(
static inline $T div_$T($T a, $T b) {
  return b == 0 ? 0 : ($T)-1 < 0 && b == ($T)-1 ? ($T)((u64)0 - (u64)a) : TUFF_DIVIDEND($T, a) / b; }
static inline $T mod_$T($T a, $T b) {
  return b == 0 || (($T)-1 < 0 && b == ($T)-1) ? 0 : TUFF_DIVIDEND($T, a) % b; }
)c";
// Rounds to odd, so that a second rounding is exact.
constexpr const char* kRoundToOdd = R"c(
#ifndef TUFF_NO_F64
#ifndef TUFF_ABS_F64
#define TUFF_ABS_F64 __builtin_fabs
#endif
static inline f32 f32_odd_of_f64(f64 d) {
  union { f32 f; u32 u; } r = {(f32)d};
  if ((f64)r.f == d || d != d) return r.f;
  if (TUFF_ABS_F64((f64)r.f) > TUFF_ABS_F64(d)) r.u -= 1;
  r.u |= 1;
  return r.f; }
#endif
)c";

// RESULT is of `old`. Until no other work-item has changed the element since it was read.
constexpr const char* kExchangeUntil = R"c(
#define TUFF_EXCHANGE_UNTIL(T, place, RESULT) do { \
  TUFF_GLOBAL u32* const word = place; \
  u32 seen = *(volatile TUFF_GLOBAL u32*)word, held; \
  do { \
    held = seen; \
    const T old = TUFF_AS(T, held); \
    const T result = RESULT; \
    seen = TUFF_EXCHANGE(word, held, TUFF_AS(u32, result)); \
  } while (seen != held); } while (0)
)c";

}  // namespace

void add_arithmetic(Prelude& p) {
  p.add({"TUFF_DIVIDEND("}, kDividend);
  for (const char* type : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"})
    p.add({"div_$T(", "mod_$T("}, kQuotient, {{"$T", type}});
  p.add({"f32_odd_of_f64("}, kRoundToOdd);
}

void add_atomics(Prelude& p) { p.add({"TUFF_EXCHANGE_UNTIL("}, kExchangeUntil); }

std::string workgroup_attributes(const kernel::LinearKernel& k, const Target&) {
  return fmt::format("TUFF_KERNEL({}, {}, {}) ", k.local[0], k.local[1], k.local[2]);
}

}  // namespace tuff::render

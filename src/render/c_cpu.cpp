// The dialect for the CPU: clang's C with its vector extensions.
#include "render/c_dialect.h"
#include "base/compilers.h"

namespace tuff::render {
namespace {

// Conversions that C lacks are functions of the prelude: F16 through F16C where the CPU has it,
// else by integer arithmetic.
constexpr const char* kCpuPrelude = R"c(#pragma STDC FP_CONTRACT ON
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64;
#define TUFF_VECTOR(T, N) \
  typedef T T##x##N __attribute__((ext_vector_type(N))); \
  typedef T T##x##N##u __attribute__((ext_vector_type(N), aligned(sizeof(T)), may_alias)); \
  typedef T T##x##N##l __attribute__((ext_vector_type(N), aligned(64), may_alias));
/* Past the caches, which takes whole lines: memory that is adopted may begin inside one. */
#define TUFF_STREAM(V, value, place) do { \
  void* const p_ = (void*)place; \
  if (((u64)p_ & 63) == 0) __builtin_nontemporal_store(value, (V##l*)p_); \
  else *(V##u*)p_ = value; } while (0)
#define TUFF_VECTORS(N) \
  TUFF_VECTOR(i8, N) TUFF_VECTOR(u8, N) TUFF_VECTOR(i16, N) TUFF_VECTOR(u16, N) \
  TUFF_VECTOR(i32, N) TUFF_VECTOR(u32, N) TUFF_VECTOR(i64, N) TUFF_VECTOR(u64, N) \
  TUFF_VECTOR(f32, N) TUFF_VECTOR(f64, N)
TUFF_VECTORS(2) TUFF_VECTORS(4) TUFF_VECTORS(8) TUFF_VECTORS(16) TUFF_VECTORS(32) TUFF_VECTORS(64)
/* What was stored past the caches stands before what is stored from now on. */
#if defined(__x86_64__)
#define TUFF_STORE_FENCE() __builtin_ia32_sfence()
#else
#define TUFF_STORE_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
/* The lanes of a mask (0 or -1) of contiguous memory: what is outside it is not touched. */
#define TUFF_MASKED(T, N) \
  static inline T##x##N get_##T##x##N(const T* p, i32x##N m) { \
    T##x##N v = (T##x##N)(0); \
    if (TUFF_ALL(m)) return *(const T##x##N##u*)p; \
    for (int l = 0; l < N; l++) if (m[l]) v[l] = p[l]; \
    return v; } \
  static inline void put_##T##x##N(T* p, i32x##N m, T##x##N v) { \
    if (TUFF_ALL(m)) *(T##x##N##u*)p = v; \
    else for (int l = 0; l < N; l++) if (m[l]) p[l] = v[l]; }
#define TUFF_MASKED_HALVES(T, N, H) \
  static inline T##x##N get_##T##x##N(const T* p, i32x##N m) { \
    T##x##N v; v.lo = get_##T##x##H(p, m.lo); v.hi = get_##T##x##H(p + H, m.hi); return v; } \
  static inline void put_##T##x##N(T* p, i32x##N m, T##x##N v) { \
    put_##T##x##H(p, m.lo, v.lo); put_##T##x##H(p + H, m.hi, v.hi); }
#if __has_builtin(__builtin_reduce_and)
#define TUFF_ALL(m) __builtin_reduce_and(m)
#else
#define TUFF_ALL(m) 0
#endif
#define TUFF_MASKEDS(N) TUFF_MASKED(u64, N)
TUFF_MASKEDS(2) TUFF_MASKEDS(4) TUFF_MASKEDS(8) TUFF_MASKEDS(16) TUFF_MASKEDS(32) TUFF_MASKEDS(64)
TUFF_MASKED(u8, 2) TUFF_MASKED(u8, 4) TUFF_MASKED(u8, 8) TUFF_MASKED(u16, 2) TUFF_MASKED(u16, 4)
TUFF_MASKED(u32, 2) TUFF_MASKED(u32, 4)
#if defined(__AVX512DQ__) && defined(__AVX512VL__) && __has_builtin(__builtin_ia32_loadups512_mask)
typedef i32 tuff_v8si __attribute__((vector_size(32)));
typedef i32 tuff_v16si __attribute__((vector_size(64)));
static inline u64 bits_8(i32x8 m) { return (u8)__builtin_ia32_cvtd2mask256((tuff_v8si)m); }
static inline u64 bits_16(i32x16 m) { return (u16)__builtin_ia32_cvtd2mask512((tuff_v16si)m); }
static inline u64 bits_32(i32x32 m) { return bits_16(m.lo) | bits_16(m.hi) << 16; }
static inline u64 bits_64(i32x64 m) { return bits_32(m.lo) | bits_32(m.hi) << 32; }
#define TUFF_MASKED_AVX512(T, N, BITS, E, LANE, LOAD, STORE) \
  typedef E tuff_v##N##LANE __attribute__((vector_size(BITS / 8))); \
  static inline T##x##N get_##T##x##N(const T* p, i32x##N m) { \
    return (T##x##N)__builtin_ia32_##LOAD##BITS##_mask((const void*)p, (tuff_v##N##LANE){0}, \
      bits_##N(m)); } \
  static inline void put_##T##x##N(T* p, i32x##N m, T##x##N v) { \
    __builtin_ia32_##STORE##BITS##_mask((void*)p, (tuff_v##N##LANE)v, bits_##N(m)); }
TUFF_MASKED_AVX512(u32, 8, 256, f32, sf, loadups, storeups)
TUFF_MASKED_AVX512(u32, 16, 512, f32, sf, loadups, storeups)
#elif defined(__AVX2__) && __has_builtin(__builtin_ia32_maskloadps256)
typedef i32 tuff_v8si __attribute__((vector_size(32)));
typedef f32 tuff_v8sf32 __attribute__((vector_size(32)));
static inline u32x8 get_u32x8(const u32* p, i32x8 m) {
  return (u32x8)__builtin_ia32_maskloadps256((const tuff_v8sf32*)p, (tuff_v8si)m); }
static inline void put_u32x8(u32* p, i32x8 m, u32x8 v) {
  __builtin_ia32_maskstoreps256((tuff_v8sf32*)p, (tuff_v8si)m, (tuff_v8sf32)v); }
TUFF_MASKED_HALVES(u32, 16, 8)
#else
TUFF_MASKED(u32, 8) TUFF_MASKED(u32, 16)
#endif
#if defined(TUFF_MASKED_AVX512) && defined(__AVX512BW__)
TUFF_MASKED_AVX512(u16, 8, 128, short, hi, loaddquhi, storedquhi)
TUFF_MASKED_AVX512(u16, 16, 256, short, hi, loaddquhi, storedquhi)
TUFF_MASKED_AVX512(u16, 32, 512, short, hi, loaddquhi, storedquhi)
TUFF_MASKED_AVX512(u8, 16, 128, char, qi, loaddquqi, storedquqi)
TUFF_MASKED_AVX512(u8, 32, 256, char, qi, loaddquqi, storedquqi)
TUFF_MASKED_AVX512(u8, 64, 512, char, qi, loaddquqi, storedquqi)
#else
TUFF_MASKED(u16, 8) TUFF_MASKED(u16, 16) TUFF_MASKED(u16, 32)
TUFF_MASKED(u8, 16) TUFF_MASKED(u8, 32) TUFF_MASKED(u8, 64)
#endif
/* Lanes of a mask from anywhere. */
#if defined(__AVX2__) && __has_builtin(__builtin_ia32_gatherd_ps256)
typedef i32 tuff_gather_index8 __attribute__((vector_size(32)));
typedef f32 tuff_gather_value8 __attribute__((vector_size(32)));
static inline u32x8 gather_u32x8(const u32* p, i32x8 at, i32x8 m) {
  return (u32x8)__builtin_ia32_gatherd_ps256((tuff_gather_value8){0}, (const f32*)p,
    (tuff_gather_index8)at, (tuff_gather_value8)m, 4); }
#else
static inline u32x8 gather_u32x8(const u32* p, i32x8 at, i32x8 m) {
  u32x8 v = (u32x8)(0);
  for (int l = 0; l < 8; l++) if (m[l]) v[l] = p[at[l]];
  return v; }
#endif
#define TUFF_GATHER_HALVES(N, H) \
  static inline u32x##N gather_u32x##N(const u32* p, i32x##N at, i32x##N m) { \
    u32x##N v; v.lo = gather_u32x##H(p, at.lo, m.lo); v.hi = gather_u32x##H(p, at.hi, m.hi); \
    return v; }
#if defined(TUFF_MASKED_AVX512) && __has_builtin(__builtin_ia32_gathersiv16sf)
typedef i32 tuff_gather_index16 __attribute__((vector_size(64)));
typedef f32 tuff_gather_value16 __attribute__((vector_size(64)));
static inline u32x16 gather_u32x16(const u32* p, i32x16 at, i32x16 m) {
  return (u32x16)__builtin_ia32_gathersiv16sf((tuff_gather_value16){0}, p,
    (tuff_gather_index16)at, (u16)bits_16(m), 4); }
#else
TUFF_GATHER_HALVES(16, 8)
#endif
TUFF_GATHER_HALVES(32, 16) TUFF_GATHER_HALVES(64, 32)
TUFF_MASKED_HALVES(u16, 64, 32)
TUFF_MASKED_HALVES(u32, 32, 16) TUFF_MASKED_HALVES(u32, 64, 32)
#define TUFF_NARROW_FLOAT(N) \
  static inline f32x##N soft_f32_of_f16x##N(u16x##N h) { \
    u32x##N x = __builtin_convertvector(h, u32x##N), em = x & 0x7fff; \
    u32x##N normal = (em << 13) + 0x38000000u; \
    u32x##N special = (em << 13) | 0x7f800000u | ((u32x##N)(em > 0x7c00) & 0x400000u); \
    u32x##N tiny = (u32x##N)(__builtin_convertvector(em, f32x##N) * (f32x##N)(0x1p-24f)); \
    u32x##N bits = em < 0x400 ? tiny : em < 0x7c00 ? normal : special; \
    return (f32x##N)(bits | (x & 0x8000) << 16); } \
  static inline u16x##N soft_f16_of_f32x##N(f32x##N f) { \
    u32x##N x = (u32x##N)f, a = x & 0x7fffffffu; \
    u32x##N normal = (a + 0xc8000fffu + (a >> 13 & 1)) >> 13; \
    u32x##N tiny = (u32x##N)((f32x##N)a + (f32x##N)(0.5f)) - 0x3f000000u; \
    u32x##N nan = 0x7e00 | (a >> 13 & 0x3ff); \
    u32x##N big = a > 0x7f800000u ? nan : (u32x##N)(0x7c00); \
    u32x##N bits = a < 0x38800000u ? tiny : a < 0x47800000u ? normal : big; \
    return __builtin_convertvector(bits | (x >> 16 & 0x8000), u16x##N); } \
  static inline f32x##N f32_of_bf16x##N(u16x##N h) { \
    u32x##N x = __builtin_convertvector(h, u32x##N) << 16; \
    return (f32x##N)((x & 0x7fffffffu) > 0x7f800000u ? x | 0x400000u : x); } \
  static inline u16x##N bf16_of_f32x##N(f32x##N f) { \
    u32x##N x = (u32x##N)f, rounded = x + 0x7fff + (x >> 16 & 1); \
    u32x##N bits = (x & 0x7fffffffu) > 0x7f800000u ? x | 0x400000u : rounded; \
    return __builtin_convertvector(bits >> 16, u16x##N); }
TUFF_NARROW_FLOAT(2) TUFF_NARROW_FLOAT(4) TUFF_NARROW_FLOAT(8) TUFF_NARROW_FLOAT(16)
TUFF_NARROW_FLOAT(32) TUFF_NARROW_FLOAT(64)
#ifdef __F16C__
typedef short tuff_v8hi __attribute__((vector_size(16)));
typedef float tuff_v8sf __attribute__((vector_size(32)));
static inline f32x8 f32_of_f16x8(u16x8 h) { return (f32x8)__builtin_ia32_vcvtph2ps256((tuff_v8hi)h); }
static inline u16x8 f16_of_f32x8(f32x8 f) { return (u16x8)__builtin_ia32_vcvtps2ph256((tuff_v8sf)f, 0); }
static inline f32 f32_of_f16(u16 h) { u16x8 v = {h, 0, 0, 0, 0, 0, 0, 0}; return f32_of_f16x8(v).s0; }
static inline u16 f16_of_f32(f32 f) { f32x8 v = {f, 0, 0, 0, 0, 0, 0, 0}; return f16_of_f32x8(v).s0; }
static inline f32x4 f32_of_f16x4(u16x4 h) { u16x8 v; v.lo = v.hi = h; return f32_of_f16x8(v).lo; }
static inline u16x4 f16_of_f32x4(f32x4 f) { f32x8 v; v.lo = v.hi = f; return f16_of_f32x8(v).lo; }
static inline f32x2 f32_of_f16x2(u16x2 h) { u16x4 v; v.lo = v.hi = h; return f32_of_f16x4(v).lo; }
static inline u16x2 f16_of_f32x2(f32x2 f) { f32x4 v; v.lo = v.hi = f; return f16_of_f32x4(v).lo; }
#define TUFF_F16_HALVES(N, H) \
  static inline f32x##N f32_of_f16x##N(u16x##N h) { \
    f32x##N v; v.lo = f32_of_f16x##H(h.lo); v.hi = f32_of_f16x##H(h.hi); return v; } \
  static inline u16x##N f16_of_f32x##N(f32x##N f) { \
    u16x##N v; v.lo = f16_of_f32x##H(f.lo); v.hi = f16_of_f32x##H(f.hi); return v; }
TUFF_F16_HALVES(16, 8) TUFF_F16_HALVES(32, 16) TUFF_F16_HALVES(64, 32)
#else
#define TUFF_F16_SOFT(N) \
  static inline f32x##N f32_of_f16x##N(u16x##N h) { return soft_f32_of_f16x##N(h); } \
  static inline u16x##N f16_of_f32x##N(f32x##N f) { return soft_f16_of_f32x##N(f); }
TUFF_F16_SOFT(2) TUFF_F16_SOFT(4) TUFF_F16_SOFT(8) TUFF_F16_SOFT(16) TUFF_F16_SOFT(32) TUFF_F16_SOFT(64)
static inline f32 f32_of_f16(u16 h) { return f32_of_f16x2((u16x2)(h)).x; }
static inline u16 f16_of_f32(f32 f) { return f16_of_f32x2((f32x2)(f)).x; }
#endif
static inline f32 f32_of_bf16(u16 h) { return f32_of_bf16x2((u16x2)(h)).x; }
static inline u16 bf16_of_f32(f32 f) { return bf16_of_f32x2((f32x2)(f)).x; }
)c";

// Without it clang halves vectors of 64 bytes where its tuning for the CPU prefers shorter ones.
std::string attributes(const kernel::LinearKernel&, const Target& t) {
  return t.vector_bytes > 32
             ? fmt::format("__attribute__((min_vector_width({}))) ", t.vector_bytes * 8)
             : "";
}

}  // namespace

const CDialect& c_cpu() {
  static const CDialect row{
      .format = BinaryFormat::Object,
      .simd = true,
      .wide_suffix = "ll",
      .prelude = std::string(kCpuPrelude) + kSharedPrelude,
      .attributes = attributes,
      .compile = [](auto units, const Target&) { return compile_c(units); },
      .identity = [](auto& t) { return fmt::format("{}; {}", compiler_identity(), t.identity); }};
  return row;
}

}  // namespace tuff::render

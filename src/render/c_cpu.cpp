// The dialect for the CPU: clang's C with its vector extensions.
#include "render/c_dialect.h"
#include "base/compilers.h"

namespace tuff::render {
namespace {

constexpr const char* kAlways = R"c(#pragma STDC FP_CONTRACT ON
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64;
#if defined(__AVX512DQ__) && defined(__AVX512VL__) && __has_builtin(__builtin_ia32_loadups512_mask)
#define TUFF_AVX512
#endif
#if defined(__AVX2__) && __has_builtin(__builtin_ia32_maskloadps256)
#define TUFF_AVX2
#endif
)c";

constexpr const char* kVector = R"c(
typedef $T $Tx$N __attribute__((ext_vector_type($N)));
typedef $T $Tx$Nu __attribute__((ext_vector_type($N), aligned(sizeof($T)), may_alias));
typedef $T $Tx$Nl __attribute__((ext_vector_type($N), aligned(64), may_alias));
)c";

// Past the caches, which takes whole lines: memory that is adopted may begin inside one. What was
// stored so stands before what is stored from the fence on.
constexpr const char* kStream = R"c(
#define TUFF_STREAM(V, value, place) do { \
  void* const p_ = (void*)place; \
  if (((u64)p_ & 63) == 0) __builtin_nontemporal_store(value, (V##l*)p_); \
  else *(V##u*)p_ = value; } while (0)
)c";
constexpr const char* kStoreFence = R"c(
#if defined(__x86_64__)
#define TUFF_STORE_FENCE() __builtin_ia32_sfence()
#else
#define TUFF_STORE_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
)c";

// What is stored in `a` before is loaded from there after: a compiler would keep it in registers.
constexpr const char* kInMemory = R"c(
#define TUFF_IN_MEMORY(a) __asm__("" : "+m"(a))
// Two zeros that it knows nothing of.
#define TUFF_ZEROS(a, b) i64 a = 0, b = 0; \
  __asm__("# even" : "+r"(a)); __asm__("# odd" : "+r"(b))
)c";

// The lanes of a mask (0 or -1) of contiguous memory: what is outside it is not touched.
constexpr const char* kAll = R"c(
#if __has_builtin(__builtin_reduce_and)
#define TUFF_ALL(m) __builtin_reduce_and(m)
#else
#define TUFF_ALL(m) 0
#endif
)c";
constexpr const char* kMasked = R"c(
static inline $Tx$N get_$Tx$N(const $T* p, i32x$N m) {
  $Tx$N v = ($Tx$N)(0);
  if (TUFF_ALL(m)) return *(const $Tx$Nu*)p;
  for (int l = 0; l < $N; l++) if (m[l]) v[l] = p[l];
  return v; }
static inline void put_$Tx$N($T* p, i32x$N m, $Tx$N v) {
  if (TUFF_ALL(m)) *($Tx$Nu*)p = v;
  else for (int l = 0; l < $N; l++) if (m[l]) p[l] = v[l]; }
)c";
constexpr const char* kMaskedHalves = R"c(
static inline $Tx$N get_$Tx$N(const $T* p, i32x$N m) {
  $Tx$N v; v.lo = get_$Tx$H(p, m.lo); v.hi = get_$Tx$H(p + $H, m.hi); return v; }
static inline void put_$Tx$N($T* p, i32x$N m, $Tx$N v) {
  put_$Tx$H(p, m.lo, v.lo); put_$Tx$H(p + $H, m.hi, v.hi); }
)c";
constexpr const char* kMaskBits = R"c(
#ifdef TUFF_AVX512
typedef i32 tuff_bits_v8si __attribute__((vector_size(32)));
typedef i32 tuff_bits_v16si __attribute__((vector_size(64)));
static inline u64 bits_8(i32x8 m) { return (u8)__builtin_ia32_cvtd2mask256((tuff_bits_v8si)m); }
static inline u64 bits_16(i32x16 m) { return (u16)__builtin_ia32_cvtd2mask512((tuff_bits_v16si)m); }
#endif
)c";
constexpr const char* kMaskBitsHalves = R"c(
#ifdef TUFF_AVX512
static inline u64 bits_$N(i32x$N m) { return bits_$H(m.lo) | bits_$H(m.hi) << $H; }
#endif
)c";
// $E and $L are the builtins' elements and the letters for them.
constexpr const char* kMaskedAvx512 = R"c(
typedef $E tuff_v$N$L __attribute__((vector_size($B / 8)));
static inline $Tx$N get_$Tx$N(const $T* p, i32x$N m) {
  return ($Tx$N)__builtin_ia32_load$W$B_mask((const void*)p, (tuff_v$N$L){0}, bits_$N(m)); }
static inline void put_$Tx$N($T* p, i32x$N m, $Tx$N v) {
  __builtin_ia32_store$W$B_mask((void*)p, (tuff_v$N$L)v, bits_$N(m)); }
)c";
constexpr const char* kMaskedAvx2 = R"c(
typedef i32 tuff_mask_v8si __attribute__((vector_size(32)));
typedef f32 tuff_mask_v8sf __attribute__((vector_size(32)));
static inline u32x8 get_u32x8(const u32* p, i32x8 m) {
  return (u32x8)__builtin_ia32_maskloadps256((const tuff_mask_v8sf*)p, (tuff_mask_v8si)m); }
static inline void put_u32x8(u32* p, i32x8 m, u32x8 v) {
  __builtin_ia32_maskstoreps256((tuff_mask_v8sf*)p, (tuff_mask_v8si)m, (tuff_mask_v8sf)v); }
)c";

// Lanes of a mask from anywhere.
constexpr const char* kGather8 = R"c(
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
)c";
constexpr const char* kGatherHalves = R"c(
static inline u32x$N gather_u32x$N(const u32* p, i32x$N at, i32x$N m) {
  u32x$N v; v.lo = gather_u32x$H(p, at.lo, m.lo); v.hi = gather_u32x$H(p, at.hi, m.hi);
  return v; }
)c";
constexpr const char* kGatherAvx512 = R"c(
typedef i32 tuff_gather_index16 __attribute__((vector_size(64)));
typedef f32 tuff_gather_value16 __attribute__((vector_size(64)));
static inline u32x16 gather_u32x16(const u32* p, i32x16 at, i32x16 m) {
  return (u32x16)__builtin_ia32_gathersiv16sf((tuff_gather_value16){0}, p,
    (tuff_gather_index16)at, (u16)bits_16(m), 4); }
)c";

// The elements of t that the low 4 bits of each number name.
constexpr const char* kLookup = R"c(
#if defined(TUFF_AVX512) && __has_builtin(__builtin_ia32_permvarsi512)
typedef i32 tuff_lookup_v16si __attribute__((vector_size(64)));
static inline u32x16 lookup_u32x16(u32x16 t, u32x16 n) {
  return (u32x16)__builtin_ia32_permvarsi512((tuff_lookup_v16si)t, (tuff_lookup_v16si)n); }
#else
static inline u32x16 lookup_u32x16(u32x16 t, u32x16 n) {
  u32x16 v;
  for (int l = 0; l < 16; l++) v[l] = t[n[l] & 15];
  return v; }
#endif
)c";

// Conversions that C lacks: F16 through F16C where the CPU has it, else by integer arithmetic.
constexpr const char* kSoftF16 = R"c(
#ifndef __F16C__
static inline f32x$N f32_of_f16x$N(u16x$N h) {
  u32x$N x = __builtin_convertvector(h, u32x$N), em = x & 0x7fff;
  u32x$N normal = (em << 13) + 0x38000000u;
  u32x$N special = (em << 13) | 0x7f800000u | ((u32x$N)(em > 0x7c00) & 0x400000u);
  u32x$N tiny = (u32x$N)(__builtin_convertvector(em, f32x$N) * (f32x$N)(0x1p-24f));
  u32x$N bits = em < 0x400 ? tiny : em < 0x7c00 ? normal : special;
  return (f32x$N)(bits | (x & 0x8000) << 16); }
static inline u16x$N f16_of_f32x$N(f32x$N f) {
  u32x$N x = (u32x$N)f, a = x & 0x7fffffffu;
  u32x$N normal = (a + 0xc8000fffu + (a >> 13 & 1)) >> 13;
  u32x$N tiny = (u32x$N)((f32x$N)a + (f32x$N)(0.5f)) - 0x3f000000u;
  u32x$N nan = 0x7e00 | (a >> 13 & 0x3ff);
  u32x$N big = a > 0x7f800000u ? nan : (u32x$N)(0x7c00);
  u32x$N bits = a < 0x38800000u ? tiny : a < 0x47800000u ? normal : big;
  return __builtin_convertvector(bits | (x >> 16 & 0x8000), u16x$N); }
#endif
)c";
constexpr const char* kF16Of8 = R"c(
#ifdef __F16C__
typedef short tuff_v8hi __attribute__((vector_size(16)));
typedef float tuff_v8sf __attribute__((vector_size(32)));
static inline f32x8 f32_of_f16x8(u16x8 h) { return (f32x8)__builtin_ia32_vcvtph2ps256((tuff_v8hi)h); }
static inline u16x8 f16_of_f32x8(f32x8 f) { return (u16x8)__builtin_ia32_vcvtps2ph256((tuff_v8sf)f, 0); }
#endif
)c";
constexpr const char* kF16Of4 = R"c(
#ifdef __F16C__
static inline f32x4 f32_of_f16x4(u16x4 h) { u16x8 v; v.lo = v.hi = h; return f32_of_f16x8(v).lo; }
static inline u16x4 f16_of_f32x4(f32x4 f) { f32x8 v; v.lo = v.hi = f; return f16_of_f32x8(v).lo; }
#endif
)c";
constexpr const char* kF16Of2 = R"c(
#ifdef __F16C__
static inline f32x2 f32_of_f16x2(u16x2 h) { u16x4 v; v.lo = v.hi = h; return f32_of_f16x4(v).lo; }
static inline u16x2 f16_of_f32x2(f32x2 f) { f32x4 v; v.lo = v.hi = f; return f16_of_f32x4(v).lo; }
#endif
)c";
constexpr const char* kF16Halves = R"c(
#ifdef __F16C__
static inline f32x$N f32_of_f16x$N(u16x$N h) {
  f32x$N v; v.lo = f32_of_f16x$H(h.lo); v.hi = f32_of_f16x$H(h.hi); return v; }
static inline u16x$N f16_of_f32x$N(f32x$N f) {
  u16x$N v; v.lo = f16_of_f32x$H(f.lo); v.hi = f16_of_f32x$H(f.hi); return v; }
#endif
)c";
constexpr const char* kF16 = R"c(
#ifdef __F16C__
static inline f32 f32_of_f16(u16 h) { u16x8 v = {h, 0, 0, 0, 0, 0, 0, 0}; return f32_of_f16x8(v).s0; }
static inline u16 f16_of_f32(f32 f) { f32x8 v = {f, 0, 0, 0, 0, 0, 0, 0}; return f16_of_f32x8(v).s0; }
#else
static inline f32 f32_of_f16(u16 h) { return f32_of_f16x2((u16x2)(h)).x; }
static inline u16 f16_of_f32(f32 f) { return f16_of_f32x2((f32x2)(f)).x; }
#endif
)c";
constexpr const char* kBf16Vector = R"c(
static inline f32x$N f32_of_bf16x$N(u16x$N h) {
  u32x$N x = __builtin_convertvector(h, u32x$N) << 16;
  return (f32x$N)((x & 0x7fffffffu) > 0x7f800000u ? x | 0x400000u : x); }
static inline u16x$N bf16_of_f32x$N(f32x$N f) {
  u32x$N x = (u32x$N)f, rounded = x + 0x7fff + (x >> 16 & 1);
  u32x$N bits = (x & 0x7fffffffu) > 0x7f800000u ? x | 0x400000u : rounded;
  return __builtin_convertvector(bits >> 16, u16x$N); }
)c";
constexpr const char* kBf16 = R"c(
static inline f32 f32_of_bf16(u16 h) { return f32_of_bf16x2((u16x2)(h)).x; }
static inline u16 bf16_of_f32(f32 f) { return bf16_of_f32x2((f32x2)(f)).x; }
)c";

constexpr int kWidths[] = {2, 4, 8, 16, 32, 64};

Replacements lanes(const char* type, int n) {
  return {{"$T", type}, {"$N", std::to_string(n)}, {"$H", std::to_string(n / 2)}};
}

// What a vector instruction of AVX-512 does, else what two of half the width or a loop do.
void add_masked(Prelude& p, const char* type, int n, const std::string& text,
                Replacements more = {}) {
  Replacements with = lanes(type, n);
  with.insert(with.end(), more.begin(), more.end());
  p.add({"get_$Tx$N(", "put_$Tx$N("}, text, with);
}

std::string either(const char* condition, const std::string& then, const std::string& otherwise) {
  return fmt::format("\n#if {}{}#else{}#endif\n", condition, then, otherwise);
}

void add_masked_accesses(Prelude& p) {
  p.add({"TUFF_ALL("}, kAll);
  p.add({"bits_8(", "bits_16("}, kMaskBits);
  for (const int n : {32, 64}) p.add({"bits_$N("}, kMaskBitsHalves, lanes("", n));
  for (const int n : kWidths) add_masked(p, "u64", n, kMasked);
  for (const int n : {2, 4, 8}) add_masked(p, "u8", n, kMasked);
  for (const char* type : {"u16", "u32"})
    for (const int n : {2, 4}) add_masked(p, type, n, kMasked);
  const auto avx512 = [](const char* element, const char* letters, const char* what, int bits) {
    return Replacements{
        {"$E", element}, {"$L", letters}, {"$W", what}, {"$B", std::to_string(bits)}};
  };
  const std::string narrow =
      either("defined(TUFF_AVX512) && defined(__AVX512BW__)", kMaskedAvx512, kMasked);
  const auto words = [&](const char* avx2) {
    return either("defined(TUFF_AVX512)", kMaskedAvx512, either("defined(TUFF_AVX2)", avx2, kMasked));
  };
  add_masked(p, "u32", 8, words(kMaskedAvx2), avx512("f32", "sf", "ups", 256));
  add_masked(p, "u32", 16, words(kMaskedHalves), avx512("f32", "sf", "ups", 512));
  for (const int n : {8, 16, 32}) add_masked(p, "u16", n, narrow, avx512("short", "hi", "dquhi", n * 16));
  for (const int n : {16, 32, 64}) add_masked(p, "u8", n, narrow, avx512("char", "qi", "dquqi", n * 8));
  add_masked(p, "u16", 64, kMaskedHalves);
  for (const int n : {32, 64}) add_masked(p, "u32", n, kMaskedHalves);
  p.add({"gather_u32x8("}, kGather8);
  p.add({"gather_u32x16("},
        either("defined(TUFF_AVX512) && __has_builtin(__builtin_ia32_gathersiv16sf)", kGatherAvx512,
               kGatherHalves),
        lanes("u32", 16));
  for (const int n : {32, 64}) p.add({"gather_u32x$N("}, kGatherHalves, lanes("u32", n));
}

void add_narrow_floats(Prelude& p) {
  const auto add = [&](int n, const char* text) {
    p.add({"f32_of_f16x$N(", "f16_of_f32x$N("}, text, lanes("f16", n));
  };
  for (const int n : kWidths) add(n, kSoftF16);
  add(8, kF16Of8);
  add(4, kF16Of4);
  add(2, kF16Of2);
  for (const int n : {16, 32, 64}) add(n, kF16Halves);
  p.add({"f32_of_f16(", "f16_of_f32("}, kF16);
  for (const int n : kWidths)
    p.add({"f32_of_bf16x$N(", "bf16_of_f32x$N("}, kBf16Vector, lanes("bf16", n));
  p.add({"f32_of_bf16(", "bf16_of_f32("}, kBf16);
}

Prelude cpu_prelude() {
  Prelude p;
  p.add(kAlways);
  for (const int n : kWidths)
    for (const char* type : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"})
      p.add({"$Tx$N"}, kVector, lanes(type, n));
  p.add({"TUFF_STREAM("}, kStream);
  p.add({"TUFF_STORE_FENCE("}, kStoreFence);
  p.add({"TUFF_IN_MEMORY(", "TUFF_ZEROS("}, kInMemory);
  p.add({"lookup_u32x16("}, kLookup);
  add_cpu_matrices(p);
  add_masked_accesses(p);
  add_narrow_floats(p);
  add_arithmetic(p);
  return p;
}

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
      .prelude = cpu_prelude(),
      .attributes = attributes,
      .compile = [](auto units, const Target&) { return compile_c(units); },
      .identity = [](auto& t) { return fmt::format("{}; {}", compiler_identity(), t.identity); }};
  return row;
}

}  // namespace tuff::render

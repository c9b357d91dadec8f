// The dialect for AMD's GPUs by clang's AMDGPU target, without a device library. It is OpenCL C,
// not C, since the attribute that tells the workgroup's size, without which a kernel would get the
// registers of one of 1,024 work-items, is for kernels of OpenCL alone. The kernel's arguments are
// the argument block: the block is the kernarg segment, of which the hardware passes the address,
// so there is no pointer to follow, and the compiler knows that it does not change.
#include "render/c_dialect.h"
#include "base/compilers.h"

namespace tuff::render {
namespace {

// Ids and barriers are clang's builtins. A barrier orders workgroup memory; the fences are the
// compiler's, which knows what each generation has to wait for.
constexpr const char* kAmdgpuPrelude = R"c(#pragma STDC FP_CONTRACT ON
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef half f16; typedef float f32; typedef double f64;
#define TUFF_KERNEL(x, y, z) __kernel __attribute__((reqd_work_group_size(x, y, z)))
#define TUFF_GLOBAL __global
#define TUFF_SHARED(T, name, count) __local T name[count] __attribute__((aligned(16)))
#define TUFF_GROUP(axis) (i32)__builtin_amdgcn_workgroup_id_##axis()
#define TUFF_LOCAL(axis) (i32)__builtin_amdgcn_workitem_id_##axis()
#define TUFF_BARRIER() \
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
  __builtin_amdgcn_s_barrier(); \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
/* The number of the subgroup that has this work-item, the same for all of its lanes. */
#define TUFF_SUBGROUP(item) \
  (i32)__builtin_amdgcn_readfirstlane((item) / __AMDGCN_WAVEFRONT_SIZE__)
static inline i32 tuff_lane(void) {
  const u32 low = __builtin_amdgcn_mbcnt_lo(~0u, 0);
#if __AMDGCN_WAVEFRONT_SIZE__ == 64
  return (i32)__builtin_amdgcn_mbcnt_hi(~0u, low);
#else
  return (i32)low;
#endif
}
#define TUFF_AS(T, x) __builtin_astype(x, T)
/* LLVM 19 takes an unsigned dividend that was negated for one of few bits, and divides by floats;
   what it knows nothing of it divides rightly. */
#ifdef __AMDGCN__
#define TUFF_DIVIDEND(T, x) tuff_dividend_##T(x)
#define TUFF_KNOWN(T) static inline T tuff_dividend_##T(T x) { return x; }
#define TUFF_OPAQUE(T) static inline T tuff_dividend_##T(T x) { __asm__("" : "+v"(x)); return x; }
TUFF_KNOWN(i8) TUFF_KNOWN(u8) TUFF_KNOWN(i16) TUFF_KNOWN(u16) TUFF_KNOWN(i32) TUFF_KNOWN(i64)
TUFF_OPAQUE(u32) TUFF_OPAQUE(u64)
#endif
#if __has_builtin(__scoped_atomic_fetch_add)
#define TUFF_DEVICE_SCOPE , __MEMORY_SCOPE_DEVICE
#define TUFF_ATOMIC(what) __scoped_atomic_##what
#else
#define TUFF_DEVICE_SCOPE
#define TUFF_ATOMIC(what) __atomic_##what
#endif
#define TUFF_ATOMIC_ADD(place, x) \
  TUFF_ATOMIC(fetch_add)(place, x, __ATOMIC_RELAXED TUFF_DEVICE_SCOPE)
#define TUFF_ATOMIC_MAX(place, x) \
  TUFF_ATOMIC(fetch_max)(place, x, __ATOMIC_RELAXED TUFF_DEVICE_SCOPE)
static inline u32 TUFF_EXCHANGE(TUFF_GLOBAL u32* word, u32 held, u32 wanted) {
  TUFF_ATOMIC(compare_exchange_n)(word, &held, wanted, 0, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED TUFF_DEVICE_SCOPE);
  return held; }
/* x as another lane has it: a lane that is known, and one that differs from lane to lane. */
static inline u32 tuff_broadcast(u32 x, i32 lane) { return __builtin_amdgcn_readlane(x, lane); }
static inline u32 tuff_shuffle(u32 x, i32 lane) {
  return (u32)__builtin_amdgcn_ds_bpermute(lane * 4, (i32)x); }
static inline f32 f32_of_f16(f16 x) { return (f32)x; }
static inline f16 f16_of_f32(f32 x) { return (f16)x; }
static inline f32 f32_of_bf16(u16 h) {
  union { u32 u; f32 f; } r = {(u32)h << 16};
  if ((r.u & 0x7fffffffu) > 0x7f800000u) r.u |= 0x400000u;
  return r.f; }
static inline u16 bf16_of_f32(f32 x) {
  union { f32 f; u32 u; } r = {x};
  const u32 rounded = r.u + 0x7fffu + (r.u >> 16 & 1u);
  return (u16)(((r.u & 0x7fffffffu) > 0x7f800000u ? r.u | 0x400000u : rounded) >> 16); }
)c";

// By generation: how many steps of the reduction a lane has of a row or column of 16-bit factors,
// whether the lanes of both halves have the same, and which rows of a column of sums. Of 8-bit
// factors RDNA multiplies 16 steps at once, CDNA3 32. Sources: ISA documents of RDNA3, RDNA4 and
// CDNA3, matrix instructions.
constexpr const char* kAmdgpuPlaces = R"c(
#if defined(__GFX11__)
#define TUFF_STEPS_16 16
#define TUFF_STEPS_8 16
#define TUFF_SUMS 8
#define TUFF_STEP(n, i) (i)
#define TUFF_SUM_ROW(i) ((i) * 2 + tuff_lane() / 16)
#elif defined(__GFX12__)
#define TUFF_STEPS_16 8
#define TUFF_STEPS_8 8
#define TUFF_SUMS 8
#define TUFF_STEP(n, i) (tuff_lane() / 16 * (n) + (i))
#define TUFF_SUM_ROW(i) (tuff_lane() / 16 * 8 + (i))
#elif defined(__gfx942__)
#define TUFF_STEPS_16 4
#define TUFF_STEPS_8 8
#define TUFF_SUMS 4
#define TUFF_STEP(n, i) (tuff_lane() / 16 * (n) + (i))
#define TUFF_SUM_ROW(i) (tuff_lane() / 16 * 4 + (i))
#endif
#define TUFF_A16 TUFF_STEPS_16
#define TUFF_B16 TUFF_STEPS_16
#define TUFF_A8 TUFF_STEPS_8
#define TUFF_B8 TUFF_STEPS_8
#define TUFF_ROW_a(n, i) (tuff_lane() % 16)
#define TUFF_COLUMN_a(n, i) TUFF_STEP(n, i)
#define TUFF_ROW_b(n, i) TUFF_STEP(n, i)
#define TUFF_COLUMN_b(n, i) (tuff_lane() % 16)
#define TUFF_ROW_sum(n, i) TUFF_SUM_ROW(i)
#define TUFF_COLUMN_sum(n, i) (tuff_lane() % 16)
)c";
constexpr const char* kAmdgpuProducts = R"c(
#if defined(TUFF_SUMS)
typedef i16 tuff_bits16 __attribute__((ext_vector_type(TUFF_STEPS_16)));
#endif
#if defined(__GFX11__)
typedef i32 tuff_bits8 __attribute__((ext_vector_type(4)));
#define TUFF_MULTIPLY_f16(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c)
#define TUFF_MULTIPLY_bf16(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32( \
  TUFF_AS(tuff_bits16, a), TUFF_AS(tuff_bits16, b), c)
#define TUFF_MULTIPLY_8(s, a, b, c) __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32( \
  s, TUFF_AS(tuff_bits8, a), s, TUFF_AS(tuff_bits8, b), c, 0)
#elif defined(__GFX12__)
typedef i32 tuff_bits8 __attribute__((ext_vector_type(2)));
#define TUFF_MULTIPLY_f16(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c)
#define TUFF_MULTIPLY_bf16(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12( \
  TUFF_AS(tuff_bits16, a), TUFF_AS(tuff_bits16, b), c)
#define TUFF_MULTIPLY_8(s, a, b, c) __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12( \
  s, TUFF_AS(tuff_bits8, a), s, TUFF_AS(tuff_bits8, b), c, 0)
#elif defined(__gfx942__)
#define TUFF_MULTIPLY_f16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0)
#define TUFF_MULTIPLY_bf16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16bf16_1k( \
  TUFF_AS(tuff_bits16, a), TUFF_AS(tuff_bits16, b), c, 0, 0, 0)
#define TUFF_MULTIPLY_8(s, a, b, c) __builtin_amdgcn_mfma_i32_16x16x32_i8( \
  TUFF_AS(i64, a), TUFF_AS(i64, b), c, 0, 0, 0)
#endif
#define TUFF_MULTIPLY_i8(a, b, c) TUFF_MULTIPLY_8(1, a, b, c)
#define TUFF_MULTIPLY_u8(a, b, c) TUFF_MULTIPLY_8(0, a, b, c)
)c";

Prelude amdgpu_prelude() {
  Prelude p;
  p.add(kAmdgpuPrelude);
  add_arithmetic(p);
  add_atomics(p);
  add_amdgpu_matrices(p);
  return p;
}

}  // namespace

void add_amdgpu_matrices(Prelude& p) { add_matrices(p, kAmdgpuPlaces, kAmdgpuProducts); }

const CDialect& c_amdgpu() {
  static const CDialect row{
      .format = BinaryFormat::AmdgpuObject,
      .workgroups = true,
      .wide_suffix = "l",
      .f16 = true,
      .prelude = amdgpu_prelude(),
      .attributes = workgroup_attributes,
      .compile = [](auto units, auto& t) { return compile_amdgpu(units, t.arch); },
      .identity =
          [](auto& t) { return fmt::format("{}; {}", amdgpu_compiler_identity(), t.arch); }};
  return row;
}

}  // namespace tuff::render

// The dialect for OpenCL drivers: OpenCL C 1.2 with its library. Nothing is compiled here: the
// driver does that, so a Binary is the kernel's text, to which the device adds the prelude. A
// buffer is an object and a byte offset into it, since objects alone can be bound where there are
// no addresses; with addresses the offset is 0. F16 is a type where the device has cl_khr_fp16,
// else its bits.
#include "render/c_dialect.h"

namespace tuff::render {
namespace {

// TUFF_NO_F64 is defined for devices without doubles, TUFF_F16 for those with halves. Narrow floats
// that are bits are converted by integers, the same everywhere.
constexpr const char* kOpenclPrelude = R"c(#pragma OPENCL FP_CONTRACT OFF
#ifndef TUFF_NO_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#endif
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef float f32;
#ifdef TUFF_F16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half f16;
#endif
#define TUFF_KERNEL(x, y, z) __kernel __attribute__((reqd_work_group_size(x, y, z)))
#define TUFF_GLOBAL __global
#define TUFF_SHARED(T, name, count) __local T name[count] __attribute__((aligned(16)))
#define TUFF_AXIS_x 0
#define TUFF_AXIS_y 1
#define TUFF_AXIS_z 2
#define TUFF_GROUP(axis) (i32)get_group_id(TUFF_AXIS_##axis)
#define TUFF_LOCAL(axis) (i32)get_local_id(TUFF_AXIS_##axis)
#define TUFF_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define TUFF_ABS_F64 fabs
#ifdef FP_FAST_FMAF
#define TUFF_MULADD_f32(a, b, c) fma(a, b, c)
#else
#define TUFF_MULADD_f32(a, b, c) ((a) * (b) + (c))
#endif
#define TUFF_MULADD_f64(a, b, c) fma(a, b, c)
#ifdef FP_FAST_FMA_HALF
#define TUFF_MULADD_f16(a, b, c) fma(a, b, c)
#else
#define TUFF_MULADD_f16(a, b, c) ((a) * (b) + (c))
#endif
/* Rounded to odd, so that a second rounding is exact: 24 bits, the last of them sticky. */
static inline f32 f32_odd_of_u64(u64 x) {
  const i32 drop = max(40 - (i32)clz(x), 0);
  const u64 kept = x >> drop << drop;
  return (f32)(kept | (u64)(kept != x) << drop); }
static inline f32 f32_odd_of_i64(i64 x) {
  return x < 0 ? -f32_odd_of_u64((u64)0 - (u64)x) : f32_odd_of_u64((u64)x); }
#ifdef TUFF_F16
static inline f32 f32_of_f16(f16 x) { return (f32)x; }
static inline f16 f16_of_f32(f32 x) { return (f16)x; }
#else
static inline f32 f32_of_f16(u16 h) {
  const u32 em = h & 0x7fffu;
  const u32 normal = (em << 13) + 0x38000000u;
  const u32 special = (em << 13) | 0x7f800000u | (em > 0x7c00u ? 0x400000u : 0u);
  const u32 tiny = as_uint((f32)em * 0x1p-24f);
  const u32 bits = em < 0x400u ? tiny : em < 0x7c00u ? normal : special;
  return as_float(bits | (u32)(h & 0x8000u) << 16); }
static inline u16 f16_of_f32(f32 f) {
  const u32 x = as_uint(f), a = x & 0x7fffffffu;
  const u32 normal = (a + 0xc8000fffu + (a >> 13 & 1u)) >> 13;
  /* The sum rounds as the f16 does; below 2^-25 nothing of it is left, flushed or not. */
  const u32 tiny = as_uint(as_float(a) + 0.5f) - 0x3f000000u;
  const u32 nan = 0x7e00u | (a >> 13 & 0x3ffu);
  const u32 big = a > 0x7f800000u ? nan : 0x7c00u;
  const u32 bits = a < 0x38800000u ? tiny : a < 0x47800000u ? normal : big;
  return (u16)(bits | (x >> 16 & 0x8000u)); }
#endif
#define TUFF_AS_f32 as_float
#define TUFF_AS_i32 as_int
#define TUFF_AS_u32 as_uint
#define TUFF_AS(T, x) TUFF_AS_##T(x)
#define TUFF_ATOMIC_ADD(place, x) atomic_add(place, x)
#define TUFF_ATOMIC_MAX(place, x) atomic_max(place, x)
#define TUFF_EXCHANGE(word, held, wanted) atomic_cmpxchg(word, held, wanted)
static inline f32 f32_of_bf16(u16 h) {
  const u32 x = (u32)h << 16;
  return as_float((x & 0x7fffffffu) > 0x7f800000u ? x | 0x400000u : x); }
static inline u16 bf16_of_f32(f32 f) {
  const u32 x = as_uint(f), rounded = x + 0x7fffu + (x >> 16 & 1u);
  return (u16)(((x & 0x7fffffffu) > 0x7f800000u ? x | 0x400000u : rounded) >> 16); }
)c";

Prelude opencl_prelude() {
  Prelude p;
  p.add(kOpenclPrelude);
  add_arithmetic(p);
  add_atomics(p);
  return p;
}

}  // namespace

const CDialect& c_opencl() {
  // The driver's name and version are the device's.
  static const CDialect row{.format = BinaryFormat::OpenclC,
                            .workgroups = true,
                            .library = true,
                            .wide_suffix = "l",
                            .prelude = opencl_prelude(),
                            .attributes = workgroup_attributes,
                            .identity = [](const Target& t) { return t.identity; }};
  return row;
}

const CDialect& c_opencl(const Target& t) {
  static const CDialect halves = [] {
    CDialect row = c_opencl();
    row.f16 = true;
    return row;
  }();
  return t.features.f16 ? halves : c_opencl();
}

}  // namespace tuff::render

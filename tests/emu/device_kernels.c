// Kernels for both sides: clang compiles them for gfx1100 and for this machine. `ID` is the number of
// the work-item in the grid; arrays have a power of two of elements.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;

#ifdef __AMDGCN__
#define KERNEL(name) __attribute__((amdgpu_kernel)) void name
#define GLOBAL __attribute__((address_space(1)))
#define ID (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())
#define PARAMETERS(T, R) (GLOBAL R* out, const GLOBAL T* a, const GLOBAL T* b, const GLOBAL T* c)
#else
#define KERNEL(name) void host_##name
#define ID id
#define PARAMETERS(T, R) (u32 id, R* out, const T* a, const T* b, const T* c)
#endif

#define MAP(name, T, R, expr)          \
  KERNEL(name) PARAMETERS(T, R) {      \
    const u32 k = ID;                  \
    const T x = a[k], y = b[k], z = c[k]; \
    (void)x, (void)y, (void)z;         \
    out[k] = (R)(expr);                \
  }

MAP(i32_arithmetic, int, int, (x + y) * z - (x ^ (y & ~z)))
MAP(i32_shifts, int, int, (x << (y & 31)) ^ (x >> (z & 31)) ^ (int)((u32)y >> (x & 31)))
MAP(i32_choice, int, int, (x < y ? x : z) + (x > z ? y : 3) + (x == y ? 7 : z > 5 ? -2 : 1))
MAP(i32_divide, int, int, (y == 0 || (y == -1 && x == (int)0x80000000)) ? 1 : x / y + x % y)
MAP(u32_divide, u32, u32, y == 0 ? 1 : x / y + x % y)
MAP(u32_bits, u32, u32, __builtin_popcount(x) + __builtin_clz(y | 1) + __builtin_ctz(z | 2) + __builtin_bitreverse32(x))
MAP(u32_rotate, u32, u32, (x >> (y & 31)) | (z << 7) ^ (x << 13 | x >> 19))
MAP(u32_mulhi, u32, u32, (u32)((u64)x * y >> 32) + (u32)((i64)(int)x * (int)z >> 32))
MAP(u32_minmax, u32, u32, (x < y ? x : y) + (y > z ? y : z) + ((int)x < (int)z ? x : z))
MAP(u32_bytes, u32, u32, (x & 0xff) * (y >> 24) + __builtin_bswap32(z) + ((x >> 8) & 0xfff))
MAP(u32_hash, u32, u32, ((x ^ (x >> 16)) * 0x85ebca6b + y) ^ (z * 0xc2b2ae35u))
MAP(i64_arithmetic, i64, i64, (x + y) * z - (x ^ y))
MAP(i64_shifts, i64, i64, (x << (y & 63)) ^ (x >> (z & 63)) ^ (i64)((u64)y >> (x & 63)))
MAP(i64_choice, i64, i64, (x < y ? x : z) + (x >= z ? y : 3) + ((u64)x > (u64)y ? 1 : 2))
MAP(i64_divide, i64, i64, (y == 0 || y == -1) ? 1 : x / y + x % y)
MAP(u64_divide, u64, u64, y == 0 ? 1 : x / y + x % y)
MAP(u64_to_f32, u64, float, (float)x)
MAP(i64_to_f32, i64, float, (float)x)
MAP(i64_to_f64, i64, double, (double)x)
MAP(u64_bits, u64, u64, __builtin_popcountll(x) + __builtin_clzll(y | 1) + __builtin_ctzll(z | 2))
MAP(u8_arithmetic, u8, u8, (u8)(x * y + z) >> 1)
MAP(i8_arithmetic, i8, i8, (i8)(x * y - z) / 3)
MAP(i16_arithmetic, i16, i16, x * y + (z >> 3))
MAP(u16_arithmetic, u16, u16, (u16)(x * y + z) >> 2)
MAP(i16_minmax, i16, i16, (x < y ? x : y) + (y > z ? y : z))
MAP(i16_to_f32, i16, float, (float)x)
MAP(u8_to_f32, u8, float, (float)x + (float)y)
MAP(f32_arithmetic, float, float, (x + y) * z - x)
MAP(f32_fma, float, float, __builtin_fmaf(x, y, z) + __builtin_fmaf(-x, y, 1.5f))
MAP(f32_divide, float, float, x / y)
MAP(f32_sqrt, float, float, __builtin_sqrtf(__builtin_fabsf(x)))
MAP(f32_round, float, float, __builtin_floorf(x) + __builtin_ceilf(y) - __builtin_truncf(z) + __builtin_rintf(x))
MAP(f32_choice, float, float, (x < y ? x : z) + (x >= z ? y : -z) + (x != y ? 1.0f : 2.0f))
MAP(f32_class, float, int, (x != x) + 2 * (__builtin_isinf(y) != 0) + 4 * (z == 0))
MAP(f32_to_i32, float, int, x > -1e9f && x < 1e9f ? (int)x : 0)
MAP(f32_to_u32, float, u32, x >= 0 && x < 4e9f ? (u32)x : 0u)
MAP(f32_to_f64, float, double, (double)x * y)
MAP(f32_to_i64, float, i64, x > -1e18f && x < 1e18f ? (i64)x : 0)
MAP(f32_to_f16, float, _Float16, x)
MAP(i32_to_f32, int, float, (float)x + (float)(u32)y)
MAP(i32_to_f64, int, double, (double)x + (double)(u32)y)
MAP(f64_arithmetic, double, double, (x + y) * z - x)
MAP(f64_fma, double, double, __builtin_fma(x, y, z))
MAP(f64_divide, double, double, x / y)
MAP(f64_round, double, double, __builtin_floor(x) + __builtin_ceil(y) - __builtin_trunc(z) + __builtin_rint(x))
MAP(f64_choice, double, double, (x < y ? x : z) + (x >= z ? y : -z))
MAP(f64_to_i32, double, int, x > -1e9 && x < 1e9 ? (int)x : 0)
MAP(f64_to_i64, double, i64, x > -1e18 && x < 1e18 ? (i64)x : 0)
MAP(f64_to_f32, double, float, (float)x)
MAP(f16_arithmetic, _Float16, _Float16, (x + y) * z)
MAP(f16_divide, _Float16, _Float16, x / y)
MAP(f16_round, _Float16, _Float16, __builtin_floorf16(x) + __builtin_ceilf16(y) - __builtin_truncf16(z))
MAP(f16_fma, _Float16, _Float16, __builtin_fmaf16(x, y, z))
MAP(f16_mixed, _Float16, float, __builtin_fmaf((float)x, (float)y, (float)z))
MAP(i16_to_f16, i16, _Float16, (_Float16)x)
MAP(i8_choice, i8, int, x < y ? x * 5 : z & 3)
MAP(u16_choice, u16, u16, (x < y ? x : y) ^ (y > z ? y : z))
MAP(f64_sqrt, double, double, __builtin_sqrt(__builtin_fabs(x)))
// Which zero is the smaller C leaves open: adding zero makes them one.
MAP(f32_minmax, float, float, (__builtin_fminf(x, y) + 0.0f) + (__builtin_fmaxf(y, z) + 0.0f))
MAP(f64_minmax, double, double, (__builtin_fmin(x, y) + 0.0) + (__builtin_fmax(y, z) + 0.0))
MAP(f16_choice, _Float16, _Float16, (x < y ? x : z) - (x >= z ? y : -z))
MAP(f16_to_f32, _Float16, float, (float)x + (float)y)
MAP(f16_to_i16, _Float16, i16, x > (_Float16)-30000 && x < (_Float16)30000 ? (i16)x : 0)

MAP(u32_three, u32, u32, ((x ^ y) + z) ^ ((x << 3) | y) ^ ((x & y) | z) ^ (x | y | z) ^ ((x + y) << 4) ^ ((x << 5) + z))
MAP(i32_fields, int, int, ((x << 5) >> 20) + ((y << 11) >> 27) + (z < 0 ? -z : z))
MAP(i32_med3, int, int, (x > y ? x : y) < z ? (x > y ? x : y) : z)
MAP(u32_min3, u32, u32, (x < y ? x : y) < z ? (x < y ? x : y) : z)
MAP(u32_ubytes, u32, float, (float)(x & 255) + (float)(x >> 24) + (float)(y >> 8 & 255) + (float)(z >> 16 & 255))
MAP(i32_wide_mad, int, i64, (i64)x * y + (i64)z * 3)
MAP(u32_wide_mad, u32, u64, (u64)x * y + z)
MAP(i32_mul24, int, int, ((x << 8) >> 8) * ((y << 8) >> 8) + z)
MAP(u32_mul24, u32, u32, (x & 0xffffff) * (y & 0xffffff) + z)
MAP(f32_copysign, float, float, __builtin_copysignf(x, y) + __builtin_fabsf(z))
MAP(f32_ldexp, float, float, __builtin_ldexpf(x, 3) + __builtin_ldexpf(y, -7))
MAP(f64_ldexp, double, double, __builtin_ldexp(x, 3) - __builtin_ldexp(y, -7))
MAP(f64_class, double, int, (x != x) + 2 * (__builtin_isinf(y) != 0) + 4 * (z == 0))
MAP(f16_class, _Float16, int, (x != x) + 2 * (y < (_Float16)0) + 4 * (z == (_Float16)0))
MAP(f16_minmax, _Float16, _Float16, (__builtin_fminf16(x, y) + (_Float16)0) + (__builtin_fmaxf16(y, z) + (_Float16)0))
MAP(u64_choice, u64, u64, (x < y ? x : z) + (x >= z ? y : 3) + (y == z) + (x != y))
MAP(f64_to_u32, double, u32, x >= 0 && x < 4e9 ? (u32)x : 0u)
MAP(f16_to_u16, _Float16, u16, x >= (_Float16)0 && x < (_Float16)60000 ? (u16)x : (u16)0)
MAP(u16_to_f16, u16, _Float16, (_Float16)x)
MAP(i64_minmax, i64, i64, (x < y ? x : y) - (y > z ? y : z))

// A loop with a trip count that differs between lanes, and a branch within.
KERNEL(collatz) PARAMETERS(u32, u32) {
  const u32 k = ID;
  u32 x = (a[k] & 0xff) + 1, steps = 0;
  while (x != 1 && steps < 500) {
    if (x & 1) x = 3 * x + 1;
    else x = x / 2;
    ++steps;
  }
  out[k] = steps + b[k] + c[k];
}

// An array on the stack that is indexed by data: scratch memory.
KERNEL(histogram) PARAMETERS(u32, u32) {
  const u32 k = ID;
  u32 bins[16];
  for (u32 n = 0; n < 16; ++n) bins[n] = 0;
  for (u32 n = 0; n < 32; ++n) bins[(a[k] >> (n & 28) ^ n) & 15] += b[(k + n) & 127];
  out[k] = bins[c[k] & 15] + 3 * bins[(c[k] >> 4) & 15];
}

#ifdef __AMDGCN__
// c = a b for 64 x 64 matrices: workgroups of 16 x 16 take tiles through LDS.
#define LDS static __attribute__((address_space(3), loader_uninitialized))
LDS float tile_a[16][16];
LDS float tile_b[16][16];
KERNEL(product)(GLOBAL float* c, const GLOBAL float* a, const GLOBAL float* b) {
  const u32 x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y();
  const u32 row = __builtin_amdgcn_workgroup_id_y() * 16 + y;
  const u32 column = __builtin_amdgcn_workgroup_id_x() * 16 + x;
  float sum = 0;
  for (u32 t = 0; t < 64; t += 16) {
    tile_a[y][x] = a[row * 64 + t + x];
    tile_b[y][x] = b[(t + y) * 64 + column];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    for (u32 k = 0; k < 16; ++k) sum = __builtin_fmaf(tile_a[y][k], tile_b[k][x], sum);
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  c[row * 64 + column] = sum;
}

// d = a b + c for 16 x 16 matrices in one instruction of one wave; b is read by columns.
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef int int4v __attribute__((ext_vector_type(4)));
typedef int int8v __attribute__((ext_vector_type(8)));

KERNEL(matrix_f16)(GLOBAL float* d, const GLOBAL _Float16* a, const GLOBAL _Float16* b,
                   const GLOBAL float* c) {
  const u32 lane = __builtin_amdgcn_workitem_id_x(), line = lane & 15, half = lane >> 4;
  half16 x, y;
  float8 sum;
  for (int k = 0; k < 16; ++k) x[k] = a[line * 16 + k], y[k] = b[k * 16 + line];
  for (int r = 0; r < 8; ++r) sum[r] = c[(2 * r + half) * 16 + line];
  sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, sum);
  for (int r = 0; r < 8; ++r) d[(2 * r + half) * 16 + line] = sum[r];
}

KERNEL(matrix_i8)(GLOBAL int* d, const GLOBAL i8* a, const GLOBAL i8* b, const GLOBAL int* c) {
  const u32 lane = __builtin_amdgcn_workitem_id_x(), line = lane & 15, half = lane >> 4;
  union { i8 bytes[16]; int4v words; } x, y;
  int8v sum;
  for (int k = 0; k < 16; ++k) x.bytes[k] = a[line * 16 + k], y.bytes[k] = b[k * 16 + line];
  for (int r = 0; r < 8; ++r) sum[r] = c[(2 * r + half) * 16 + line];
  sum = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(1, x.words, 1, y.words, sum, 0);
  for (int r = 0; r < 8; ++r) d[(2 * r + half) * 16 + line] = sum[r];
}
#endif

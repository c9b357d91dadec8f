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
#define EITHER(device, host) (device)
#define PARAMETERS(T, R) (GLOBAL R* out, const GLOBAL T* a, const GLOBAL T* b, const GLOBAL T* c)
#else
#define KERNEL(name) void host_##name
#define ID id
#define EITHER(device, host) (host)
#define PARAMETERS(T, R) (u32 id, R* out, const T* a, const T* b, const T* c)
#endif

#define MAP(name, T, R, expr)          \
  KERNEL(name) PARAMETERS(T, R) {      \
    const u32 k = ID;                  \
    const T x = a[k], y = b[k], z = c[k]; \
    (void)x, (void)y, (void)z;         \
    out[k] = (R)(expr);                \
  }

// Two halves in a word, as they are moved: signs are changed on the way.
static u32 pair_of_halves(float x, float y) {
  typedef _Float16 Pair __attribute__((ext_vector_type(2)));
  union {
    Pair halves;
    u32 word;
  } both;
  both.halves.x = x == x ? (_Float16)x : (_Float16)1;
  both.halves.y = y == y ? (_Float16)y : (_Float16)1;
  both.halves = -both.halves;
  return both.word;
}
static u32 pair_of_signs(float x, float y) {
  const _Float16 a = x == x ? (_Float16)x : (_Float16)1, b = y == y ? (_Float16)y : (_Float16)1;
  typedef _Float16 Pair __attribute__((ext_vector_type(2)));
  union {
    Pair halves;
    u32 word;
  } both;
  both.halves.x = -a;
  both.halves.y = b < 0 ? -b : b;
  return both.word;
}

// Arithmetic of both halves at once. Which NaN comes of it is open, so that none does.
static u32 pair_of_sums(u32 x, u32 y, u32 z) {
  typedef _Float16 Pair __attribute__((ext_vector_type(2)));
  union {
    u32 word;
    Pair halves;
  } a = {x}, b = {y}, c = {z}, r;
  r.halves = a.halves * b.halves + c.halves;
  if (r.halves.x != r.halves.x) r.halves.x = 1;
  if (r.halves.y != r.halves.y) r.halves.y = 1;
  return r.word;
}

#include "device_kernels.def"
#include "device_wave_kernels.def"
#include "device_atomic_kernels.def"
#include "device_dot_kernels.def"
#include "device_buffer_kernels.def"

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

typedef short short16 __attribute__((ext_vector_type(16)));
typedef int int2v __attribute__((ext_vector_type(2)));

#define PLACE const u32 lane = __builtin_amdgcn_workitem_id_x(), line = lane & 15, half = lane >> 4
#define ROW(r) ((2 * (r) + half) * 16 + line)
#define LOAD_LINES(x, y) for (int k = 0; k < 16; ++k) x[k] = a[line * 16 + k], y[k] = b[k * 16 + line]

#define MATRIX_INTO_FLOAT(name, T, V, builtin)                                              \
  KERNEL(name)(GLOBAL float* d, const GLOBAL T* a, const GLOBAL T* b, const GLOBAL float* c) { \
    PLACE;                                                                                  \
    V x, y;                                                                                 \
    float8 sum;                                                                             \
    LOAD_LINES(x, y);                                                                       \
    for (int r = 0; r < 8; ++r) sum[r] = c[ROW(r)];                                         \
    sum = builtin(x, y, sum);                                                               \
    for (int r = 0; r < 8; ++r) d[ROW(r)] = sum[r];                                         \
  }
MATRIX_INTO_FLOAT(matrix_f16, _Float16, half16, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32)
MATRIX_INTO_FLOAT(matrix_bf16, short, short16, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32)

// `upper` says which halves of the sum's registers are meant; the others have to stay.
#define MATRIX_INTO_HALF(name, T, V, builtin, upper)                                   \
  KERNEL(name)(GLOBAL T* d, const GLOBAL T* a, const GLOBAL T* b, const GLOBAL T* c) { \
    PLACE;                                                                             \
    V x, y, sum;                                                                       \
    LOAD_LINES(x, y);                                                                  \
    for (int r = 0; r < 8; ++r) sum[2 * r + upper] = c[ROW(r)], sum[2 * r + 1 - upper] = c[lane + r]; \
    sum = builtin(x, y, sum, upper);                                                   \
    int same = 1;                                                                      \
    for (int r = 0; r < 8; ++r) same &= sum[2 * r + 1 - upper] == c[lane + r];         \
    for (int r = 0; r < 8; ++r) d[ROW(r)] = same ? sum[2 * r + upper] : 0;             \
  }
MATRIX_INTO_HALF(matrix_f16_f16, _Float16, half16, __builtin_amdgcn_wmma_f16_16x16x16_f16_tied_w32, 0)
MATRIX_INTO_HALF(matrix_f16_f16_upper, _Float16, half16, __builtin_amdgcn_wmma_f16_16x16x16_f16_tied_w32, 1)
MATRIX_INTO_HALF(matrix_bf16_bf16, short, short16, __builtin_amdgcn_wmma_bf16_16x16x16_bf16_tied_w32, 0)
MATRIX_INTO_HALF(matrix_bf16_bf16_upper, short, short16, __builtin_amdgcn_wmma_bf16_16x16x16_bf16_tied_w32, 1)

KERNEL(matrix_i8)(GLOBAL int* d, const GLOBAL i8* a, const GLOBAL i8* b, const GLOBAL int* c) {
  PLACE;
  union { i8 bytes[16]; int4v words; } x, y;
  int8v sum;
  for (int k = 0; k < 16; ++k) x.bytes[k] = a[line * 16 + k], y.bytes[k] = b[k * 16 + line];
  for (int r = 0; r < 8; ++r) sum[r] = c[ROW(r)];
  sum = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(1, x.words, 1, y.words, sum, 0);
  for (int r = 0; r < 8; ++r) d[ROW(r)] = sum[r];
}

// Numbers of four bits in bytes; the first factor has signs, the second one none.
KERNEL(matrix_i4)(GLOBAL int* d, const GLOBAL i8* a, const GLOBAL i8* b, const GLOBAL int* c) {
  PLACE;
  union { u64 bits; int2v words; } x = {0}, y = {0};
  int8v sum;
  for (int k = 0; k < 16; ++k) {
    x.bits |= (u64)(a[line * 16 + k] & 15) << 4 * k;
    y.bits |= (u64)(b[k * 16 + line] & 15) << 4 * k;
  }
  for (int r = 0; r < 8; ++r) sum[r] = c[ROW(r)];
  sum = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(1, x.words, 0, y.words, sum, 0);
  for (int r = 0; r < 8; ++r) d[ROW(r)] = sum[r];
}
#endif

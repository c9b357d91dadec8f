// Kernels for both sides: clang compiles them to PTX and for this machine. `ID` is the number of
// the thread in the grid; arrays have a power of two of elements.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;

#ifdef __NVPTX__
#define KERNEL(name) __attribute__((nvptx_kernel)) void name
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define ID (__nvvm_read_ptx_sreg_ctaid_x() * 64 + THREAD)
#define EITHER(device, host) (device)
#define PARAMETERS(T, R) (R* out, const T* a, const T* b, const T* c)
#else
#define KERNEL(name) void host_##name
#define ID id
#define EITHER(device, host) (host)
#define PARAMETERS(T, R) (u32 id, R* out, const T* a, const T* b, const T* c)
#endif

#define MAP(name, T, R, expr)             \
  KERNEL(name) PARAMETERS(T, R) {         \
    const u32 k = ID;                     \
    const T x = a[k], y = b[k], z = c[k]; \
    (void)x, (void)y, (void)z;            \
    out[k] = (R)(expr);                   \
  }

typedef _Float16 Pair __attribute__((ext_vector_type(2)));
static u32 pair_of_halves(float x, float y) {
  union { Pair halves; u32 word; } both;
  both.halves.x = x == x ? (_Float16)x : (_Float16)1;
  both.halves.y = y == y ? (_Float16)y : (_Float16)1;
  both.halves = -both.halves;
  return both.word;
}
static u32 pair_of_signs(float x, float y) {
  const _Float16 a = x == x ? (_Float16)x : (_Float16)1, b = y == y ? (_Float16)y : (_Float16)1;
  union { Pair halves; u32 word; } both;
  both.halves.x = -a;
  both.halves.y = b < 0 ? -b : b;
  return both.word;
}
static u32 pair_of_sums(u32 x, u32 y, u32 z) {
  union { u32 word; Pair halves; } a = {x}, b = {y}, c = {z}, r;
  r.halves = a.halves * b.halves + c.halves;
  if (r.halves.x != r.halves.x) r.halves.x = 1;
  if (r.halves.y != r.halves.y) r.halves.y = 1;
  return r.word;
}

#include "../device_kernels.def"

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

// An array that is indexed by data: local memory.
KERNEL(histogram) PARAMETERS(u32, u32) {
  const u32 k = ID;
  u32 bins[16];
  for (u32 n = 0; n < 16; ++n) bins[n] = 0;
  for (u32 n = 0; n < 32; ++n) bins[(a[k] >> (n & 28) ^ n) & 15] += b[(k + n) & 127];
  out[k] = bins[c[k] & 15] + 3 * bins[(c[k] >> 4) & 15];
}

// A table of branches, calls that are not inlined, one of them of itself, and a structure by value.
__attribute__((noinline)) static u32 euclid(u32 x, u32 y) { return y == 0 ? x : euclid(y, x % y); }
typedef struct { u32 a[5]; u64 b; } Record;
__attribute__((noinline)) static Record turned(Record r, u32 by) {
  Record out = r;
  for (u32 n = 0; n < 5; ++n) out.a[n] = r.a[(n + by) % 5] + (u32)r.b;
  out.b = r.b * by;
  return out;
}
__attribute__((noinline)) static void add_to(u32* place, u32 n) { *place += n; }
KERNEL(calls) PARAMETERS(u32, u32) {
  const u32 k = ID, x = a[k], y = b[k], z = c[k];
  Record r = {{x, y, z, k, 7}, x * 3ull + y};
  u32 v = 0;
  switch (x & 15) {
    case 0: v = y + 1; break;
    case 1: v = y * z; break;
    case 2: v = euclid(y & 0xffff, z & 0xffff); break;
    case 3: v = y ^ z; break;
    case 4: r = turned(r, y & 7); break;
    case 5: v = y >> 3; break;
    case 6: v = z - y; break;
    case 7: add_to(&v, z); add_to(&v, y); break;
    case 8: v = euclid(z & 0xff, 12); break;
    case 9: v = y | 5; break;
    case 11: v = ~y; break;
    default: v = turned(r, 3).a[1]; break;
  }
  out[k] = v + r.a[0] * 3 + r.a[4] + (u32)(r.b >> 5);
}

// Constants in memory.
static const u32 kTable[8] = {3, 1, 4, 1, 5, 9, 2, 6};
#ifdef __NVPTX__
#define CONSTANT __attribute__((address_space(4)))
#else
#define CONSTANT
#endif
static const CONSTANT float kFloats[4] = {0.5f, -2.0f, 3.25f, 1e10f};
KERNEL(constants) PARAMETERS(u32, float) {
  const u32 k = ID;
  out[k] = (float)kTable[a[k] & 7] * kFloats[b[k] & 3] + kFloats[c[k] & 3];
}

// Variable amounts of copies: memcpy, by loops.
KERNEL(copies) PARAMETERS(u64, u64) {
  const u32 k = ID;
  u8 bytes[24];
  __builtin_memcpy(bytes, &a[k], 8);
  __builtin_memcpy(bytes + 8, &b[k], 8);
  __builtin_memcpy(bytes + 16, &c[k], 8);
  u64 v = 0;
  for (u32 n = 0; n < 8; ++n) v = v << 8 | bytes[(n * 5 + (u32)a[k]) % 24];
  out[k] = v;
}

// Wide integers: carries.
KERNEL(wide) PARAMETERS(u64, u64) {
  const u32 k = ID;
  typedef unsigned __int128 u128;
  const u128 x = (u128)a[k] << 64 | b[k], y = (u128)c[k] << 64 | a[k];
  const u128 v = x * y + (x - y) + (x >> (c[k] & 127));
  out[k] = (u64)(v >> 64) ^ (u64)v;
}

#ifdef __NVPTX__
#define SHARED static __attribute__((address_space(3)))
// c = a b for 64 x 64 matrices: blocks of 16 x 16 take tiles through shared memory.
SHARED float tile_a[16][16];
SHARED float tile_b[16][16];
KERNEL(product)(float* c, const float* a, const float* b) {
  const u32 x = THREAD, y = __nvvm_read_ptx_sreg_tid_y();
  const u32 row = __nvvm_read_ptx_sreg_ctaid_y() * 16 + y;
  const u32 column = __nvvm_read_ptx_sreg_ctaid_x() * 16 + x;
  float sum = 0;
  for (u32 t = 0; t < 64; t += 16) {
    tile_a[y][x] = a[row * 64 + t + x];
    tile_b[y][x] = b[(t + y) * 64 + column];
    __syncthreads();
    for (u32 k = 0; k < 16; ++k) sum = __builtin_fmaf(tile_a[y][k], tile_b[k][x], sum);
    __syncthreads();
  }
  c[row * 64 + column] = sum;
}

// The sum of a block by shuffles, then through shared memory; blocks add theirs by an atomic.
SHARED u32 sums[32];
KERNEL(total)(u32* out, const u32* a) {
  u32 v = a[ID];
  for (u32 by = 16; by; by >>= 1) v += __nvvm_shfl_sync_down_i32(~0u, v, by, 31);
  if ((THREAD & 31) == 0) sums[THREAD / 32] = v;
  __syncthreads();
  if (THREAD == 0) __nvvm_atom_add_gen_i((int*)out, (int)(sums[0] + sums[1]));
}

// The last block to come sums what all have left: a fence, an atomic that tells, a load that sees.
SHARED u32 is_last;
KERNEL(last_block)(u32* out, u32* partial, u32* count, const u32* a) {
  if (THREAD == 0) {
    u32 v = 0;
    for (u32 n = 0; n < 64; ++n) v += a[ID + n];
    partial[__nvvm_read_ptx_sreg_ctaid_x()] = v;
    __nvvm_membar_gl();
    is_last = (u32)__nvvm_atom_add_gen_i((int*)count, 1) == __nvvm_read_ptx_sreg_nctaid_x() - 1;
  }
  __syncthreads();
  if (is_last && THREAD == 0) {
    u32 v = 0;
    for (u32 n = 0; n < __nvvm_read_ptx_sreg_nctaid_x(); ++n) v += ((volatile u32*)partial)[n];
    *out = v;
  }
}
#endif

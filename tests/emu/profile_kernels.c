// Kernels whose order in time is known, for gfx1100 and for PTX: transposes and products of square
// matrices.
typedef unsigned int u32;

#define GLOBAL __attribute__((address_space(1)))
#define LDS static __attribute__((address_space(3), loader_uninitialized))
#ifdef __NVPTX__
#define KERNEL(name) __attribute__((nvptx_kernel)) void name
#define LANE __nvvm_read_ptx_sreg_tid_x()
#define GROUP __nvvm_read_ptx_sreg_ctaid_x()
#define barrier __syncthreads
#else
#define KERNEL(name) __attribute__((amdgpu_kernel)) void name
#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()

static void barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#endif

// A workgroup of 256 has a tile of 32 x 32, row after row of 32 lanes.
KERNEL(transpose_naive)(GLOBAL float* out, const GLOBAL float* in, u32 n) {
  const u32 tiles = n / 32, x = GROUP % tiles * 32 + LANE % 32, y = GROUP / tiles * 32 + LANE / 32;
  for (u32 k = 0; k < 32; k += 8) out[x * n + y + k] = in[(y + k) * n + x];
}

#define TILED(name, pitch)                                                                    \
  LDS float name##_tile[32 * pitch];                                                          \
  KERNEL(name)(GLOBAL float* out, const GLOBAL float* in, u32 n) {                            \
    const u32 tiles = n / 32, column = GROUP % tiles * 32, row = GROUP / tiles * 32;          \
    const u32 x = LANE % 32, y = LANE / 32;                                                   \
    for (u32 k = 0; k < 32; k += 8)                                                           \
      name##_tile[(y + k) * pitch + x] = in[(row + y + k) * n + column + x];                  \
    barrier();                                                                                \
    for (u32 k = 0; k < 32; k += 8)                                                           \
      out[(column + y + k) * n + row + x] = name##_tile[x * pitch + y + k];                   \
  }
TILED(transpose_conflicts, 32)
TILED(transpose_padded, 33)

// Each lane has `t` x `t` results; a workgroup of 256 has 16 x 16 lanes.
#define PRODUCT(name, t)                                                                      \
  KERNEL(name)(GLOBAL float* out, const GLOBAL float* a, const GLOBAL float* b, u32 n) {      \
    const u32 blocks = n / (16 * t);                                                          \
    const u32 x = GROUP % blocks * 16 * t + LANE % 16, y = (GROUP / blocks * 16 + LANE / 16) * t; \
    float sum[t][t] = {};                                                                     \
    for (u32 k = 0; k < n; ++k) {                                                             \
      float column[t];                                                                        \
      for (u32 j = 0; j < t; ++j) column[j] = b[k * n + x + 16 * j];                          \
      for (u32 i = 0; i < t; ++i) {                                                           \
        const float row = a[(y + i) * n + k];                                                 \
        for (u32 j = 0; j < t; ++j) sum[i][j] = __builtin_fmaf(row, column[j], sum[i][j]);    \
      }                                                                                       \
    }                                                                                         \
    for (u32 i = 0; i < t; ++i)                                                               \
      for (u32 j = 0; j < t; ++j) out[(y + i) * n + x + 16 * j] = sum[i][j];                  \
  }
PRODUCT(product_1, 1)
PRODUCT(product_2, 2)
PRODUCT(product_4, 4)

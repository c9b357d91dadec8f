// The dialect for NVIDIA's GPUs by clang's NVPTX target, without CUDA's headers or libraries:
// OpenCL C, as for AMD's, becomes PTX, which NVIDIA's driver compiles for the GPU that is there. A
// kernel has one parameter, the address of its argument block: a graph that is launched again has
// nothing to be told when words of the block change. Sources of what the prelude names: LLVM's
// NVPTX usage guide and BuiltinsNVPTX.def (release 19), PTX ISA 7.8.
#include <map>

#include "base/compilers.h"
#include "render/c.h"
#include "render/c_nvptx.h"
#include "render/user_nvptx.h"

namespace tuff::render {
namespace {

// Every lane takes part in a shuffle, and a barrier orders workgroup memory and global memory (PTX
// ISA, bar.sync). `restrict`: nothing that the kernel stores is its block, which may be read
// through the cache for what is constant.
constexpr const char* kNvptxPrelude = R"c(#pragma STDC FP_CONTRACT ON
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef half f16; typedef float f32; typedef double f64;
#define TUFF_KERNEL(x, y, z) __kernel __attribute__((reqd_work_group_size(x, y, z)))
#define TUFF_GLOBAL __global
#define TUFF_BLOCK TUFF_GLOBAL const void* restrict
/* Of a buffer, 16-byte aligned: neighbours are loaded together, which has to be proven here. */
#define TUFF_ADDRESS(block, i) tuff_address((TUFF_GLOBAL const u64*)(block) + (i))
static inline u64 tuff_address(TUFF_GLOBAL const u64* place) {
  const u64 address = *place;
  __builtin_assume((address & 15) == 0);
  return address; }
#define TUFF_ALIGNED(pointer, bytes) __builtin_assume(((u64)(pointer) & ((bytes) - 1)) == 0)
#define TUFF_SCALAR(block, i) ((TUFF_GLOBAL const i32*)(block))[i]
#define TUFF_SHARED(T, name, count) __local T name[count] __attribute__((aligned(16)))
#define TUFF_GROUP(axis) (i32)__nvvm_read_ptx_sreg_ctaid_##axis()
#define TUFF_LOCAL(axis) (i32)__nvvm_read_ptx_sreg_tid_##axis()
#define TUFF_BARRIER() __syncthreads()
#define TUFF_SUBGROUP(item) ((item) / 32)
static inline i32 tuff_lane(void) { return (i32)__nvvm_read_ptx_sreg_laneid(); }
#define TUFF_AS(T, x) __builtin_astype(x, T)
#define TUFF_ATOMIC_ADD(place, x) \
  __scoped_atomic_fetch_add(place, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)
#define TUFF_ATOMIC_MAX(place, x) \
  __scoped_atomic_fetch_max(place, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)
static inline u32 TUFF_EXCHANGE(TUFF_GLOBAL u32* word, u32 held, u32 wanted) {
  __scoped_atomic_compare_exchange_n(word, &held, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                     __MEMORY_SCOPE_DEVICE);
  return held; }
/* x as another lane has it: a lane that is known, and one that differs from lane to lane. */
static inline u32 tuff_shuffle(u32 x, i32 lane) {
  return (u32)__nvvm_shfl_sync_idx_i32(~0u, (i32)x, lane, 31); }
static inline u32 tuff_broadcast(u32 x, i32 lane) { return tuff_shuffle(x, lane); }
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

// mma.sync of Ampere and later: 16x8 sums of 16 steps of 16-bit factors, of 32 steps of 8-bit ones.
// Lanes are in groups of four: a group has two rows of the left factor and of the sums, and one
// column of the right factor. Source: PTX ISA 7.8, "Matrix Fragments for mma.m16n8k16" and
// "mma.m16n8k32".
constexpr const char* kNvptxPlaces = R"c(
#define TUFF_A16 8
#define TUFF_B16 4
#define TUFF_A8 16
#define TUFF_B8 8
#define TUFF_SUMS 4
#define TUFF_QUAD (tuff_lane() / 4)
/* Elements that a lane has beside each other: 2 or 4, as many as fill a word. */
#define TUFF_STEPS(n, i, word) \
  (tuff_lane() % 4 * (word) + (i) % (word) + (i) / (n) * 4 * (word))
#define TUFF_ROW_a(n, i) (TUFF_QUAD + (i) / ((n) / 4) % 2 * 8)
#define TUFF_COLUMN_a(n, i) TUFF_STEPS((n) / 2, i, (n) / 4)
#define TUFF_ROW_b(n, i) TUFF_STEPS((n) / 2, i, (n) / 2)
#define TUFF_COLUMN_b(n, i) TUFF_QUAD
#define TUFF_ROW_sum(n, i) (TUFF_QUAD + (i) / 2 * 8)
#define TUFF_COLUMN_sum(n, i) (tuff_lane() % 4 * 2 + (i) % 2)
)c";
constexpr const char* kNvptxProducts = R"c(
typedef u32 tuff_words4 __attribute__((ext_vector_type(4)));
typedef u32 tuff_words2 __attribute__((ext_vector_type(2)));
#define TUFF_MMA(shape, types, T, r, a, b, c) ({ \
  const tuff_words4 wa = TUFF_AS(tuff_words4, a); \
  const tuff_words2 wb = TUFF_AS(tuff_words2, b); \
  const T wc = c; \
  T d; \
  __asm__("mma.sync.aligned." shape ".row.col." types \
          " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" \
          : "=" r(d[0]), "=" r(d[1]), "=" r(d[2]), "=" r(d[3]) \
          : "r"(wa[0]), "r"(wa[1]), "r"(wa[2]), "r"(wa[3]), "r"(wb[0]), "r"(wb[1]), \
            r(wc[0]), r(wc[1]), r(wc[2]), r(wc[3])); \
  d; })
#define TUFF_MULTIPLY_f16(a, b, c) \
  TUFF_MMA("m16n8k16", "f32.f16.f16.f32", tuff_sum_f32, "f", a, b, c)
#define TUFF_MULTIPLY_bf16(a, b, c) \
  TUFF_MMA("m16n8k16", "f32.bf16.bf16.f32", tuff_sum_f32, "f", a, b, c)
#define TUFF_MULTIPLY_i8(a, b, c) \
  TUFF_MMA("m16n8k32", "s32.s8.s8.s32", tuff_sum_i32, "r", a, b, c)
#define TUFF_MULTIPLY_u8(a, b, c) \
  TUFF_MMA("m16n8k32", "s32.u8.u8.s32", tuff_sum_i32, "r", a, b, c)
)c";

Prelude nvptx_prelude() {
  Prelude p;
  p.add(kNvptxPrelude);
  add_arithmetic(p);
  add_atomics(p);
  add_matrices(p, kNvptxPlaces, kNvptxProducts);
  return p;
}

}  // namespace

const CDialect& c_nvptx() {
  static const CDialect row{
      .format = BinaryFormat::Ptx,
      .workgroups = true,
      .block_by_address = true,
      .wide_suffix = "l",
      .claims_alignment = true,
      .f16 = true,
      .prelude = nvptx_prelude(),
      .attributes = workgroup_attributes,
      .compile = [](auto units, auto& t) { return compile_nvptx(units, t.arch); },
      .identity =
          [](auto& t) { return fmt::format("{}; {}", amdgpu_compiler_identity(), t.arch); }};
  return row;
}

std::string with_block_size(std::string ptx, const std::string& symbol,
                            const std::array<uint32_t, 3>& local) {
  const size_t entry = ptx.find(fmt::format(".entry {}(", symbol));
  const size_t body = ptx.find("\n{", entry);
  if (entry == std::string::npos || body == std::string::npos)
    fail<CompileError>("the compiler's PTX has no kernel {}", symbol);
  ptx.insert(body + 1, fmt::format(".reqntid {}, {}, {}\n", local[0], local[1], local[2]));
  return ptx;
}

std::vector<Binary> compile_nvptx_sources(std::span<const Source> sources, const Target& t) {
  std::vector<Binary> out = compile_c_sources(c_nvptx(), sources, t);
  struct Module {
    std::string text;
    std::shared_ptr<const std::vector<uint8_t>> bytes;
    std::map<std::string, bool> sized;
  };
  std::map<const void*, Module> modules;  // by what the compiler gave, which kernels share
  for (const Binary& b : out) {
    Module& m = modules[b.bytes.get()];
    if (m.text.empty()) m.text.assign(b.bytes->begin(), b.bytes->end());
    if (!m.sized.emplace(b.symbol, true).second) continue;
    if (b.by_user) m.text = with_argument_block(m.text, b.symbol);
    m.text = with_block_size(std::move(m.text), b.symbol, b.local);
  }
  for (auto& [bytes, m] : modules)
    m.bytes = std::make_shared<const std::vector<uint8_t>>(m.text.begin(), m.text.end());
  for (Binary& b : out) b.bytes = modules.at(b.bytes.get()).bytes;
  return out;
}

}  // namespace tuff::render

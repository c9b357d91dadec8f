#include "render/c_matrices.h"

#include "base/check.h"
#include "ir/walk.h"

namespace tuff::render {

using ir::MatrixArg;
using ir::MatrixUse;
using ir::Node;
using ir::Op;

namespace {

// Between what a dialect says of places and of products. A lane holds so many elements of a factor
// of 16 and of 8 bits and of sums: TUFF_A16 ..., TUFF_SUMS; element i of n lies in row
// TUFF_ROW_a(n, i) ... and column TUFF_COLUMN_a(n, i) ... of the matrix.
constexpr const char* kMatrices = R"c(
#if defined(TUFF_SUMS)
#define TUFF_MATRIX(T, E, N) typedef E T __attribute__((ext_vector_type(N))); enum { T##_count = N };
TUFF_MATRIX(tuff_a_f16, f16, TUFF_A16) TUFF_MATRIX(tuff_b_f16, f16, TUFF_B16)
TUFF_MATRIX(tuff_a_bf16, u16, TUFF_A16) TUFF_MATRIX(tuff_b_bf16, u16, TUFF_B16)
TUFF_MATRIX(tuff_a_i8, i8, TUFF_A8) TUFF_MATRIX(tuff_b_i8, i8, TUFF_B8)
TUFF_MATRIX(tuff_a_u8, u8, TUFF_A8) TUFF_MATRIX(tuff_b_u8, u8, TUFF_B8)
TUFF_MATRIX(tuff_sum_f32, f32, TUFF_SUMS) TUFF_MATRIX(tuff_sum_i32, i32, TUFF_SUMS)
TUFF_MATRIX(tuff_sum_f16, f16, TUFF_SUMS)
/* Element (row, column) lies at p[row * rows + column * columns]. */
#define TUFF_MATRIX_LOAD(use, t, name, p, rows, columns) \
  tuff_##use##_##t name; \
  for (i32 i = 0; i < tuff_##use##_##t##_count; i++) \
    name[i] = (p)[TUFF_ROW_##use(tuff_##use##_##t##_count, i) * (rows) + \
                  TUFF_COLUMN_##use(tuff_##use##_##t##_count, i) * (columns)]
#define TUFF_MATRIX_STORE(use, t, value, p, rows, columns) \
  for (i32 i = 0; i < tuff_##use##_##t##_count; i++) \
    (p)[TUFF_ROW_##use(tuff_##use##_##t##_count, i) * (rows) + \
        TUFF_COLUMN_##use(tuff_##use##_##t##_count, i) * (columns)] = (value)[i]
#endif
)c";

// A CPU's thread has whole matrices. Clang gives each variable a register, and says before the
// first one what shapes they have. A right factor has pairs of rows interleaved.
constexpr const char* kCpuMatrices = R"c(
#if defined(__AMX_BF16__) && __has_builtin(__builtin_ia32_tdpbf16ps_internal)
typedef i32 tuff_matrix __attribute__((vector_size(1024), aligned(64)));
typedef tuff_matrix tuff_a_bf16; typedef tuff_matrix tuff_b_bf16; typedef tuff_matrix tuff_sum_f32;
#define TUFF_MATRIX_ZERO() __builtin_ia32_tilezero_internal(16, 64)
#define TUFF_LOAD_LINES(p, stride) \
  __builtin_ia32_tileloadd64_internal(16, 64, (const void*)(p), (stride) * (i64)sizeof(u16))
#define TUFF_STORE_LINES(p, m) __builtin_ia32_tilestored64_internal(16, 64, p, 64, m)
#define TUFF_MULTIPLY_bf16(a, b, sum) __builtin_ia32_tdpbf16ps_internal(16, 64, 64, sum, a, b)
#else
typedef struct { u16 line[16][32]; } tuff_a_bf16; typedef tuff_a_bf16 tuff_b_bf16;
typedef struct { f32 line[16][16]; } tuff_sum_f32;
static inline f32 f32_of_bits(u32 bits) { union { u32 u; f32 f; } v = {bits}; return v.f; }
static inline tuff_sum_f32 TUFF_MATRIX_ZERO(void) { tuff_sum_f32 m = {{{0}}}; return m; }
static inline tuff_a_bf16 TUFF_LOAD_LINES(const u16* p, i64 stride) {
  tuff_a_bf16 m;
  for (int r = 0; r < 16; r++) for (int c = 0; c < 32; c++) m.line[r][c] = p[r * stride + c];
  return m; }
static inline void TUFF_STORE_LINES(f32* p, tuff_sum_f32 m) {
  for (int r = 0; r < 16; r++) for (int c = 0; c < 16; c++) p[r * 16 + c] = m.line[r][c]; }
static inline tuff_sum_f32 TUFF_MULTIPLY_bf16(tuff_a_bf16 a, tuff_b_bf16 b, tuff_sum_f32 sum) {
  for (int r = 0; r < 16; r++) for (int k = 0; k < 32; k++) for (int c = 0; c < 16; c++)
    sum.line[r][c] += f32_of_bits((u32)a.line[r][k] << 16) *
                      f32_of_bits((u32)b.line[k / 2][2 * c + k % 2] << 16);
  return sum; }
#endif
#define TUFF_MATRIX_LOAD(use, t, name, p, rows, columns) \
  tuff_##use##_##t name = TUFF_LOAD_LINES(p, rows)
static inline void store_sums(const f32* m, f32* p, i64 rows, i64 columns) {
  if (columns == 1) {
    for (int r = 0; r < 16; r++) for (int c = 0; c < 16; c++) p[r * rows + c] = m[r * 16 + c];
  } else {
    for (int c = 0; c < 16; c++) for (int r = 0; r < 16; r++)
      p[r * rows + c * columns] = m[r * 16 + c];
  }
}
#define TUFF_MATRIX_STORE(use, t, value, p, rows, columns) do { \
  f32 lines_[256] __attribute__((aligned(64))); \
  TUFF_STORE_LINES(lines_, value); \
  store_sums(lines_, p, rows, columns); } while (0)
)c";

const char* use_of(const MatrixArg& m) {
  return m.use == MatrixUse::A ? "a" : m.use == MatrixUse::B ? "b" : "sum";
}

// "p, rows, columns" of the prelude's macros.
std::string place_of(const CBody& b, const CMemory& memory, size_t i, int instance) {
  const Node& u = *b.kernel.ops[i];
  const MatrixArg& m = u.get<MatrixArg>();
  const Node& index = *without_after(u.src(0).get());
  const std::string at = memory.pointer(memory.access(index, b.kernel.lanes[i], instance));
  return m.by_columns ? fmt::format("{}, 1, {}", at, m.stride)
                      : fmt::format("{}, {}, 1", at, m.stride);
}

}  // namespace

std::string matrix_type(const MatrixArg& m, DType t) {
  return fmt::format("tuff_{}_{}", use_of(m), short_name(t));
}

void add_matrices(Prelude& p, std::string_view places, std::string_view products) {
  p.add({"tuff_a_", "tuff_b_", "tuff_sum_", "TUFF_MATRIX_", "TUFF_MULTIPLY_"},
        std::string(places) + kMatrices + std::string(products));
}

void add_cpu_matrices(Prelude& p) {
  p.add({"tuff_a_", "tuff_b_", "tuff_sum_", "TUFF_MATRIX_", "TUFF_MULTIPLY_"}, kCpuMatrices);
}

void emit_matrix(CBody& b, const CMemory& memory, size_t i) {
  const Node& u = *b.kernel.ops[i];
  const bool by_element = u.op == Op::Cast || u.op == Op::Mul;
  const MatrixArg& m = by_element ? *ir::matrix_of(&u) : u.get<MatrixArg>();
  for (int n = 0; n < b.space.count(b.kernel.lanes[i]); ++n) {
    const auto source = [&](size_t s) { return b.value(u.src(s).get(), b.kernel.lanes[i], n); };
    const std::string type = matrix_type(m, u.dtype), name = fmt::format("v{}_{}", i, n);
    if (u.op == Op::MatrixStore) {
      b.line(fmt::format("TUFF_MATRIX_STORE({}, {}, {}, {});", use_of(m),
                         short_name(u.src(1)->dtype), source(1).base, place_of(b, memory, i, n)));
      continue;
    }
    if (u.op == Op::MatrixLoad)
      b.line(fmt::format("TUFF_MATRIX_LOAD({}, {}, {}, {});", use_of(m), short_name(u.dtype), name,
                         place_of(b, memory, i, n)));
    else if (u.op == Op::MatrixFill)
      b.line(b.dialect.workgroups
                 ? fmt::format("{0} {1} = ({0})({2});", type, name, b.scalar(source(0), u.dtype))
                 : fmt::format("{} {} = TUFF_MATRIX_ZERO();", type, name));
    else if (u.op == Op::Cast)
      b.line(
          fmt::format("{0} {1} = __builtin_convertvector({2}, {0});", type, name, source(0).base));
    else if (u.op == Op::Mul)
      b.line(fmt::format("{} {} = {} * {};", type, name, source(0).base, source(1).base));
    else
      b.line(fmt::format("{} {} = TUFF_MULTIPLY_{}({}, {}, {});", type, name,
                         short_name(u.src(0)->dtype), source(0).base, source(1).base,
                         source(2).base));
    b.values[i].push_back(CValue{name});
  }
}

}  // namespace tuff::render

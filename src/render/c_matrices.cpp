// Cooperative matrices of dialects with workgroups: which lane holds which elements is the
// prelude's matter (add_matrices()).
#include "base/check.h"
#include "ir/walk.h"
#include "render/c_kernel.h"

namespace tuff::render {

using ir::MatrixArg;
using ir::MatrixUse;
using ir::Node;
using ir::Op;

namespace {

// By generation: how many steps of the reduction a lane has of a row or column of 16-bit factors,
// whether the lanes of both halves have the same, and which rows of a column of sums. Of 8-bit
// factors RDNA multiplies 16 steps at once, CDNA3 32. Sources: ISA documents of RDNA3, RDNA4 and
// CDNA3, matrix instructions.
constexpr const char* kMatrices = R"c(
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
#if defined(TUFF_SUMS)
#define TUFF_ROW_a(n, i) (tuff_lane() % 16)
#define TUFF_COLUMN_a(n, i) TUFF_STEP(n, i)
#define TUFF_ROW_b(n, i) TUFF_STEP(n, i)
#define TUFF_COLUMN_b(n, i) (tuff_lane() % 16)
#define TUFF_ROW_sum(n, i) TUFF_SUM_ROW(i)
#define TUFF_COLUMN_sum(n, i) (tuff_lane() % 16)
#define TUFF_MATRIX(T, E, N) typedef E T __attribute__((ext_vector_type(N))); enum { T##_count = N };
TUFF_MATRIX(tuff_a_f16, f16, TUFF_STEPS_16) TUFF_MATRIX(tuff_b_f16, f16, TUFF_STEPS_16)
TUFF_MATRIX(tuff_a_bf16, u16, TUFF_STEPS_16) TUFF_MATRIX(tuff_b_bf16, u16, TUFF_STEPS_16)
TUFF_MATRIX(tuff_a_i8, i8, TUFF_STEPS_8) TUFF_MATRIX(tuff_b_i8, i8, TUFF_STEPS_8)
TUFF_MATRIX(tuff_a_u8, u8, TUFF_STEPS_8) TUFF_MATRIX(tuff_b_u8, u8, TUFF_STEPS_8)
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

const char* use_of(const MatrixArg& m) {
  return m.use == MatrixUse::A ? "a" : m.use == MatrixUse::B ? "b" : "sum";
}

std::string matrix_type(const MatrixArg& m, DType t) {
  return fmt::format("tuff_{}_{}", use_of(m), short_name(t));
}

}  // namespace

void add_matrices(Prelude& p) {
  p.add({"tuff_a_", "tuff_b_", "tuff_sum_", "TUFF_MATRIX_", "TUFF_MULTIPLY_"}, kMatrices);
}

std::string CKernel::held_type(const Node& u, bool vec) const {
  const MatrixArg* m = ir::matrix_of(&u);
  return m ? matrix_type(*m, u.dtype) : type_of(u.dtype, vec ? width_ : 1);
}

// "p, rows, columns" of the prelude's macros.
std::string CKernel::matrix_place(size_t i, int instance) const {
  const Node& u = *k_.ops[i];
  const MatrixArg& m = u.get<MatrixArg>();
  const Node& index = *without_after(u.src(0).get());
  const std::string at = pointer(access(index, k_.lanes[i], instance));
  return m.by_columns ? fmt::format("{}, 1, {}", at, m.stride)
                      : fmt::format("{}, {}, 1", at, m.stride);
}

void CKernel::emit_matrix(size_t i) {
  const Node& u = *k_.ops[i];
  if (!dialect_.workgroups) fail<Unsupported>("C renderer: a cooperative matrix");
  const MatrixArg& m = u.op == Op::Cast ? *ir::matrix_of(&u) : u.get<MatrixArg>();
  for (int n = 0; n < space_.count(k_.lanes[i]); ++n) {
    const auto source = [&](size_t s) { return value(u.src(s).get(), k_.lanes[i], n); };
    const std::string type = matrix_type(m, u.dtype), name = fmt::format("v{}_{}", i, n);
    if (u.op == Op::MatrixStore) {
      line(fmt::format("TUFF_MATRIX_STORE({}, {}, {}, {});", use_of(m),
                       short_name(u.src(1)->dtype), source(1).base, matrix_place(i, n)));
      continue;
    }
    if (u.op == Op::MatrixLoad)
      line(fmt::format("TUFF_MATRIX_LOAD({}, {}, {}, {});", use_of(m), short_name(u.dtype), name,
                       matrix_place(i, n)));
    else if (u.op == Op::MatrixFill)
      line(fmt::format("{0} {1} = ({0})({2});", type, name, scalar(source(0), u.dtype)));
    else if (u.op == Op::Cast)
      line(fmt::format("{0} {1} = __builtin_convertvector({2}, {0});", type, name,
                       source(0).base));
    else
      line(fmt::format("{} {} = TUFF_MULTIPLY_{}({}, {}, {});", type, name,
                       short_name(u.src(0)->dtype), source(0).base, source(1).base,
                       source(2).base));
    values_[i].push_back(CValue{name});
  }
}

}  // namespace tuff::render

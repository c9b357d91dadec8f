#include "render/spirv_matrices.h"

#include <bit>

#include <spirv/unified1/spirv.hpp>

#include <tuff/dtype.h>

#include "base/check.h"
#include "render/spirv_cooperative_matrix.h"
#include "render/spirv_values.h"

namespace tuff::render::testing {
namespace {

// A float whose type names an encoding is bfloat16.
float as_float(uint64_t bits, const Type& t) {
  if (t.bits == 32) return std::bit_cast<float>(uint32_t(bits));
  return t.is_bfloat ? std::bit_cast<float>(uint32_t(bits) << 16) : f16_to_f32(uint16_t(bits));
}
int64_t as_integer(uint64_t bits, const Type& t) {
  const uint32_t unused = 64 - t.bits;
  return t.is_signed ? int64_t(bits << unused) >> unused : int64_t(bits << unused >> unused);
}

void check_signs(uint32_t signs, uint32_t bit, const Type& component) {
  TUFF_CHECK(((signs & bit) != 0) == component.is_signed,
             "a product of matrices claims another sign than its components have");
}

}  // namespace

std::vector<size_t> held_elements(const Type& matrix, uint32_t lane, uint32_t lanes) {
  std::vector<size_t> out;
  const size_t count = size_t(matrix.matrix[0]) * matrix.matrix[1];
  for (size_t e = 0; e < count; ++e)
    if ((e * 5 + e / lanes * 3) % lanes == lane) out.push_back(e);
  return out;
}

uint64_t matrix_offset(uint32_t layout, uint64_t stride, uint64_t row, uint64_t column) {
  TUFF_CHECK(layout == cooperative::kRowMajor || layout == cooperative::kColumnMajor,
             "layout {} of a matrix", layout);
  return layout == cooperative::kRowMajor ? row * stride + column : column * stride + row;
}

Matrix multiply_add(const SpirvReader& m, const Instruction& i, const Matrix& a, const Matrix& b,
                    const Matrix& c) {
  const Type &ta = m.type_of(i.operands[0]), &tb = m.type_of(i.operands[1]),
             &tc = m.type_of(i.operands[2]), &to = m.type(i.type);
  const uint32_t rows = ta.matrix[0], summed = ta.matrix[1], columns = tb.matrix[1];
  TUFF_CHECK(ta.matrix[2] == cooperative::kUseA && tb.matrix[2] == cooperative::kUseB &&
                 tc.matrix[2] == cooperative::kUseAccumulator && tc.matrix == to.matrix &&
                 tb.matrix[0] == summed && tc.matrix[0] == rows && tc.matrix[1] == columns,
             "matrices that cannot be multiplied");
  const Type &ca = m.type(ta.element), &cb = m.type(tb.element), &cc = m.type(tc.element);
  const uint32_t signs = i.operands.size() > 3 ? i.operands[3] : 0;
  if (cc.op == spv::OpTypeInt) {
    check_signs(signs, cooperative::kSignedA, ca);
    check_signs(signs, cooperative::kSignedB, cb);
    check_signs(signs, cooperative::kSignedC, cc);
    check_signs(signs, cooperative::kSignedResult, m.type(to.element));
  }
  Matrix out(c.size());
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t n = 0; n < columns; ++n) {
      const uint64_t start = c[r * columns + n];
      float sum = cc.op == spv::OpTypeFloat ? as_float(start, cc) : 0;
      uint64_t total = start;
      for (uint32_t k = 0; k < summed; ++k) {
        const uint64_t x = a[r * summed + k], y = b[k * columns + n];
        if (cc.op == spv::OpTypeFloat)
          sum += as_float(x, ca) * as_float(y, cb);
        else
          total += uint64_t(as_integer(x, ca) * as_integer(y, cb));
      }
      out[r * columns + n] =
          cc.op == spv::OpTypeFloat ? std::bit_cast<uint32_t>(sum) : masked(total, cc.bits);
    }
  }
  return out;
}

}  // namespace tuff::render::testing

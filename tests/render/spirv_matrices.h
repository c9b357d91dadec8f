// Cooperative matrices of the SPIR-V interpreter, by SPV_KHR_cooperative_matrix: how the elements
// lie in memory, what a product is, and which lane holds which element. The extension leaves the
// last to the device; here it is an order that no kernel would guess.
#pragma once

#include <span>
#include <vector>

#include "render/spirv_reader.h"

namespace tuff::render::testing {

using Matrix = std::vector<uint64_t>;  // bits of the elements, in rows

// Elements that a lane holds, by their number in the matrix.
std::vector<size_t> held_elements(const Type& matrix, uint32_t lane, uint32_t lanes);
// Of the element in a row and column, from the first: in elements of what the pointer points to.
uint64_t matrix_offset(uint32_t layout, uint64_t stride, uint64_t row, uint64_t column);
// a * b + c; `signs` are the matrix operands. InternalError where types do not fit each other or
// the operands claim other signs than the components have.
Matrix multiply_add(const SpirvReader& m, const Instruction& i, const Matrix& a, const Matrix& b,
                    const Matrix& c);

}  // namespace tuff::render::testing

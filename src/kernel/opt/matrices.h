// Sums of products as products of cooperative matrices: which of them can be, and what they become.
// Called by Tiling. Must never know a device's name.
//
// A subgroup holds fragments of the sums in registers. When they are complete, and nothing but a
// conversion follows them, they are stored as they are. Else they go to workgroup memory, where
// every lane of that subgroup finds the elements that it goes on with: which lane holds which
// elements of a matrix is the device's own business, and what follows the sum (bias, activation,
// any layout of the output) is then like that of any other kernel.
#pragma once

#include <vector>

#include "kernel/opt/rules.h"

namespace tuff::kernel {

// Makes `out` sum of products `number` of the Tiling's factors as one of matrices of this shape, or
// gives the reason why it is none.
std::string matrix_product(const ir::UOp& ast, const Tiling& t, int number,
                           const MatrixShape& shape, MatrixProduct& out);

// The sum that adds up these products as they are; empty: there is none.
ir::UOp sum_of(const ir::UOp& ast, const ir::UOp& product);
// The factor in the shape's dtype, before it is converted to that of the sum.
ir::UOp narrow_factor(const ir::UOp& factor);
std::string factor_refusal(const ir::UOp& factor, DType t);

// Who goes on with which element of a fragment, as its lanes read it: in turn, a few neighbours
// each. Where sums are stored as matrices: all lanes, with the first.
struct MatrixElements {
  std::vector<ir::UOp> ranges;  // of the loop, the lanes, the neighbours; outermost first
  ir::UOp element;              // in rows
  ir::UOp row, column;
};
MatrixElements matrix_elements(const MatrixProduct& p, int64_t lanes, int32_t& next_id);

// Where the matrices of a factor lie.
struct MatrixPlace {
  ir::UOp begin;  // an Index of the first element
  MatrixLines lines;
};
// The sum, a matrix. `factors`: by their place in the product; `summed`: the ranges of what is left
// of the reduction.
ir::UOp matrix_sum(const MatrixProduct& p, std::span<const MatrixPlace> factors,
                   std::span<const ir::UOp> summed);
// Its value at the element that `elements` names, by way of workgroup memory. `ranges`: of all
// axes, outermost first; `number`: the memory's.
ir::UOp matrix_element(const MatrixProduct& p, const ir::UOp& sum, std::span<const ir::UOp> ranges,
                       const MatrixElements& elements, int32_t number);
// What stores a sum as it is, or converted, where the product says so.
ir::UOp matrix_store(const MatrixProduct& p, const ir::UOp& place, const ir::UOp& sum);

}  // namespace tuff::kernel

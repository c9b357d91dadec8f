// Kernels of one op and dtype each, over values of the dtype's whole range: what emulation is
// compared with the direct meaning of their AST by, on the host and on devices.
#pragma once

#include <string>
#include <vector>

#include "kernel/ast_run.h"

namespace tuff::kernel::testing {

struct DtypeCase {
  std::string name;
  ir::UOp ast;
  double ulp = 0;  // of a float result, in units of the last place of its dtype
};

// Every op of the dtype; reductions by every op that folds.
std::vector<DtypeCase> op_cases(DType t);
// To every dtype of `to`.
std::vector<DtypeCase> cast_cases(DType from, std::span<const DType> to);
// Loads and stores at odd offsets, by steps, gated, in place, several outputs beside each other.
std::vector<DtypeCase> storage_cases(DType t);

// Permutations of axes, for tiles in workgroup memory.
std::vector<DtypeCase> transpose_cases(DType t);

// Contents for every Param: edges of the dtype's range, and random bits of every width. Without f32
// and bf16 subnormals, which devices may flush.
Buffers full_range_buffers(const ir::UOp& ast, uint32_t seed);

// Bit by bit for integers, any NaN as NaN, within case.ulp for floats.
void expect_equal(const DtypeCase& c, const Buffers& start, const Buffers& got, const Buffers& want,
                  const std::string& where);

}  // namespace tuff::kernel::testing

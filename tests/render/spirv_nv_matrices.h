// The validator of Debian 12 (SPIRV-Tools 2023.1) predates SPV_KHR_cooperative_matrix and knows
// NVIDIA's extension before it, of the same types and instructions. A module is translated to that
// for validation: opcodes, the order of operands, the layout as a bool. What the older extension
// does not say is lost on the way and not validated: the use of a type (which operand of a product
// it may be), the signs of integer components, and bf16, which is validated as if it were f16.
#pragma once

#include <cstdint>
#include <vector>

namespace tuff::render {

// The module itself where it has no cooperative matrices.
std::vector<uint32_t> with_nv_matrices(const std::vector<uint32_t>& words);

}  // namespace tuff::render

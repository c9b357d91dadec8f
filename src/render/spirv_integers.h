// Integers of the SPIR-V renderer as sums of a shared base and constants. Called by SpirvKernel.
#pragma once

#include <optional>
#include <vector>

#include "render/spirv_body.h"

namespace tuff::render {

// What the op gives of x in that form: sums keep constants apart; products by a number too; numbers
// alone are folded.
std::optional<SpirvValue> affine(SpirvBody& b, const ir::Node& u, const std::vector<SpirvValue>& x);

}  // namespace tuff::render

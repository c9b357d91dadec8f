// Integers of the C renderer as sums of a shared base and constants. Called by CKernel.
#pragma once

#include <optional>
#include <vector>

#include "render/c_body.h"

namespace tuff::render {

// What the op gives of x in that form: Add, Sub and Mul by a number keep it, lanes that are divided
// have it, any op of numbers alone is folded. Bases are I32 or I64; what indexes memory does not
// overflow, so constants that are not far may move out of the sum.
std::optional<CValue> affine(CBody& b, const ir::Node& u, const std::vector<CValue>& x);

}  // namespace tuff::render

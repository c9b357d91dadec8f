// The operands of Tensor's functions with PyTorch's results, written by scripts/tensor-values.py:
// JSON text. Called by the function cases and their tests.
#pragma once

#include <string_view>

namespace tuff::check {

std::string_view function_values();

}  // namespace tuff::check

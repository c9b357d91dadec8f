// Values of a model that are nan or inf, for warnings of them. Called by training and
// cli. Must never print.
#pragma once

#include <string>

#include <tuff/nn.h>

namespace tuff::models {

// "nan in wte.weight and 13 more of 14 tensors", "no nan or inf in its 14 tensors". Computes and
// waits.
std::string not_finite_text(const nn::StateDict& state);

}  // namespace tuff::models

// Self-tests of cooperative matrices: for each shape that a driver lists a small product of whole
// numbers, with sums that are exact, by several fragments and subgroups. Called by verdicts.cpp and
// tests. Knows hcq's interfaces and nothing of files or Vulkan's calls.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/target.h"
#include "hcq/device.h"
#include "kernel/lowered.h"

namespace tuff::devices::vulkan {

// One word, for verdicts: "matrix:16x16x16:float16:float16:float32".
std::string matrix_test_name(const MatrixShape& shape);

kernel::LinearKernel matrix_test_kernel(const MatrixShape& shape, const Target& target);
// The contents of its buffers before it runs.
std::vector<std::vector<std::byte>> matrix_test_contents(const kernel::LinearKernel& k);

// As run_self_test().
std::string run_matrix_self_test(const MatrixShape& shape, hcq::Device& device,
                                 const Target& target);

}  // namespace tuff::devices::vulkan

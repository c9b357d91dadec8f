// Self-tests of cooperative matrices: for each shape that a driver lists a small product with sums
// that are exact, by several fragments and subgroups, and every way in which sums leave. Called by
// verdicts.cpp and tests. Knows hcq's interfaces and nothing of files or Vulkan's calls.
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

// What becomes of the sums: they are stored as they are, or rounded to float16; or one is added,
// element by element.
enum class MatrixTest : uint8_t { Stored, Rounded, Continued };
std::vector<MatrixTest> matrix_tests(const MatrixShape& shape);

kernel::LinearKernel matrix_test_kernel(const MatrixShape& shape, MatrixTest test,
                                        const Target& target);
// The contents of its buffers before it runs.
std::vector<std::vector<std::byte>> matrix_test_contents(const kernel::LinearKernel& k);

// As run_self_test().
std::string run_matrix_self_test(const MatrixShape& shape, hcq::Device& device,
                                 const Target& target);

}  // namespace tuff::devices::vulkan

// Runs a kernel's AST by its direct meaning, and its lowered list through the reference
// interpreter: the two sides that the tests of kernel compare.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernel/lowered.h"
#include "kernel/opt/rules.h"

namespace tuff::kernel::testing {

using Buffer = std::vector<std::byte>;
using Buffers = std::vector<Buffer>;

// Random contents for every Param of an AST: floats in [-2, 2], integers in 0..6.
Buffers random_buffers(const ir::UOp& ast, uint32_t seed);

void run_ast(const ir::UOp& ast, Buffers& buffers);
void run_linear(const LinearKernel& k, Buffers& buffers);

// Lowers, runs both, and fails the test unless outputs agree to `tolerance` (relative to 1 + |x|)
// and nothing but outputs changed. Returns the lowered kernel.
// `run` is what runs the lowered one.
void expect_same(const ir::UOp& ast, const LinearKernel& k, double tolerance,
                 const std::string& what,
                 void (*run)(const LinearKernel& k, Buffers& buffers) = run_linear);

// Why one of them is illegal; empty: none is.
std::string refusal(const ir::UOp& ast, const Target& t, const std::vector<Opt>& opts);
void expect_refused(const ir::UOp& ast, const Target& t, const std::vector<Opt>& opts,
                    const std::string& why);

struct NamedTarget {
  std::string name;
  Target target;
};
// The built-in ones, a CPU with AVX2 and four cores, and small_gpu().
std::vector<NamedTarget> test_targets();
// A GPU that has less of everything than Vulkan promises: 16 invocations, 12 workgroups.
Target small_gpu();
// A GPU whose subgroups of 8 multiply small matrices, of f16, bf16 and 8-bit integers.
Target matrix_gpu();
// A CPU whose threads have matrix registers for BF16, and caches of a few matrices.
Target matrix_cpu();

}  // namespace tuff::kernel::testing

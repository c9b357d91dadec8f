// Numbers of a kernel as arguments of it, so that kernels that differ in nothing else are one:
// x * 3 and x * 4 in a loop. Called by engine's program cache, which decides when. Numbers that
// something is folded by stay: 0, 1, 2 and their like, divisors and shifts of integers, all
// arithmetic of offsets. Knows nothing of programs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/target.h"
#include "graph/uop.h"

namespace tuff::kernel {

// The constants of a kernel's AST that may be arguments, in an order that depends on nothing but
// the AST's structure.
std::vector<graph::UOp> free_constants(const graph::UOp& ast, const Target& target);

// The AST with those constants that `taken` (by position) names as arguments: variables that
// constant_word() knows. Equal for ASTs that differ in them alone.
graph::UOp with_arguments(const graph::UOp& ast, std::span<const graph::UOp> constants,
                          const std::vector<bool>& taken);

// Values of those variables: constant_word(v) is the index of v's. Two words for each constant.
std::vector<int32_t> constant_words(std::span<const graph::UOp> constants);
int32_t constant_word(const graph::Node& variable);  // -1: of another variable

}  // namespace tuff::kernel

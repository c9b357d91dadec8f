// Numbers of a kernel as arguments of it, so that kernels that differ in nothing else are one:
// x * 3 and x * 4 in a loop. Called by engine's program cache, which decides when. Numbers that
// something is folded by stay: 0, 1, 2 and their like, divisors and shifts of integers, all
// arithmetic of offsets. Knows nothing of programs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/target.h"
#include "ir/uop.h"

namespace tuff::kernel {

// The constants of a kernel's AST that may be arguments, in an order that depends on nothing but
// the AST's structure.
std::vector<ir::UOp> free_constants(const ir::UOp& ast, const Target& target);

// The AST with those constants that `taken` (by position) names as arguments: variables that
// constant_word() knows. Equal for ASTs that differ in them alone.
ir::UOp with_arguments(const ir::UOp& ast, std::span<const ir::UOp> constants,
                          const std::vector<bool>& taken);

// Values of those variables: constant_word(v) is the index of v's. Two words for each constant.
std::vector<int32_t> constant_words(std::span<const ir::UOp> constants);
int32_t constant_word(const ir::Node& variable);  // -1: of another variable

}  // namespace tuff::kernel

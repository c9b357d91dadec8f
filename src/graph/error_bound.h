// How far two right implementations of one kernel may differ: running error analysis (Higham,
// Accuracy and Stability of Numerical Algorithms, section 3.3) over a kernel's AST and its inputs.
// Called by engine's validation. Knows nothing of devices; what a device may do with one op is the
// Vulkan specification's precision table ("Precision and Operation of SPIR-V Instructions").
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/uop.h"

namespace tuff::graph {

// A value and how far an implementation may be from the exact one, absolutely. Infinite: nothing is
// known, since a rounding decides which way a comparison falls or which element is read.
struct Bounded {
  Scalar value;
  double error = 0;
};

struct KernelInputs {
  std::vector<std::span<const std::byte>> buffers;  // by Param slot, contents before the kernel ran
  std::unordered_map<std::string, int64_t> variables;
};

struct StoredElement {
  int32_t slot;
  int64_t element;
};

// For every element that the kernel stores and `wanted` says yes to: its value and bound. Rounds of
// a sum of n terms grow like 4 sqrt(n), in any order (Higham and Mary, A New Approach to
// Probabilistic Rounding Error Analysis, SISC 41(5), 2019), never beyond n - 1.
void bound_errors(const UOp& ast, const KernelInputs& inputs,
                  const std::function<bool(const StoredElement&)>& wanted,
                  const std::function<void(const StoredElement&, const Bounded&)>& found);

// Units in the last place by which results differ where nothing cancels: what needs no analysis.
// 0 for a kernel that only moves and compares: its results are exact.
double plain_ulps(const UOp& ast);

// The distance from |x| to the next value of its dtype, at least that of the smallest normal
// number.
double ulp_of(DType t, double x);

}  // namespace tuff::graph

// How far two right implementations of one kernel may differ: running error analysis over a
// kernel's AST and its inputs, op by op (op_error.h). Called by engine's validation. Must never
// know devices.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op_error.h"
#include "ir/uop.h"

namespace tuff::ir {

struct KernelInputs {
  std::vector<std::span<const std::byte>> buffers;  // by Param slot, contents before the kernel ran
  std::unordered_map<std::string, int64_t> variables;
};

struct StoredElement {
  int32_t slot;
  int64_t element;
};

// For every element that the kernel stores and `wanted` says yes to: its value and bound.
void bound_errors(const UOp& ast, const KernelInputs& inputs,
                  const std::function<bool(const StoredElement&)>& wanted,
                  const std::function<void(const StoredElement&, const Bounded&)>& found);

// About how many terms of reductions an element's bound is made of.
int64_t terms_of_element(const UOp& ast);

// Units in the last place by which results differ where nothing cancels: what needs no analysis.
// 0 for a kernel that only moves and compares: its results are exact.
double plain_ulps(const UOp& ast);

}  // namespace tuff::ir

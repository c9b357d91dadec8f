// A case of the conformance suite: a named graph with inputs drawn from a seed, and how far a
// device may be from the interpreter. Made by suite.cpp, random graphs and reproducers; run by
// run_case. Must never know devices beyond a name.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "ir/scalar_eval.h"
#include "ir/uop.h"

namespace tuff::check {

// The unit in which errors are counted.
enum class Scale : uint8_t {
  Element,  // units of the last place of each expected element
  Largest,  // of the largest finite magnitude expected in the array: sums cancel, elements may not
};

// What a device may differ by. Two figures, because IEEE 754 promises a host more than Vulkan's
// specification promises of a driver.
struct Budget {
  double host_ulp = 0, vulkan_ulp = 0;
  Scale scale = Scale::Element;
  std::string source = "exact";  // specification section or reasoning
};
// A row of budgets.def.
struct BudgetRow {
  ir::Op op;
  DType dtype;
  double host_ulp, vulkan_ulp;
  const char* source;
};
std::span<const BudgetRow> budget_rows();
// The row of budgets.def for an op whose result has this dtype; where there is none, the ulps of
// ops.def.
Budget budget_of(ir::Op op, DType result);

using Arrays = std::vector<ir::HostArray>;
using Roots = std::vector<ir::UOp>;

struct Case {
  std::string name;           // "add/f32/odd": op/dtype/shape
  std::string op;             // row of the summary: "add", "Tensor.softmax"
  DType dtype = DType::Void;  // column of the counts
  std::vector<DType> dtypes;  // every dtype the case needs of a device
  Budget budget;
  // The same arrays for the same seed, on every machine.
  std::function<Arrays(uint64_t seed)> inputs;
  // The graph over one node per input; nodes that know no device are placed on `device`.
  std::function<Roots(const Roots& inputs, const std::string& device)> build;
  ir::VariableValues variables;  // values of symbolic extents
};

}  // namespace tuff::check

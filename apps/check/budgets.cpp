#include "check/case.h"

#include <cmath>

namespace tuff::check {
namespace {

constexpr BudgetRow kRows[] = {
#define TUFF_BUDGET(op, dtype, host, vulkan, source) \
  {ir::Op::op, DType::dtype, host, vulkan, source},
#include "check/budgets.def"
#undef TUFF_BUDGET
};

}  // namespace

std::span<const BudgetRow> budget_rows() { return kRows; }

Budget budget_of(ir::Op op, DType result) {
  for (const BudgetRow& r : kRows) {
    if (r.op == op && r.dtype == result)
      return {r.host_ulp, r.vulkan_ulp, Scale::Element, r.source};
  }
  const double ulps = is_float(result) ? std::ceil(ir::row(op).ulps) : 0;
  if (ulps == 0) return {};
  return {ulps, ulps, Scale::Element, "the ulps of ops.def"};
}

}  // namespace tuff::check

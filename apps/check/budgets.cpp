#include "check/case.h"

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
  return {};
}

}  // namespace tuff::check

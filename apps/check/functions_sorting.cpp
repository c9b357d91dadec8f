// TensorSorting as rows. Operands: sorting() and running() of scripts/tensor-values.py. Functions
// that wait for a number of elements are tested by tests/tensor/sorting_test.cpp.
#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

std::vector<Function> order() {
  return {
      {"sort", Exact, [](Inputs x) { return x[0].sort(1).first; }},
      {"sort_descending", Exact, [](Inputs x) { return x[0].sort(0, true).first; }},
      {"sort_positions", Exact, [](Inputs x) { return x[0].sort(-1, true).second; }},
      {"sort_special", Exact, [](Inputs x) { return x[0].sort().first; }},
      {"sort_long", Exact, [](Inputs x) { return x[0].sort().first; }},
      {"argsort", Exact, [](Inputs x) { return x[0].argsort(0); }},
      {"argsort_long", Exact, [](Inputs x) { return x[0].argsort(1, true); }},
      {"msort", Exact, [](Inputs x) { return x[0].msort(); }},
      {"topk", Exact, [](Inputs x) { return x[0].topk(3, 1).first; }},
      {"topk_smallest", Exact, [](Inputs x) { return x[0].topk(2, 0, false).second; }},
      {"topk_long", Exact, [](Inputs x) { return x[0].topk(5).first; }},
      {"kthvalue", Exact, [](Inputs x) { return x[0].kthvalue(2, 1).first; }},
      {"kthvalue_place", Exact, [](Inputs x) { return x[0].kthvalue(2, 1, true).second; }},
  };
}

std::vector<Function> selection() {
  using enum Interpolation;
  return {
      {"median", Exact, [](Inputs x) { return x[0].median(); }},
      {"median_dim", Exact, [](Inputs x) { return x[0].median(1, true).first; }},
      {"median_nan", Exact, [](Inputs x) { return x[0].median(1).first; }},
      {"nanmedian", Exact, [](Inputs x) { return x[0].nanmedian(1).first; }},
      {"mode", Exact, [](Inputs x) { return x[0].mode(1).first; }},
      {"mode_place", Exact, [](Inputs x) { return x[0].mode(0, true).second; }},
      {"quantile", Rounded, [](Inputs x) { return x[0].quantile(0.3); }},
      {"quantile_dim", Rounded, [](Inputs x) { return x[0].quantile(0.8, 1, true); }},
      {"quantile_several", Rounded, [](Inputs x) { return x[0].quantile(x[1].detach(), 0); }},
      {"quantile_lower", Exact, [](Inputs x) { return x[0].quantile(0.3, 2, false, Lower); }},
      {"quantile_higher", Exact, [](Inputs x) { return x[0].quantile(0.3, 2, false, Higher); }},
      {"quantile_nearest", Exact, [](Inputs x) { return x[0].quantile(0.3, 2, false, Nearest); }},
      {"quantile_midpoint", Rounded,
       [](Inputs x) { return x[0].quantile(0.3, 2, false, Midpoint); }},
      {"nanquantile", Rounded, [](Inputs x) { return x[0].nanquantile(0.6, 1); }},
  };
}

std::vector<Function> search() {
  return {
      {"searchsorted", Exact, [](Inputs x) { return x[0].searchsorted(x[1]); }},
      {"searchsorted_right", Exact, [](Inputs x) { return x[0].searchsorted(x[1], true); }},
      {"searchsorted_rows", Exact, [](Inputs x) { return x[0].searchsorted(x[1]); }},
      {"bucketize", Exact, [](Inputs x) { return x[0].bucketize(x[1]); }},
      {"histc", Exact, [](Inputs x) { return x[0].histc(4, -2, 2); }},
  };
}

std::vector<Function> running_values() {
  return {
      {"cumprod", Rounded, [](Inputs x) { return x[0].cumprod(1); }},
      {"cumprod_zeros", Rounded, [](Inputs x) { return x[0].cumprod(1); }},
      {"cumprod_int", Exact, [](Inputs x) { return x[0].cumprod(-1); }},
      {"cumprod_long", Rounded, [](Inputs x) { return x[0].cumprod(1); }},
      {"cummax", Exact, [](Inputs x) { return x[0].cummax(1).first; }},
      {"cummax_place", Exact, [](Inputs x) { return x[0].cummax(1).second; }},
      {"cummax_special", Exact, [](Inputs x) { return x[0].cummax(0).first; }},
      {"cummin", Exact, [](Inputs x) { return x[0].cummin(0).first; }},
      {"cummin_place", Exact, [](Inputs x) { return x[0].cummin(1).second; }},
      {"cummin_long", Exact, [](Inputs x) { return x[0].cummin(1).first; }},
      {"logcumsumexp", Curved, [](Inputs x) { return x[0].logcumsumexp(1); }},
      {"logcumsumexp_long", Curved, [](Inputs x) { return x[0].logcumsumexp(1); }},
  };
}

}  // namespace

std::vector<Function> functions_of_sorting() {
  std::vector<Function> out;
  for (const auto part : {order, selection, search, running_values})
    for (Function& f : part()) out.push_back(std::move(f));
  return out;
}

}  // namespace tuff::check

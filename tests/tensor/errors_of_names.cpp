// Rows for the functions of Tensor that are made of others, under PyTorch's names.
#include "tensor/errors_table.h"

#include <tuff/tensor.h>

namespace tuff::test {
namespace names {
namespace {

Tensor floats(const Sizes& s) { return Tensor::empty(s, {.device = "CPU"}); }
Tensor ints(const Sizes& s) { return Tensor::empty(s, {DType::I32, "CPU"}); }
Tensor bools(const Sizes& s) { return Tensor::empty(s, {DType::Bool, "CPU"}); }
Tensor elsewhere(const Sizes& s) { return Tensor::empty(s, {.device = "NULL"}); }

const std::vector<Wrong> kNumbers = {
    {"addcdiv", "InvalidArgument", "x, a and b are int32: cast()",
     [] { ints({2}).addcdiv(ints({2}), ints({2})); }},
    {"addcmul", "ShapeError", "2 against 3", [] { floats({2}).addcmul(floats({2}), floats({3})); }},
    {"bitwise_and", "InvalidArgument", "not defined on float32",
     [] { floats({2}).bitwise_and(floats({2})); }},
    {"bitwise_or", "ShapeError", "2 against 3", [] { ints({2}).bitwise_or(ints({3})); }},
    {"bitwise_xor", "InvalidArgument", "not defined on float32",
     [] { floats({2}).bitwise_xor(1); }},
    {"float_power", "ShapeError", "2 against 3", [] { floats({2}).float_power(floats({3})); }},
    {"fmax", "ShapeError", "fmax: shapes (2,) and (3,)", [] { floats({2}).fmax(floats({3})); }},
    {"fmin", "InvalidArgument", "fmin: tensors are on CPU and NULL",
     [] { floats({2}).fmin(elsewhere({2})); }},
    {"frexp", "InvalidArgument", "frexp: not defined on int32", [] { ints({2}).frexp(); }},
    {"gcd", "InvalidArgument", "gcd: not defined on float32",
     [] { floats({2}).gcd(floats({2})); }},
    {"heaviside", "ShapeError", "heaviside: shapes (2,) and (3,)",
     [] { floats({2}).heaviside(floats({3})); }},
    {"isneginf", "InvalidArgument", "undefined tensor", [] { (void)Tensor().isneginf(); }},
    {"isposinf", "InvalidArgument", "undefined tensor", [] { (void)Tensor().isposinf(); }},
    {"lcm", "InvalidArgument", "lcm: not defined on float32",
     [] { floats({2}).lcm(floats({2})); }},
    {"ldexp", "ShapeError", "2 against 3", [] { floats({2}).ldexp(ints({3})); }},
    {"logaddexp2", "ShapeError", "logaddexp2: shapes (2,) and (3,)",
     [] { floats({2}).logaddexp2(floats({3})); }},
    {"logspace", "InvalidArgument", "logspace: -1 steps",
     [] { Tensor::logspace(0, 1, -1, 10, {.device = "CPU"}); }},
    {"mvlgamma", "InvalidArgument", "0 dimensions", [] { floats({2}).mvlgamma(0); }},
    {"mvlgamma terms", "ShapeError", "more than 2^63 elements",
     [] { floats({2}).mvlgamma(INT64_MAX); }},
    {"nextafter", "InvalidArgument", "not defined on int32",
     [] { ints({2}).nextafter(ints({2})); }},
    {"polygamma", "InvalidArgument", "the derivative -1", [] { floats({2}).polygamma(-1); }},
};

const std::vector<Wrong> kProducts = {
    {"addbmm", "ShapeError", "axis 2 of (2, 2, 3) and 1 of (2, 4, 2) differ",
     [] { floats({2, 2}).addbmm(floats({2, 2, 3}), floats({2, 4, 2})); }},
    {"addmv", "ShapeError", "must have 2 and 1 axes",
     [] { floats({2}).addmv(floats({2, 3, 1}), floats({3})); }},
    {"addr", "ShapeError", "must have 1 and 1 axes",
     [] { floats({2, 2}).addr(floats({2, 1}), floats({2})); }},
    {"inner", "ShapeError", "axis 1 of (2, 3) and 1 of (2, 4) differ",
     [] { floats({2, 3}).inner(floats({2, 4})); }},
    {"tensordot", "ShapeError", "axis 1 of (2, 3) and 0 of (2, 3) differ",
     [] { floats({2, 3}).tensordot(floats({2, 3}), 1); }},
    {"tensordot axes", "InvalidArgument", "3 axes of (2, 3) and (2, 3)",
     [] { floats({2, 3}).tensordot(floats({2, 3}), 3); }},
    {"vander", "ShapeError", "(2, 2) is no vector", [] { floats({2, 2}).vander(); }},
    {"vander columns", "InvalidArgument", "-1 columns", [] { floats({2}).vander(-1); }},
};

const std::vector<Wrong> kStatistics = {
    {"cumulative_trapezoid", "ShapeError", "points at (2,) for (3,)",
     [] { floats({3}).cumulative_trapezoid(floats({2})); }},
    {"dist", "ShapeError", "2 against 3", [] { floats({2}).dist(floats({3})); }},
    {"isin", "InvalidArgument", "isin: tensors are on CPU and NULL",
     [] { floats({2}).isin(elsewhere({2})); }},
    {"masked_select", "InvalidArgument", "the mask is float32, not bool",
     [] { floats({2}).masked_select(floats({2})); }},
    {"masked_select shape", "ShapeError", "2 against 3",
     [] { floats({2}).masked_select(bools({3})); }},
    {"nanmean", "InvalidArgument", "nanmean: not defined on int32", [] { ints({2}).nanmean(); }},
    {"nansum", "IndexError", "axis 3 is outside", [] { floats({2}).nansum({3}); }},
    {"pairwise_distance", "ShapeError", "3 against 4",
     [] { floats({2, 3}).pairwise_distance(floats({2, 4})); }},
    {"pdist", "ShapeError", "(2,) is no matrix", [] { floats({2}).pdist(); }},
    {"pdist p", "InvalidArgument", "p is -1", [] { floats({2, 2}).pdist(-1); }},
    {"renorm", "InvalidArgument", "p is 0", [] { floats({2, 2}).renorm(0, 0, 1); }},
    {"renorm norm", "InvalidArgument", "maxnorm is -1", [] { floats({2, 2}).renorm(2, 0, -1); }},
    {"renorm rank", "ShapeError", "fewer than two axes", [] { floats({2}).renorm(2, 0, 1); }},
    {"sum_to_size", "ShapeError", "3 against 2", [] { floats({2, 3}).sum_to_size({2, 2}); }},
    {"trapezoid", "IndexError", "trapezoid: axis 2 is outside",
     [] { floats({3}).trapezoid(1, 2); }},
};

const std::vector<Wrong> kViews = {
    {"as_strided_scatter", "ShapeError", "a source of (3,) for a part of (2,)",
     [] { floats({4}).as_strided_scatter(floats({3}), {2}, {1}); }},
    {"block_diag", "ShapeError", "(2, 2, 2) has more than two axes",
     [] { Tensor::block_diag({floats({2, 2, 2})}); }},
    {"broadcast_tensors", "ShapeError", "2 against 3",
     [] { Tensor::broadcast_tensors({floats({2}), floats({3})}); }},
    {"cartesian_prod", "ShapeError", "(2, 2) is no vector",
     [] { Tensor::cartesian_prod({floats({2, 2})}); }},
    {"cartesian_prod none", "InvalidArgument", "no tensors", [] { Tensor::cartesian_prod({}); }},
    {"combinations", "InvalidArgument", "-1 elements", [] { floats({3}).combinations(-1); }},
    {"diagflat", "InvalidArgument", "undefined tensor", [] { (void)Tensor().diagflat(); }},
    {"diagonal_scatter", "ShapeError", "a source of (2,) for a part of (3,)",
     [] { floats({3, 3}).diagonal_scatter(floats({2})); }},
    {"diff", "InvalidArgument", "diff: -1 times", [] { floats({3}).diff(-1); }},
    {"diff scalar", "ShapeError", "a scalar has no axis", [] { floats({}).diff(); }},
    {"dsplit", "ShapeError", "(2, 2) has 2 axes, fewer than 3", [] { floats({2, 2}).dsplit(2); }},
    {"dsplit_at", "ShapeError", "fewer than 3", [] { floats({2, 2}).dsplit_at({1}); }},
    {"hsplit", "ShapeError", "() has 0 axes", [] { floats({}).hsplit(2); }},
    {"hsplit parts", "ShapeError", "axis 0 of (3,) does not divide into 2 parts",
     [] { floats({3}).hsplit(2); }},
    {"hsplit none", "InvalidArgument", "0", [] { floats({3}).hsplit(0); }},
    {"hsplit_at", "ShapeError", "() has 0 axes", [] { floats({}).hsplit_at({1}); }},
    {"select_scatter", "ShapeError", "a source of (3,) for a part of (2,)",
     [] { floats({2, 2}).select_scatter(floats({3}), 0, 0); }},
    {"slice_scatter", "InvalidArgument", "step 0 must be positive",
     [] { floats({3}).slice_scatter(floats({1}), 0, 0, 2, 0); }},
    {"t", "ShapeError", "(2, 2, 2) has more than two axes", [] { floats({2, 2, 2}).t(); }},
    {"tril_indices", "InvalidArgument", "a matrix of -1 x 2",
     [] { Tensor::tril_indices(-1, 2, 0, "CPU"); }},
    {"triu_indices", "InvalidArgument", "a matrix of 2 x -1",
     [] { Tensor::triu_indices(2, -1, 0, "CPU"); }},
    {"unravel_index", "InvalidArgument", "indices are float32",
     [] { floats({2}).unravel_index({2, 2}); }},
    {"vsplit", "ShapeError", "(2,) has 1 axes", [] { floats({2}).vsplit(2); }},
    {"vsplit_at", "ShapeError", "(2,) has 1 axes", [] { floats({2}).vsplit_at({1}); }},
};

}  // namespace
}  // namespace names

std::vector<const Wrong*> wrong_rows_of_names() {
  std::vector<const Wrong*> out;
  for (const std::vector<Wrong>* t :
       {&names::kNumbers, &names::kProducts, &names::kStatistics, &names::kViews}) {
    for (const Wrong& w : *t) out.push_back(&w);
  }
  return out;
}

}  // namespace tuff::test

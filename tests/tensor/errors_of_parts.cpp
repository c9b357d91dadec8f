// Rows for the functions of Tensor's bases and the losses.
#include <cmath>

#include <tuff/tensor.h>
#include "tensor/errors_table.h"

namespace tuff::test {
namespace parts {
namespace {

Tensor floats(const Sizes& s) { return Tensor::empty(s, {.device = "CPU"}); }
Tensor ints(const Sizes& s) { return Tensor::empty(s, {DType::I32, "CPU"}); }
Tensor elsewhere(const Sizes& s) { return Tensor::empty(s, {.device = "NULL"}); }

const std::vector<Wrong> kMath = {
    {"atan2", "ShapeError", "atan2: shapes (2,) and (3,)", [] { floats({2}).atan2(floats({3})); }},
    {"atan2 device", "InvalidArgument", "NULL", [] { floats({2}).atan2(elsewhere({2})); }},
    {"isclose", "InvalidArgument", "tolerances -1 and 0",
     [] { floats({2}).isclose(floats({2}), -1, 0); }},
    {"frac", "InvalidArgument", "frac: not defined on int32", [] { ints({2}).frac(); }},
    {"lerp", "InvalidArgument", "lerp: not defined on int32",
        [] { ints({2}).lerp(ints({2}), 0.5); }},
    {"clamp tensors", "InvalidArgument", "neither bound",
     [] { floats({2}).clamp(Tensor(), Tensor()); }},
    {"celu", "InvalidArgument", "alpha is 0", [] { floats({2}).celu(0); }},
    {"hardtanh", "InvalidArgument", "1 is above 0", [] { floats({2}).hardtanh(1, 0); }},
    {"softshrink", "InvalidArgument", "lambda is -1", [] { floats({2}).softshrink(-1); }},
    {"rrelu", "InvalidArgument", "1 is above 0", [] { floats({2}).rrelu(1, 0); }},
    {"glu", "ShapeError", "axis 0 of (3,) has no halves", [] { floats({3}).glu(); }},
    {"prelu", "ShapeError", "weight (2,) for (4, 3)", [] { floats({4, 3}).prelu(floats({2})); }},
    {"normalize", "IndexError", "normalize", [] { floats({3}).normalize(); }},
    {"add_", "ShapeError", "add_: (2,) does not hold the result, which is (3, 2)",
     [] { floats({2}).add_(floats({3, 2})); }},
    {"div_", "InvalidArgument", "div_: int32 does not hold the result", [] { ints({2}).div_(2); }},
    {"+= device", "InvalidArgument", "NULL",
     [] {
       Tensor x = floats({2});
       x += elsewhere({2});
     }},
};

const std::vector<Wrong> kViews = {
    {"roll", "InvalidArgument", "2 shifts for 1 axes", [] { floats({3}).roll({1, 2}, {0}); }},
    {"roll axis", "IndexError", "roll", [] { floats({3}).roll({1}, {1}); }},
    {"repeat_interleave", "InvalidArgument", "-1 repeats",
     [] { floats({3}).repeat_interleave(-1); }},
    {"meshgrid", "ShapeError", "(2, 2) is no vector", [] { Tensor::meshgrid({floats({2, 2})}); }},
    {"diag", "ShapeError", "no vector and no matrix", [] { floats({2, 2, 2}).diag(); }},
    {"diagonal", "InvalidArgument", "axis 0 twice", [] { floats({2, 2}).diagonal(0, 0, -2); }},
    {"diagonal axis", "IndexError", "diagonal", [] { floats({2}).diagonal(); }},
    {"trace", "ShapeError", "no matrix", [] { floats({2}).trace(); }},
    {"tensor_split", "InvalidArgument", "0 sections", [] { floats({2}).tensor_split(0); }},
    {"hstack", "InvalidArgument", "no tensors", [] { Tensor::hstack({}); }},
    {"movedim", "InvalidArgument", "twice", [] { floats({2, 2}).movedim({0, 0}, {0, 1}); }},
    {"movedim counts", "InvalidArgument", "1 axes to 2 places",
     [] { floats({2, 2}).movedim(Axes{0}, Axes{0, 1}); }},
    {"unflatten", "ShapeError", "(2, 4) does not fit axis 0 of (6,)",
     [] { floats({6}).unflatten(0, {2, 4}); }},
    {"rot90", "InvalidArgument", "axis 1 twice", [] { floats({2, 2}).rot90(1, {1, -1}); }},
    {"fliplr", "ShapeError", "no axis 1", [] { floats({2}).fliplr(); }},
    {"pad reflect", "ShapeError", "axis 0 of (3,) has no 3 elements",
     [] { floats({3}).pad({3, 0}, PadMode::Reflect); }},
    {"pad circular", "ShapeError", "no 4 elements",
     [] { floats({3}).pad({0, 4}, PadMode::Circular); }},
    {"pad replicate", "ShapeError", "no 1 elements",
     [] { floats({0}).pad({0, 1}, PadMode::Replicate); }},
    {"pad_to", "ShapeError", "axis 0 of (3,) is longer than 2", [] { floats({3}).pad_to({2}); }},
    {"shrink_to", "ShapeError", "axis 0 of (3,) is shorter than 4",
     [] { floats({3}).shrink_to({4}); }},
    {"unfold", "ShapeError", "shorter than 4", [] { floats({3}).unfold(0, 4, 1); }},
    {"unfold step", "InvalidArgument", "step 0", [] { floats({3}).unfold(0, 2, 0); }},
    {"dot", "ShapeError", "dot: (2, 2) and (2,)", [] { floats({2, 2}).dot(floats({2})); }},
    {"bmm", "ShapeError", "differ in the batch",
     [] { floats({2, 3, 4}).bmm(floats({1, 4, 5})); }},
    {"cross", "ShapeError", "no 3 elements", [] { floats({2}).cross(floats({2})); }},
    {"addmm", "ShapeError", "(1, 2, 2) for a product of (2, 2)",
     [] { floats({1, 2, 2}).addmm(floats({2, 4}), floats({4, 2})); }},
};

const std::vector<Wrong> kStatistics = {
    {"max_with_indices", "IndexError", "max_with_indices",
     [] { floats({2}).max_with_indices(1); }},
    {"norm", "InvalidArgument", "not a number", [] { floats({2}).norm(NAN); }},
    {"cdist", "ShapeError", "no rows of the same length",
     [] { floats({2, 3}).cdist(floats({2, 4})); }},
    {"cov", "ShapeError", "more than two axes", [] { floats({2, 3, 4}).cov(); }},
    {"nll_loss", "ShapeError", "nll_loss: logits (2, 3) need",
     [] { floats({2, 3}).nll_loss(ints({3})); }},
    {"nll_loss class", "IndexError", "nll_loss",
     [] {
       const Tensor target = Tensor::from(std::vector<int32_t>{3}, {1}, {.device = "CPU"});
       floats({1, 3}).nll_loss(target);
     }},
    {"smooth_l1_loss", "InvalidArgument", "beta is -1",
     [] { floats({2}).smooth_l1_loss(floats({2}), Reduction::Mean, -1); }},
    {"huber_loss", "InvalidArgument", "delta is 0",
     [] { floats({2}).huber_loss(floats({2}), Reduction::Mean, 0); }},
    {"binary_cross_entropy", "ShapeError", "(2,) and target (3,) differ",
     [] { floats({2}).binary_cross_entropy(floats({3})); }},
    {"gaussian_nll_loss", "ShapeError", "shapes (3,) and (2, 4) do not broadcast",
     [] { floats({2, 4}).gaussian_nll_loss(floats({2, 4}), floats({3})); }},
};

#define TUFF_UNDEFINED(...) \
  {#__VA_ARGS__, "InvalidArgument", "undefined", [] { Tensor().__VA_ARGS__; }}
const std::vector<Wrong> kUndefined = {
    TUFF_UNDEFINED(asin()),
    TUFF_UNDEFINED(acos()),
    TUFF_UNDEFINED(atan()),
    TUFF_UNDEFINED(sinh()),
    TUFF_UNDEFINED(cosh()),
    TUFF_UNDEFINED(asinh()),
    TUFF_UNDEFINED(acosh()),
    TUFF_UNDEFINED(atanh()),
    TUFF_UNDEFINED(log1p()),
    TUFF_UNDEFINED(expm1()),
    TUFF_UNDEFINED(log10()),
    TUFF_UNDEFINED(erfc()),
    TUFF_UNDEFINED(erfinv()),
    TUFF_UNDEFINED(lgamma()),
    TUFF_UNDEFINED(digamma()),
    TUFF_UNDEFINED(sinc()),
    TUFF_UNDEFINED(rad2deg()),
    TUFF_UNDEFINED(deg2rad()),
    TUFF_UNDEFINED(isfinite()),
    TUFF_UNDEFINED(signbit()),
    TUFF_UNDEFINED(logit()),
    TUFF_UNDEFINED(nan_to_num()),
    TUFF_UNDEFINED(elu()),
    TUFF_UNDEFINED(selu()),
    TUFF_UNDEFINED(hardsigmoid()),
    TUFF_UNDEFINED(hardswish()),
    TUFF_UNDEFINED(relu6()),
    TUFF_UNDEFINED(mish()),
    TUFF_UNDEFINED(logsigmoid()),
    TUFF_UNDEFINED(softsign()),
    TUFF_UNDEFINED(softmin()),
    TUFF_UNDEFINED(tanhshrink()),
    TUFF_UNDEFINED(hardshrink()),
    TUFF_UNDEFINED(quick_gelu()),
    TUFF_UNDEFINED(add(floats({2}))),
    TUFF_UNDEFINED(sub(floats({2}))),
    TUFF_UNDEFINED(mul(floats({2}))),
    TUFF_UNDEFINED(div(floats({2}))),
    TUFF_UNDEFINED(eq(floats({2}))),
    TUFF_UNDEFINED(ne(floats({2}))),
    TUFF_UNDEFINED(lt(floats({2}))),
    TUFF_UNDEFINED(le(floats({2}))),
    TUFF_UNDEFINED(gt(floats({2}))),
    TUFF_UNDEFINED(ge(floats({2}))),
    TUFF_UNDEFINED(hypot(floats({2}))),
    TUFF_UNDEFINED(logaddexp(floats({2}))),
    TUFF_UNDEFINED(logical_and(floats({2}))),
    TUFF_UNDEFINED(logical_or(floats({2}))),
    TUFF_UNDEFINED(logical_xor(floats({2}))),
    TUFF_UNDEFINED(xlogy(floats({2}))),
    TUFF_UNDEFINED(copysign(floats({2}))),
    TUFF_UNDEFINED(threshold(0, 1)),
    TUFF_UNDEFINED(tile({2})),
    TUFF_UNDEFINED(tensor_split_at({1})),
    TUFF_UNDEFINED(unbind()),
    TUFF_UNDEFINED(swapaxes(0, 1)),
    TUFF_UNDEFINED(broadcast_to({2})),
    TUFF_UNDEFINED(expand_as(floats({2}))),
    TUFF_UNDEFINED(view_as(floats({2}))),
    TUFF_UNDEFINED(reshape_as(floats({2}))),
    TUFF_UNDEFINED(ravel()),
    TUFF_UNDEFINED(flipud()),
    TUFF_UNDEFINED(diag_embed()),
    TUFF_UNDEFINED(atleast_1d()),
    TUFF_UNDEFINED(atleast_2d()),
    TUFF_UNDEFINED(atleast_3d()),
    TUFF_UNDEFINED(vdot(floats({2}))),
    TUFF_UNDEFINED(mv(floats({2}))),
    TUFF_UNDEFINED(mm(floats({2}))),
    TUFF_UNDEFINED(outer(floats({2}))),
    TUFF_UNDEFINED(kron(floats({2}))),
    TUFF_UNDEFINED(baddbmm(floats({1, 2, 2}), floats({1, 2, 2}))),
    TUFF_UNDEFINED(amax()),
    TUFF_UNDEFINED(amin()),
    TUFF_UNDEFINED(aminmax()),
    TUFF_UNDEFINED(min_with_indices(0)),
    TUFF_UNDEFINED(var_mean()),
    TUFF_UNDEFINED(std_mean()),
    TUFF_UNDEFINED(count_nonzero()),
    TUFF_UNDEFINED(corrcoef()),
    TUFF_UNDEFINED(cosine_similarity(floats({2}))),
    TUFF_UNDEFINED(allclose(floats({2}))),
    TUFF_UNDEFINED(equal(floats({2}))),
    TUFF_UNDEFINED(l1_loss(floats({2}))),
    TUFF_UNDEFINED(kl_div(floats({2}))),
    TUFF_UNDEFINED(poisson_nll_loss(floats({2}))),
    TUFF_UNDEFINED(hinge_embedding_loss(floats({2}))),
    TUFF_UNDEFINED(soft_margin_loss(floats({2}))),
    TUFF_UNDEFINED(margin_ranking_loss(floats({2}), floats({2}))),
    TUFF_UNDEFINED(cosine_embedding_loss(floats({2}), floats({2}))),
    TUFF_UNDEFINED(triplet_margin_loss(floats({2}), floats({2}))),
    TUFF_UNDEFINED(clone()),
    TUFF_UNDEFINED(sub_(1)),
    TUFF_UNDEFINED(mul_(1)),
    TUFF_UNDEFINED(clamp_(0)),
    TUFF_UNDEFINED(fill_(1)),
    TUFF_UNDEFINED(zero_()),
    TUFF_UNDEFINED(copy_(floats({2}))),
    TUFF_UNDEFINED(masked_fill_(Tensor(), 1)),
    {"vstack", "ShapeError", "differ outside", [] { Tensor::vstack({floats({2}), floats({3})}); }},
    {"dstack", "ShapeError", "differ outside", [] { Tensor::dstack({floats({2}), floats({3})}); }},
    {"column_stack", "ShapeError", "differ outside",
     [] { Tensor::column_stack({floats({2}), floats({3})}); }},
};
#undef TUFF_UNDEFINED

}  // namespace
}  // namespace parts

std::vector<const Wrong*> wrong_rows_of_parts() {
  std::vector<const Wrong*> out;
  for (const std::vector<Wrong>* t : {&parts::kMath, &parts::kViews, &parts::kStatistics,
      &parts::kUndefined}) {
    for (const Wrong& w : *t) out.push_back(&w);
  }
  return out;
}

}  // namespace tuff::test

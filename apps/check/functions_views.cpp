// TensorViews, TensorStatistics and losses as rows. Operands: later_movement(), later_reductions(),
// later_losses() and of_halves_of_bytes() of scripts/tensor-values.py.
#include <tuff/int4.h>

#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

std::vector<Function> views() {
  return {
      {"roll", Exact, [](Inputs x) { return x[0].roll({1, -5}, {0, 2}); }},
      {"roll_flat", Exact, [](Inputs x) { return x[0].roll({5}); }},
      {"repeat_interleave", Exact, [](Inputs x) { return x[0].repeat_interleave(3, 1); }},
      {"repeat_interleave_flat", Exact, [](Inputs x) { return x[0].repeat_interleave(2); }},
      {"tile", Exact, [](Inputs x) { return x[0].tile({2}); }},
      {"meshgrid", Exact,
       [](Inputs x) { return Tensor::stack(Tensor::meshgrid({x[0], x[1], x[2]})); }},
      {"meshgrid_columns", Exact,
       [](Inputs x) { return Tensor::stack(Tensor::meshgrid({x[0], x[1]}, GridOrder::Columns)); }},
      {"diag_vector", Exact, [](Inputs x) { return x[0].diag(-1); }},
      {"diag_matrix", Exact, [](Inputs x) { return x[0].diag(1); }},
      {"diagonal", Exact, [](Inputs x) { return x[0].diagonal(-1, 2, 0); }},
      {"diagonal_none", Exact, [](Inputs x) { return x[0].diagonal(9); }},
      {"diag_embed", Exact, [](Inputs x) { return x[0].diag_embed(2, 0, -1); }},
      {"trace", Rounded, [](Inputs x) { return x[0].trace(); }},
      {"unbind", Exact, [](Inputs x) { return Tensor::cat(x[0].unbind(1)); }},
      {"tensor_split", Exact, [](Inputs x) { return x[0].tensor_split(3, 1)[0]; }},
      {"tensor_split_at", Exact, [](Inputs x) { return x[0].tensor_split_at({1, 3}, 1)[1]; }},
      {"hstack", Exact, [](Inputs x) { return Tensor::hstack({x[0], x[1]}); }},
      {"vstack", Exact, [](Inputs x) { return Tensor::vstack({x[0], x[1]}); }},
      {"dstack", Exact, [](Inputs x) { return Tensor::dstack({x[0], x[1]}); }},
      {"column_stack", Exact, [](Inputs x) { return Tensor::column_stack({x[0], x[1]}); }},
      {"movedim", Exact, [](Inputs x) { return x[0].movedim({0, 1}, {-1, 0}); }},
      {"swapaxes", Exact, [](Inputs x) { return x[0].swapaxes(0, 2); }},
      {"broadcast_to", Exact, [](Inputs x) { return x[0].broadcast_to({2, 3, 4}); }},
      {"expand_as", Exact, [](Inputs x) { return x[0].expand_as(x[1].detach()); }},
      {"unflatten", Exact, [](Inputs x) { return x[0].unflatten(2, {2, -1}); }},
      {"ravel", Exact, [](Inputs x) { return x[0].ravel(); }},
      {"rot90", Exact, [](Inputs x) { return x[0].rot90(1, {0, 2}); }},
      {"rot90_back", Exact, [](Inputs x) { return x[0].rot90(-1); }},
      {"fliplr", Exact, [](Inputs x) { return x[0].fliplr(); }},
      {"flipud", Exact, [](Inputs x) { return x[0].flipud(); }},
      {"pad_reflect", Exact, [](Inputs x) { return x[0].pad({2, 1, 1, 2}, PadMode::Reflect); }},
      {"pad_replicate", Exact,
       [](Inputs x) { return x[0].pad({3, -1, 0, 5}, PadMode::Replicate); }},
      {"pad_circular", Exact, [](Inputs x) { return x[0].pad({4, 1, 2, 0}, PadMode::Circular); }},
      {"pad_to", Exact, [](Inputs x) { return x[0].pad_to({-1, 4, 5}); }},
      {"shrink_to", Exact, [](Inputs x) { return x[0].shrink_to({1, -1, 2}); }},
      {"unfold", Exact, [](Inputs x) { return x[0].unfold(1, 3, 2); }},
      {"unfold_apart", Exact, [](Inputs x) { return x[0].unfold(1, 2, 3); }},
      {"atleast", Exact,
       [](Inputs x) { return x[0].atleast_3d() + x[0].atleast_2d() + x[0].atleast_1d(); }},
  };
}

std::vector<Function> statistics() {
  return {
      {"amax", Exact, [](Inputs x) { return x[0].amax({0, 2}, true); }},
      {"amin", Exact, [](Inputs x) { return x[0].amin({1}); }},
      {"aminmax", Exact,
       [](Inputs x) {
         const auto [low, high] = x[0].aminmax(1);
         return Tensor::stack({low, high});
       }},
      {"max_with_indices", Exact, [](Inputs x) { return x[0].max_with_indices(1).first; }},
      {"max_indices", Exact, [](Inputs x) { return x[0].max_with_indices(1, true).second; }},
      {"min_with_indices", Exact, [](Inputs x) { return x[0].min_with_indices(-1, true).first; }},
      {"var_mean", Rounded,
       [](Inputs x) {
         const auto [var, mean] = x[0].var_mean({0, 2});
         return Tensor::stack({var, mean});
       }},
      {"std_mean", Rounded,
       [](Inputs x) {
         const auto [std, mean] = x[0].std_mean({1}, true, 0);
         return Tensor::stack({std, mean});
       }},
      {"norm", Rounded, [](Inputs x) { return x[0].norm(); }},
      {"norm_1", Rounded, [](Inputs x) { return x[0].norm(1, {1}); }},
      {"norm_3", Curved, [](Inputs x) { return x[0].norm(3, {0, 2}, true); }},
      {"norm_below_1", Curved, [](Inputs x) { return x[0].norm(-1.5, {1}); }},
      {"norm_0", Exact, [](Inputs x) { return x[0].norm(0, {1}).detach(); }},
      {"norm_infinity", Exact, [](Inputs x) { return x[0].norm(1.0 / 0.0, {1}); }},
      {"norm_of_zeros", Curved, [](Inputs x) { return x[0].norm(2, {1}) + x[0].norm(3, {1}); }},
      {"count_nonzero", Exact, [](Inputs x) { return x[0].count_nonzero({1}); }},
      {"cosine_similarity", Rounded, [](Inputs x) { return x[0].cosine_similarity(x[1]); }},
      {"cdist", Rounded, [](Inputs x) { return x[0].cdist(x[1]); }},
      {"cdist_1", Rounded, [](Inputs x) { return x[0].cdist(x[1], 1); }},
      {"cov", Rounded, [](Inputs x) { return x[0].cov(); }},
      {"cov_vector", Rounded, [](Inputs x) { return x[0].cov(0); }},
      {"corrcoef", Rounded, [](Inputs x) { return x[0].corrcoef(); }},
      {"clone", Exact, [](Inputs x) { return x[0].clone(); }},
  };
}

std::vector<Function> losses() {
  using enum Reduction;
  return {
      {"binary_cross_entropy", Curved,
       [](Inputs x) { return x[0].binary_cross_entropy(x[1].detach(), x[2].detach(), Sum); }},
      {"binary_cross_entropy_ends", Curved,
       [](Inputs x) { return x[0].detach().binary_cross_entropy(x[1].detach(), {}, None); }},
      {"nll_loss", Rounded, [](Inputs x) { return x[0].nll_loss(x[1]); }},
      {"nll_loss_weight", Rounded,
       [](Inputs x) { return x[0].nll_loss(x[1], x[2].detach(), 2, None); }},
      {"l1_loss", Rounded, [](Inputs x) { return x[0].l1_loss(x[1]); }},
      {"smooth_l1_loss", Rounded, [](Inputs x) { return x[0].smooth_l1_loss(x[1], Mean, 0.75); }},
      {"huber_loss", Rounded, [](Inputs x) { return x[0].huber_loss(x[1], None, 0.75); }},
      {"kl_div", Curved, [](Inputs x) { return x[0].kl_div(x[1], BatchMean); }},
      {"kl_div_log", Curved, [](Inputs x) { return x[0].kl_div(x[1], Sum, true); }},
      {"poisson_nll_loss", Curved,
       [](Inputs x) { return x[0].poisson_nll_loss(x[1].detach(), true, true); }},
      {"poisson_nll_loss_linear", Curved,
       [](Inputs x) { return x[0].poisson_nll_loss(x[1].detach(), false, false, 1e-3, None); }},
      {"gaussian_nll_loss", Curved,
       [](Inputs x) { return x[0].gaussian_nll_loss(x[1], x[2], true); }},
      {"hinge_embedding_loss", Rounded,
       [](Inputs x) { return x[0].hinge_embedding_loss(x[1].detach(), 1.5, None); }},
      {"soft_margin_loss", Curved, [](Inputs x) { return x[0].soft_margin_loss(x[1].detach()); }},
      {"margin_ranking_loss", Rounded,
       [](Inputs x) { return x[0].margin_ranking_loss(x[1], x[2], 0.5); }},
      // Errors are those of the cosine, which may be 1: as parts of a smaller loss they say nothing.
      {"cosine_embedding_loss", Rounded,
       [](Inputs x) { return 1 + x[0].cosine_embedding_loss(x[1], x[2].detach(), 0.25, None); }},
      {"triplet_margin_loss", Rounded,
       [](Inputs x) { return x[0].triplet_margin_loss(x[1], x[2]); }},
      {"triplet_margin_loss_swap", Curved,
       [](Inputs x) { return x[0].triplet_margin_loss(x[1], x[2], 2, 3, 1e-3, true, Sum); }},
  };
}

Tensor bytes(const Tensor& x) { return x.cast(DType::U8); }

std::vector<Function> halves_of_bytes() {
  using enum DType;
  return {
      {"pack_int4", Exact, [](Inputs x) { return pack_int4(x[0]).cast(I32); },
       {I8, U8, I16, U16, I32, U32, I64, U64}},
      {"unpack_int4", Exact, [](Inputs x) { return unpack_int4(bytes(x[0])).cast(I32); }},
      {"linear_int4", Rounded,
       [](Inputs x) { return linear_int4(x[0], bytes(x[1]), x[2], {}, 8); }},
      {"linear_int4_vector", Rounded,
       [](Inputs x) { return linear_int4(x[0], bytes(x[1]), x[2], bytes(x[3]), 8); }},
  };
}

}  // namespace

std::vector<Function> functions_of_views() {
  std::vector<Function> out;
  for (const auto part : {views, statistics, losses, halves_of_bytes})
    for (Function& f : part()) out.push_back(std::move(f));
  return out;
}

}  // namespace tuff::check

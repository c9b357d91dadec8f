// The functions of Tensor with their options, at special values, on empty tensors and on scalars:
// rows of scripts/tensor-values.py from creation() on.
#include <cmath>

#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;
using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;

std::vector<Function> creation() {
  return {
      {"linspace", Rounded, [](Inputs) { return Tensor::linspace(-1, 2, 7); }},
      {"linspace_one", Exact, [](Inputs) { return Tensor::linspace(3, 9, 1); }},
      {"linspace_none", Exact, [](Inputs) { return Tensor::linspace(3, 9, 0); }},
      {"eye_wide", Exact, [](Inputs) { return Tensor::eye(3, 5); }},
      {"eye_tall", Exact, [](Inputs) { return Tensor::eye(5, 2, {.dtype = DType::I32}); }},
      {"arange_down", Exact, [](Inputs) { return Tensor::arange(5, -4, -3); }},
      {"arange_none", Exact, [](Inputs) { return Tensor::arange(3, 3); }},
      {"full_like", Exact, [](Inputs x) { return x[0].full_like(2.5); }},
      {"zeros_like", Exact, [](Inputs x) { return x[0].zeros_like(); }},
      {"ones_like", Exact, [](Inputs x) { return x[0].ones_like(); }},
  };
}

std::vector<Function> movement_options() {
  return {
      {"split_with_sizes", Exact, [](Inputs x) { return x[0].split_with_sizes({1, 0, 3}, 1)[2]; }},
      {"cat_zero_signs", Rounded,
       [](Inputs x) { return 1 / Tensor::cat({x[0].detach(), x[1].detach()}); }},
      {"cat_three", Exact, [](Inputs x) { return Tensor::cat({x[0], x[1], x[2]}, 1); }},
      {"cat_mixed", Exact, [](Inputs x) { return Tensor::cat({x[0], x[1]}); }},
      {"pad_int", Exact, [](Inputs x) { return x[0].pad({1, 0, 2, 1}, 7); }},
      {"pad_nan", Exact, [](Inputs x) { return x[0].pad({0, 2}, NAN).detach(); }},
      {"repeat_none", Exact, [](Inputs x) { return x[0].repeat({2, 0}); }},
      {"reshape_scalar", Exact, [](Inputs x) { return x[0].reshape({}); }},
      {"expand_scalar", Exact, [](Inputs x) { return x[0].expand({2, 3}); }},
      {"flatten_scalar", Exact, [](Inputs x) { return x[0].flatten(); }},
      {"movement_chain", Exact,
       [](Inputs x) {
         const Tensor flipped = x[0].permute({2, 0, 1}).flip({0});
         return flipped.slice(0, 1).slice(2, {}, {}, 2).reshape({4, 6}).T();
       }},
  };
}

std::vector<Function> indexed() {
  return {
      {"index_select", Exact, [](Inputs x) { return x[0].index_select(1, x[1]); }},
      {"index_select_none", Exact, [](Inputs x) { return x[0].index_select(1, x[1]); }},
      {"take", Exact, [](Inputs x) { return x[0].take(x[1]); }},
      {"index_rows", Exact, [](Inputs x) { return x[0].index({x[1]}); }},
      {"index_table", Exact, [](Inputs x) { return x[0].index({x[1]}); }},
      {"index_both", Exact, [](Inputs x) { return x[0].index({x[1], x[2]}); }},
      {"index_apart", Exact, [](Inputs x) { return x[0].index({x[1], Slice(), x[2]}); }},
      {"index_broadcast", Exact, [](Inputs x) { return x[0].index({x[1], x[2]}); }},
      {"index_inner", Exact, [](Inputs x) { return x[0].index({Slice(), x[1]}); }},
      {"index_slices", Exact,
       [](Inputs x) { return x[0].index({Slice{1, 3}, Ellipsis, Slice{0, {}, 2}}); }},
      {"index_reversed", Exact, [](Inputs x) { return x[0].index({Slice{{}, {}, -1}, 1}); }},
      {"index_none", Exact, [](Inputs x) { return x[0].index({None, 2, Ellipsis, None, 1}); }},
      {"index_slice_and_rows", Exact,
       [](Inputs x) { return x[0].index({Slice{1}, x[1], Slice{{}, 2}}); }},
      {"index_number_and_rows", Exact, [](Inputs x) { return x[0].index({1, Slice(), x[1]}); }},
      {"index_scalar", Exact, [](Inputs x) { return x[0].index({x[1]}); }},
      {"index_int", Exact, [](Inputs x) { return x[0].index({x[1]}); }},
      {"index_bool", Exact, [](Inputs x) { return x[0].index({x[1]}); }},
      {"gather_repeated", Exact, [](Inputs x) { return x[0].gather(0, x[1]); }},
  };
}

std::vector<Function> powers() {
  return {
      {"pow_tensor", Curved, [](Inputs x) { return x[0].pow(x[1]); }},
      {"pow_negative_base", Curved, [](Inputs x) { return x[0].pow(x[1].detach()); }},
      {"pow_at_0", Exact, [](Inputs x) { return x[0].pow(x[1].detach()); }},
      {"pow_number_left", Curved, [](Inputs x) { return Tensor::pow(2, x[0]); }},
      {"pow_far", Curved, [](Inputs x) { return x[0].pow(100); }},
      {"pow_int", Exact, [](Inputs x) { return x[0].pow(x[1]); }},
      {"pow_int_number", Exact, [](Inputs x) { return x[0].pow(5); }},
      {"pow_int_negative", Exact, [](Inputs x) { return x[0].pow(x[1]); }},
      {"pow_broadcast", Curved, [](Inputs x) { return x[0].pow(x[1]); }},
      {"pow_scalar_real", Curved, [](Inputs x) { return x[0].pow(-0.3); }},
  };
}

std::vector<Function> curves() {
  return {
      {"tan", Curved, [](Inputs x) { return x[0].tan(); }},
      {"erf", Curved, [](Inputs x) { return x[0].erf(); }},
      {"erf_tails", Curved, [](Inputs x) { return x[0].erf(); }},
      {"gelu_exact", Curved, [](Inputs x) { return x[0].gelu(); }},
      {"gelu_exact_tails", Curved, [](Inputs x) { return x[0].gelu(); }},
      {"leaky_relu", Exact, [](Inputs x) { return x[0].leaky_relu(0.1); }},
      {"relu_at_0", Exact, [](Inputs x) { return x[0].relu(); }},
      {"relu_int", Exact, [](Inputs x) { return x[0].relu(); }},
      {"abs_at_0", Exact, [](Inputs x) { return x[0].abs(); }},
      {"abs_zero_signs", Rounded, [](Inputs x) { return 1 / x[0].detach().abs(); }},
      {"abs_int", Exact, [](Inputs x) { return x[0].abs(); }},
      {"softplus", Curved, [](Inputs x) { return x[0].softplus(); }},
      {"softplus_options", Curved, [](Inputs x) { return x[0].softplus(2, 3); }},
      {"softplus_tails", Curved, [](Inputs x) { return x[0].softplus(); }},
      {"softplus_small", Curved, [](Inputs x) { return x[0].softplus() * 1e6; }},
      {"tanh_small", Curved, [](Inputs x) { return x[0].tanh() / x[0]; }},
      {"erf_small", Curved, [](Inputs x) { return x[0].erf() / x[0]; }},
      {"cos_far", Curved, [](Inputs x) { return x[0].cos(); }},
      {"cos_roots", Curved, [](Inputs x) { return x[0].cos() * 1e5; }},
      {"scalars", Curved, [](Inputs x) { return (x[0] * 2 + x[1]).exp() / (1 + x[0] * x[0]); }},
  };
}

std::vector<Function> whole_numbers() {
  return {
      {"floor_divide_int", Exact, [](Inputs x) { return x[0].floor_divide(x[1]); }},
      {"remainder_int", Exact, [](Inputs x) { return x[0] % x[1]; }},
      {"fmod_int", Exact, [](Inputs x) { return x[0].fmod(x[1]); }},
      {"remainder_number", Exact, [](Inputs x) { return x[0].remainder(-4); }},
      {"number_remainder", Exact, [](Inputs x) { return 7 % x[0]; }},
      {"floor_divide_number", Exact, [](Inputs x) { return x[0].floor_divide(-4); }},
      {"floor_divide", Exact, [](Inputs x) { return x[0].floor_divide(x[1]); }},
      {"remainder", Rounded, [](Inputs x) { return x[0].remainder(x[1]); }},
      {"fmod", Rounded, [](Inputs x) { return x[0].fmod(x[1]); }},
      {"fmod_exact", Rounded, [](Inputs x) { return x[0].fmod(x[1]); }},
      {"bitwise_not", Exact, [](Inputs x) { return ~x[0]; }},
      {"bitwise_not_bool", Exact, [](Inputs x) { return x[0].bitwise_not(); }},
      {"left_shift", Exact, [](Inputs x) { return x[0].bitwise_left_shift(x[1]); }},
      {"right_shift", Exact, [](Inputs x) { return x[0].bitwise_right_shift(x[1]); }},
      {"shift_number", Exact, [](Inputs x) { return (x[0] << 3) + (x[0] >> 1); }},
      {"shift_beyond", Exact, [](Inputs x) { return Tensor::stack({x[0] << x[1], x[0] >> x[1]}); }},
      {"clamp_at_bounds", Exact, [](Inputs x) { return x[0].clamp(-1, 1); }},
      {"clamp_int", Exact, [](Inputs x) { return x[0].clamp(-3, 4); }},
      {"where_numbers", Exact, [](Inputs x) { return Tensor::where(x[0], 2, -1); }},
      {"masked_fill_int", Exact, [](Inputs x) { return x[0].masked_fill(x[1], 3); }},
      {"compare_number", Exact, [](Inputs x) { return (x[0] > 0.5) & (3 >= x[0]); }},
  };
}

Tensor special_real(const Tensor& x) {
  return Tensor::stack({x.exp(),        x.exp2(), x.log(),   x.log2(), x.sqrt(),     x.rsqrt(),
                        x.reciprocal(), x.sin(),  x.cos(),   x.tan(),  x.tanh(),     x.sigmoid(),
                        x.erf(),        x.relu(), x.gelu(),  x.silu(), x.softplus(), x.abs(),
                        x.floor(),      x.ceil(), x.round(), x.trunc()});
}
Tensor special_binary(const Tensor& a, const Tensor& b) {
  return Tensor::stack({a + b, a - b, a * b, a / b, a.maximum(b), a.minimum(b)});
}

std::vector<Function> special() {
  return {
      {"special_real", Curved, [](Inputs x) { return special_real(x[0].detach()); }},
      {"special_tests", Exact,
       [](Inputs x) {
         return Tensor::stack(
             {x[0].isnan(), x[0].isinf(), x[0] > 0, x[0] <= 1, x[0] == 0, x[0] != x[0]});
       }},
      {"special_binary", Rounded,
       [](Inputs x) { return special_binary(x[0].detach(), x[1].detach()); }},
      {"special_remainders", Rounded,
       [](Inputs x) {
         const Tensor a = x[0].detach(), b = x[1].detach();
         return Tensor::stack({a.fmod(b), a.remainder(b)});
       }},
      {"special_comparisons", Exact,
       [](Inputs x) {
         return Tensor::stack({x[0] < x[1], x[0] <= x[1], x[0] == x[1], x[0] != x[1]});
       }},
      {"special_pow", Curved, [](Inputs x) { return x[0].detach().pow(x[1].detach()); }},
      {"special_clamp", Exact, [](Inputs x) { return x[0].detach().clamp(-1, 2); }},
      {"special_reductions", Rounded,
       [](Inputs x) {
         const Tensor v = x[0].detach();
         return Tensor::stack({v.sum({1}), v.max({1}), v.min({1}), v.prod({1})});
       }},
      {"special_argmax", Exact,
       [](Inputs x) { return Tensor::stack({x[0].argmax(1), x[0].argmin(1)}); }},
      {"logsumexp_infinite", Curved, [](Inputs x) { return x[0].detach().logsumexp({1}); }},
      {"logsumexp_inf", Curved, [](Inputs x) { return x[0].detach().logsumexp({0}); }},
      {"softmax_masked", Curved, [](Inputs x) { return x[0].softmax(0); }},
      {"cast_special", Exact, [](Inputs x) { return x[0].cast(DType::I32); }},
  };
}

std::vector<Function> reduction_options() {
  return {
      {"any", Exact, [](Inputs x) { return x[0].any({1}); }},
      {"all", Exact, [](Inputs x) { return x[0].all({0}); }},
      {"any_all", Exact, [](Inputs x) { return x[0].any(); }},
      {"all_keepdim", Exact, [](Inputs x) { return x[0].all({1}, true); }},
      {"any_none", Exact, [](Inputs x) { return x[0].any({0}); }},
      {"all_none", Exact, [](Inputs x) { return x[0].all({0}); }},
      {"sum_none", Exact, [](Inputs x) { return x[0].sum({0}); }},
      {"prod_none", Exact, [](Inputs x) { return x[0].prod({0}); }},
      {"mean_none", Exact, [](Inputs x) { return x[0].detach().mean({0}); }},
      {"var_one", Exact, [](Inputs x) { return x[0].detach().var({0}); }},
      {"std_biased", Rounded, [](Inputs x) { return x[0].std({0, 2}, false, 0); }},
      {"prod_int", Exact, [](Inputs x) { return x[0].prod({1}); }},
      {"prod_zeros", Rounded, [](Inputs x) { return x[0].prod({1}); }},
      {"max_bool", Exact, [](Inputs x) { return x[0].max({1}); }},
      {"min_bool", Exact, [](Inputs x) { return x[0].min({0}); }},
      {"cumsum", Rounded, [](Inputs x) { return x[0].cumsum(1); }},
      {"cumsum_last", Rounded, [](Inputs x) { return x[0].cumsum(-1); }},
      {"cumsum_int", Exact, [](Inputs x) { return x[0].cumsum(1); }},
      {"cumsum_bool", Exact, [](Inputs x) { return x[0].cumsum(0); }},
      {"cumsum_long", Rounded, [](Inputs x) { return x[0].cumsum(1); }},
      {"cumsum_none", Exact, [](Inputs x) { return x[0].cumsum(0); }},
      {"cumsum_scalar", Exact, [](Inputs x) { return x[0].cumsum(0); }},
      {"sum_scalar", Exact, [](Inputs x) { return x[0].sum(); }},
      {"softmax_scalar", Curved, [](Inputs x) { return x[0].softmax(0); }},
      {"softmax_none", Exact, [](Inputs x) { return x[0].softmax(1); }},
      {"argmax_keepdim", Exact, [](Inputs x) { return x[0].argmax(0, true); }},
      {"max_ties", Exact, [](Inputs x) { return x[0].max({1}); }},
      {"logsumexp_scalar", Curved, [](Inputs x) { return x[0].logsumexp({}); }},
  };
}

Function einsum_of(const char* tag, const char* equation, Precision precision = Rounded) {
  return {std::string("einsum_") + tag, precision,
          [equation](Inputs x) { return Tensor::einsum(equation, x); }};
}

std::vector<Function> einsums() {
  return {
      einsum_of("matrices", "ij,jk->ik"),
      einsum_of("batches", "bij,bjk->bik"),
      einsum_of("trace", "ii"),
      einsum_of("diagonal", "ii->i", Exact),
      einsum_of("transpose", "ij->ji", Exact),
      einsum_of("outer", "i,j->ij", Exact),
      einsum_of("inner", "ij,ij->"),
      einsum_of("dots", "...ij,...jk->...ik"),
      einsum_of("scores", "bhqd,bhkd->bhqk"),
      einsum_of("sum", "ijk->j"),
      einsum_of("chain", "ij, jk, kl -> il"),
      einsum_of("bilinear", "bn,anm,bm->ba"),
      einsum_of("implicit", "ba,cb"),
      einsum_of("inner_diagonal", "iji->ji", Exact),
      einsum_of("ones", "ij,ij->ij", Exact),
      einsum_of("nothing", "ij,jk->ik", Exact),
      einsum_of("dots_kept", "i...->..."),
      einsum_of("int", "ij,jk->ki", Exact),
  };
}

std::vector<Function> planes() {
  return {
      {"conv2d_pairs", Rounded,
       [](Inputs x) { return x[0].conv2d(x[1], x[2], {2, 1}, {1, 2}, {1, 2}); }},
      {"conv2d_none", Exact, [](Inputs x) { return x[0].conv2d(x[1]); }},
      {"conv2d_depthwise", Rounded, [](Inputs x) { return x[0].conv2d(x[1], {}, 1, 1, 1, 4); }},
      {"max_pool2d_pairs", Exact, [](Inputs x) { return x[0].max_pool2d({3, 2}, {2, 1}, {1, 1}); }},
      {"max_pool2d_dilation", Exact, [](Inputs x) { return x[0].max_pool2d(2, 2, 0, {3, 2}); }},
      {"max_pool2d_ceil", Exact, [](Inputs x) { return x[0].max_pool2d(3, 2, 1, 1, true); }},
      {"max_pool2d_int", Exact, [](Inputs x) { return x[0].max_pool2d(3, 2, 1); }},
      {"avg_pool2d_padding", Rounded, [](Inputs x) { return x[0].avg_pool2d(3, 2, 1); }},
      {"avg_pool2d_pairs", Rounded,
       [](Inputs x) { return x[0].avg_pool2d({3, 2}, {1, 2}, {1, 0}); }},
      {"avg_pool2d_without_pad", Rounded,
       [](Inputs x) { return x[0].avg_pool2d(3, 2, 1, false, false); }},
      {"avg_pool2d_ceil", Rounded, [](Inputs x) { return x[0].avg_pool2d(3, 2, 1, true); }},
      {"avg_pool2d_ceil_without_pad", Rounded,
       [](Inputs x) { return x[0].avg_pool2d(2, 3, 1, true, false); }},
      {"avg_pool2d_divisor", Rounded,
       [](Inputs x) { return x[0].avg_pool2d(2, 2, 0, false, true, 3); }},
  };
}

std::vector<Function> norms() {
  return {
      {"batchnorm", Rounded,
       [](Inputs x) { return x[0].batchnorm(x[1].detach(), x[2].detach(), x[3], x[4]); }},
      {"batchnorm_training", Rounded,
       [](Inputs x) { return x[0].batchnorm({}, {}, x[1], x[2], true); }},
      {"batchnorm_rows", Rounded,
       [](Inputs x) { return x[0].batchnorm({}, {}, {}, {}, true, 0.1, 1e-3); }},
      {"rms_norm", Rounded, [](Inputs x) { return x[0].rms_norm({6}, x[1]); }},
      {"rms_norm_2", Rounded, [](Inputs x) { return x[0].rms_norm({2, 4}, {}, 1e-3); }},
      {"attention_scale", Curved,
       [](Inputs x) {
         return Tensor::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, false, 0.3);
       }},
      {"attention_bias", Curved,
       [](Inputs x) { return Tensor::scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }},
      {"attention_rows", Curved,
       [](Inputs x) { return Tensor::scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"attention_rows_causal", Curved,
       [](Inputs x) {
         return Tensor::scaled_dot_product_attention(x[0], x[0], x[0], {}, 0, true);
       }},
      {"attention_rows_heads", Curved,
       [](Inputs x) {
         return Tensor::scaled_dot_product_attention(x[0], x[0], x[0], {}, 0, true);
       }},
      {"matmul_none", Exact, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"embedding_none", Exact, [](Inputs x) { return Tensor::embedding(x[0], x[1]); }},
      {"add_none", Exact, [](Inputs x) { return x[0] + x[1]; }},
      {"double_use", Rounded,
       [](Inputs x) { return Tensor::einsum("ij,jk->ik", {x[0], x[0]}).cumsum(0); }},
  };
}

std::vector<Function> losses_with_options() {
  using enum Reduction;
  return {
      {"cross_entropy_ignored", Curved, [](Inputs x) { return x[0].cross_entropy(x[1]); }},
      {"cross_entropy_weight", Curved,
       [](Inputs x) { return x[0].cross_entropy(x[1], x[2].detach()); }},
      {"cross_entropy_ignore_index", Curved,
       [](Inputs x) { return x[0].cross_entropy(x[1], x[2].detach(), 2, Sum); }},
      {"cross_entropy_smoothing", Curved,
       [](Inputs x) { return x[0].cross_entropy(x[1], {}, -100, Mean, 0.2); }},
      {"cross_entropy_smoothing_weight", Curved,
       [](Inputs x) { return x[0].cross_entropy(x[1], x[2].detach(), -100, Mean, 0.2); }},
      {"cross_entropy_losses", Curved,
       [](Inputs x) { return x[0].cross_entropy(x[1], {}, -100, Reduction::None); }},
      {"cross_entropy_planes", Curved, [](Inputs x) { return x[0].cross_entropy(x[1]); }},
      {"cross_entropy_row", Curved, [](Inputs x) { return x[0].cross_entropy(x[1]); }},
      {"cross_entropy_probabilities", Curved,
       [](Inputs x) { return x[0].cross_entropy(x[1], x[2].detach(), -100, Mean, 0.1); }},
      {"cross_entropy_probabilities_losses", Curved,
       [](Inputs x) { return x[0].cross_entropy(x[1], {}, -100, Reduction::None); }},
      {"mse_loss", Rounded, [](Inputs x) { return x[0].mse_loss(x[1]); }},
      {"mse_loss_sum", Rounded, [](Inputs x) { return x[0].mse_loss(x[1], Sum); }},
      {"mse_loss_none", Rounded, [](Inputs x) { return x[0].mse_loss(x[1], Reduction::None); }},
      {"bce", Curved,
       [](Inputs x) { return x[0].binary_cross_entropy_with_logits(x[1].detach()); }},
      {"bce_none", Curved,
       [](Inputs x) {
         return x[0].binary_cross_entropy_with_logits(x[1].detach(), {}, Reduction::None);
       }},
      {"bce_weights", Curved,
       [](Inputs x) {
         return x[0].binary_cross_entropy_with_logits(x[1].detach(), x[2].detach(), Sum,
                                                      x[3].detach());
       }},
      {"bce_far", Curved,
       [](Inputs x) {
         return x[0].binary_cross_entropy_with_logits(x[1].detach(), {}, Reduction::None);
       }},
  };
}

}  // namespace

std::vector<Function> functions_with_options() {
  std::vector<Function> out;
  for (const auto part :
       {creation, movement_options, indexed, powers, curves, whole_numbers, special,
        reduction_options, einsums, planes, norms, losses_with_options})
    for (Function& f : part()) out.push_back(std::move(f));
  return out;
}

}  // namespace tuff::check

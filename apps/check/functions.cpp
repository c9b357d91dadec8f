#include "check/functions.h"

#include <algorithm>
#include <set>

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

std::vector<Function> elementwise() {
  return {
      {"add", Exact, [](Inputs x) { return x[0] + x[1]; }},
      {"sub", Exact, [](Inputs x) { return x[0] - x[1]; }},
      {"mul", Exact, [](Inputs x) { return x[0] * x[1]; }},
      {"div", Rounded, [](Inputs x) { return x[0] / x[1]; }},
      {"add_broadcast", Exact, [](Inputs x) { return x[0] + x[1]; }},
      {"mul_broadcast", Exact, [](Inputs x) { return x[0] * x[1]; }},
      {"number_left", Rounded, [](Inputs x) { return 2 / x[0] - 1; }},
      {"number_right", Rounded, [](Inputs x) { return (x[0] * 3 + 1) / 4; }},
      {"div_integers", Rounded, [](Inputs x) { return x[0] / x[1]; }},
      {"integer_arithmetic", Exact, [](Inputs x) { return x[0] * x[1] - x[0] + 3; }},
      {"less", Exact, [](Inputs x) { return x[0] < x[1]; }},
      {"greater", Exact, [](Inputs x) { return x[0] > x[1]; }},
      {"less_equal", Exact, [](Inputs x) { return x[0] <= x[1]; }},
      {"greater_equal", Exact, [](Inputs x) { return x[0] >= x[1]; }},
      {"equal", Exact, [](Inputs x) { return x[0] == x[1]; }},
      {"not_equal", Exact, [](Inputs x) { return x[0] != x[1]; }},
      {"and", Exact, [](Inputs x) { return x[0] & x[1]; }},
      {"or", Exact, [](Inputs x) { return x[0] | x[1]; }},
      {"xor", Exact, [](Inputs x) { return x[0] ^ x[1]; }},
      {"neg", Exact, [](Inputs x) { return -x[0]; }},
      {"abs", Exact, [](Inputs x) { return x[0].abs(); }},
      {"sign", Exact, [](Inputs x) { return x[0].sign(); }},
      {"reciprocal", Rounded, [](Inputs x) { return x[0].reciprocal(); }},
      {"sqrt", Rounded, [](Inputs x) { return x[0].sqrt(); }},
      {"rsqrt", Rounded, [](Inputs x) { return x[0].rsqrt(); }},
      {"exp", Curved, [](Inputs x) { return x[0].exp(); }},
      {"exp2", Curved, [](Inputs x) { return x[0].exp2(); }},
      {"log", Curved, [](Inputs x) { return x[0].log(); }},
      {"log2", Curved, [](Inputs x) { return x[0].log2(); }},
      {"sin", Curved, [](Inputs x) { return x[0].sin(); }},
      {"cos", Curved, [](Inputs x) { return x[0].cos(); }},
      {"tanh", Curved, [](Inputs x) { return x[0].tanh(); }},
      {"sigmoid", Curved, [](Inputs x) { return x[0].sigmoid(); }},
      {"relu", Exact, [](Inputs x) { return x[0].relu(); }},
      {"silu", Curved, [](Inputs x) { return x[0].silu(); }},
      {"gelu", Curved, [](Inputs x) { return x[0].gelu("tanh"); }},
      {"tails_of_sigmoid", Curved,
       [](Inputs x) { return x[0].sigmoid() + x[0].tanh() + x[0].silu(); }},
      {"tails_of_gelu", Curved, [](Inputs x) { return x[0].gelu("tanh"); }},
      {"trunc", Exact, [](Inputs x) { return x[0].trunc(); }},
      {"floor", Exact, [](Inputs x) { return x[0].floor(); }},
      {"ceil", Exact, [](Inputs x) { return x[0].ceil(); }},
      {"round", Exact, [](Inputs x) { return x[0].round(); }},
      {"square", Exact, [](Inputs x) { return x[0].square(); }},
      {"pow_3", Rounded, [](Inputs x) { return x[0].pow(3); }},
      {"pow_half", Rounded, [](Inputs x) { return x[0].pow(0.5); }},
      {"pow_real", Curved, [](Inputs x) { return x[0].pow(1.7); }},
      {"pow_negative", Rounded, [](Inputs x) { return x[0].pow(-2); }},
      {"pow_0", Exact, [](Inputs x) { return x[0].pow(0); }},
      {"clamp", Exact, [](Inputs x) { return x[0].clamp(-0.5, 1.0); }},
      {"clamp_min", Exact, [](Inputs x) { return x[0].clamp(0.25); }},
      {"maximum", Exact, [](Inputs x) { return x[0].maximum(x[1]); }},
      {"minimum", Exact, [](Inputs x) { return x[0].minimum(x[1]); }},
      {"minimum_int", Exact, [](Inputs x) { return x[0].minimum(x[1]); }},
      {"logical_not", Exact, [](Inputs x) { return x[0].logical_not(); }},
      {"isnan", Exact, [](Inputs x) { return x[0].isnan(); }},
      {"isinf", Exact, [](Inputs x) { return x[0].isinf(); }},
      {"where", Exact, [](Inputs x) { return Tensor::where(x[0], x[1], x[2]); }},
      {"where_number", Exact, [](Inputs x) { return Tensor::where(x[0], x[1], 7.0); }},
      {"masked_fill", Exact, [](Inputs x) { return x[0].masked_fill(x[1], -3); }},
      {"cast_int", Exact, [](Inputs x) { return x[0].cast(DType::I32); }},
      {"cast_bool", Exact, [](Inputs x) { return x[0].to(DType::Bool); }},
      {"bitcast",
       Exact,
       [](Inputs x) { return x[0].bitcast(DType::F32); },
       {DType::I32, DType::U32}},
  };
}

std::vector<Function> movement() {
  return {
      {"reshape", Exact, [](Inputs x) { return x[0].reshape({4, -1}); }},
      {"permute", Exact, [](Inputs x) { return x[0].permute({2, 0, 1}); }},
      {"transpose", Exact, [](Inputs x) { return x[0].transpose(0, -1); }},
      {"T", Exact, [](Inputs x) { return x[0].T(); }},
      {"expand", Exact, [](Inputs x) { return x[0].expand({2, -1, 4}); }},
      {"pad", Exact, [](Inputs x) { return x[0].pad({1, 2, 0, 1}); }},
      {"pad_value_crop", Exact, [](Inputs x) { return x[0].pad({-1, 2}, 3.5); }},
      {"shrink", Exact, [](Inputs x) { return x[0].shrink({{0, 1}, {1, 3}, {2, 4}}); }},
      {"flip", Exact, [](Inputs x) { return x[0].flip({0, 2}); }},
      {"slice_step", Exact, [](Inputs x) { return x[0].slice(2, 0, 4, 3); }},
      {"slice_negative", Exact, [](Inputs x) { return x[0].slice(2, {}, {}, -2); }},
      {"slice_from_end", Exact, [](Inputs x) { return x[0].slice(1, -2); }},
      {"narrow", Exact, [](Inputs x) { return x[0].narrow(2, 1, 2); }},
      {"select", Exact, [](Inputs x) { return x[0].select(1, -1); }},
      {"index", Exact, [](Inputs x) { return x[0][1]; }},
      {"squeeze", Exact, [](Inputs x) { return x[0].squeeze(); }},
      {"squeeze_dim", Exact, [](Inputs x) { return x[0].squeeze(0); }},
      {"unsqueeze", Exact, [](Inputs x) { return x[0].unsqueeze(-1); }},
      {"flatten", Exact, [](Inputs x) { return x[0].flatten(1); }},
      {"repeat", Exact, [](Inputs x) { return x[0].repeat({2, 1, 3}); }},
      {"cat", Exact, [](Inputs x) { return Tensor::cat({x[0], x[1]}, 1); }},
      {"stack", Exact, [](Inputs x) { return Tensor::stack({x[0], x[1]}, 1); }},
      {"split", Exact, [](Inputs x) { return x[0].split(2, 1).at(1); }},
      {"chunk", Exact, [](Inputs x) { return x[0].chunk(3, 2).at(1); }},
      {"gather", Exact, [](Inputs x) { return x[0].gather(1, x[1]); }},
      {"gather_0", Exact, [](Inputs x) { return x[0].gather(0, x[1]); }},
      {"one_hot", Exact, [](Inputs x) { return x[0].one_hot(4); }},
      {"tril", Exact, [](Inputs x) { return x[0].tril(); }},
      {"triu", Exact, [](Inputs x) { return x[0].triu(1); }},
      {"transposed_int", Exact, [](Inputs x) { return x[0].T() * 2; }},
      {"arange", Exact, [](Inputs) { return Tensor::arange(2, 17, 3); }},
      {"arange_float", Exact, [](Inputs) { return Tensor::arange(1, 0, -0.25); }},
      {"eye", Exact, [](Inputs) { return Tensor::eye(4); }},
      {"full", Exact, [](Inputs) { return Tensor::full({2, 3}, 2.5); }},
  };
}

std::vector<Function> reductions() {
  return {
      {"sum_all", Rounded, [](Inputs x) { return x[0].sum(); }},
      {"sum_1", Rounded, [](Inputs x) { return x[0].sum({1}); }},
      {"sum_02", Rounded, [](Inputs x) { return x[0].sum({0, -1}); }},
      {"mean_all", Rounded, [](Inputs x) { return x[0].mean(); }},
      {"mean_1", Rounded, [](Inputs x) { return x[0].mean({1}); }},
      {"mean_02", Rounded, [](Inputs x) { return x[0].mean({0, 2}); }},
      {"max_all", Exact, [](Inputs x) { return x[0].max(); }},
      {"max_1", Exact, [](Inputs x) { return x[0].max({1}); }},
      {"max_02", Exact, [](Inputs x) { return x[0].max({0, 2}); }},
      {"min_all", Exact, [](Inputs x) { return x[0].min(); }},
      {"min_1", Exact, [](Inputs x) { return x[0].min({1}); }},
      {"min_02", Exact, [](Inputs x) { return x[0].min({0, 2}); }},
      {"var_all", Rounded, [](Inputs x) { return x[0].var(); }},
      {"var_1", Rounded, [](Inputs x) { return x[0].var({1}); }},
      {"var_02", Rounded, [](Inputs x) { return x[0].var({0, 2}); }},
      {"sum_keepdim", Rounded, [](Inputs x) { return x[0].sum({1}, true); }},
      {"sum_int", Exact, [](Inputs x) { return x[0].sum({1}); }},
      {"sum_bool", Exact, [](Inputs x) { return x[0].sum({0}); }},
      {"min_int", Exact, [](Inputs x) { return x[0].min({2}); }},
      {"prod", Rounded, [](Inputs x) { return x[0].prod({1}); }},
      {"std", Rounded, [](Inputs x) { return x[0].std({2}); }},
      {"var_biased", Rounded, [](Inputs x) { return x[0].var({2}, false, 0); }},
      {"argmax", Exact, [](Inputs x) { return x[0].argmax(1); }},
      {"argmin", Exact, [](Inputs x) { return x[0].argmin(1); }},
      {"argmax_flat", Exact, [](Inputs x) { return x[0].argmax(); }},
      {"logsumexp", Curved, [](Inputs x) { return x[0].logsumexp({1, 2}); }},
      {"softmax", Curved, [](Inputs x) { return x[0].softmax(); }},
      {"softmax_0", Curved, [](Inputs x) { return x[0].softmax(0); }},
      {"log_softmax", Curved, [](Inputs x) { return x[0].log_softmax(1); }},
  };
}

std::vector<Function> networks() {
  return {
      {"matmul", Rounded, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"matmul_batch", Rounded, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"matmul_vector", Rounded, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"matmul_vector_matrix", Rounded, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"matmul_matrix_vector", Rounded, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"matmul_int", Exact, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"matmul_large", Rounded, [](Inputs x) { return x[0].matmul(x[1]); }},
      {"linear", Rounded, [](Inputs x) { return x[0].linear(x[1], x[2]); }},
      {"conv2d", Rounded, [](Inputs x) { return x[0].conv2d(x[1], x[2], 1, 1); }},
      {"conv2d_stride", Rounded, [](Inputs x) { return x[0].conv2d(x[1], {}, 2); }},
      {"conv2d_dilation", Rounded, [](Inputs x) { return x[0].conv2d(x[1], {}, 1, 0, 3); }},
      {"conv2d_groups", Rounded, [](Inputs x) { return x[0].conv2d(x[1], {}, 2, 1, 1, 2); }},
      {"conv2d_stride_over_kernel", Rounded, [](Inputs x) { return x[0].conv2d(x[1], {}, 3); }},
      {"max_pool2d", Exact, [](Inputs x) { return x[0].max_pool2d(2); }},
      {"max_pool2d_padded", Exact, [](Inputs x) { return x[0].max_pool2d(3, 2, 1); }},
      {"avg_pool2d", Rounded, [](Inputs x) { return x[0].avg_pool2d(2); }},
      {"avg_pool2d_stride", Rounded, [](Inputs x) { return x[0].avg_pool2d(3, 1); }},
      {"layernorm", Rounded, [](Inputs x) { return x[0].layernorm({6}, x[1], x[2]); }},
      {"layernorm_2", Rounded, [](Inputs x) { return x[0].layernorm({2, 4}); }},
      {"attention", Curved,
       [](Inputs x) { return Tensor::scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"attention_causal", Curved,
       [](Inputs x) {
         return Tensor::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, true);
       }},
      {"attention_mask", Curved,
       [](Inputs x) { return Tensor::scaled_dot_product_attention(x[0], x[1], x[2], x[3]); }},
      {"embedding", Exact, [](Inputs x) { return Tensor::embedding(x[0], x[1]); }},
      {"cross_entropy", Curved, [](Inputs x) { return x[0].cross_entropy(x[1]); }},
      {"dropout_outside_training", Exact, [](Inputs x) { return x[0].dropout(0.5); }},
      {"used_twice", Curved,
       [](Inputs x) { return x[0].softmax(0).matmul(x[0]) + x[0].sum({1}, true); }},
  };
}

}  // namespace

double tolerance(Precision p) {
  switch (p) {
    case Exact: return 0;
    case Rounded: return 2e-6;
    case Curved: return 1e-5;
  }
  return 0;
}

bool refuses(const Function& f, DType t) {
  static const std::set<std::string> floats_alone = {"pow_negative", "cross_entropy_probabilities",
                                                     "cross_entropy_probabilities_losses", "frac", "lerp",
                                                     "lerp_number", "conv_transpose1d",
                                                     "conv_transpose2d", "conv_transpose2d_stride",
                                                     "conv_transpose2d_apart", "conv_transpose2d_groups",
                                                     "conv_transpose2d_dilation", "conv_transpose2d_none",
                                                     "conv_transpose3d", "fold", "fold_apart",
                                                     "max_unpool1d", "max_unpool2d",
                                                     "max_unpool2d_overlapping", "max_unpool3d",
                                                     "grid_sample", "grid_sample_corners",
                                                     "grid_sample_border", "grid_sample_reflection",
                                                     "grid_sample_reflection_corners", "grid_sample_nearest",
                                                     "grid_sample_nearest_border", "grid_sample_bicubic",
                                                     "grid_sample_bicubic_border", "grid_sample_bicubic_reflection",
                                                     "grid_sample_volume", "grid_sample_volume_nearest",
                                                     "scan", "scan_reverse",
                                                     "linear_int4", "linear_int4_vector",
                                                     "addcdiv", "frexp_mantissa", "frexp_exponent",
                                                     "nextafter", "nanmean", "renorm"};
  static const std::set<std::string> no_bools = {"integer_arithmetic",
                                                 "one_hot",
                                                 "index_int",
                                                 "index_bool",
                                                 "pow_int",
                                                 "pow_int_negative",
                                                 "floor_divide_int",
                                                 "remainder_int",
                                                 "fmod_int",
                                                 "left_shift",
                                                 "right_shift",
                                                 "shift_number",
                                                 "shift_beyond",
                                                 "sub",
                                                 "neg",
                                                 "pow_tensor",
                                                 "pow_negative_base",
                                                 "pow_at_0",
                                                 "pow_broadcast",
                                                 "floor_divide",
                                                 "remainder",
                                                 "fmod",
                                                 "fmod_exact",
                                                 "special_binary",
                                                 "special_remainders",
                                                 "special_pow",
                                                 "named_arithmetic",
                                                 "cross",
                                                 "scatter_add",
                                                 "scatter_add_few",
                                                 "scatter_reduce_sum",
                                                 "scatter_reduce_sum_others",
                                                 "scatter_reduce_mean",
                                                 "scatter_reduce_mean_others",
                                                 "index_add",
                                                 "index_add_along",
                                                 "put_accumulate",
                                                 "index_put_accumulate"};
  static const std::set<std::string> factorizations = {
      "cholesky", "qr_q",         "qr_r",        "solve",        "solve_triangular", "inverse",
      "det",      "logdet",       "slogdet",     "slogdet_sign", "eigh_values",      "eigh_vectors",
      "det_singular", "lstsq_any_rank",
      "lu_lower", "lu_upper", "lu_pivots", "cholesky_solve", "matrix_exp", "householder_product",
      "lstsq",    "svd_values",   "svd_vectors", "pinverse"};
  if (factorizations.count(f.name)) return t != DType::F32 && t != DType::F64;
  if (is_float(t)) return false;
  if (!f.only.empty()) return std::find(f.only.begin(), f.only.end(), t) == f.only.end();
  if (t == DType::Bool && no_bools.count(f.name)) return true;
  if (t == DType::U64 && f.name == "cat_mixed") return true;  // beside a signed integer
  return floats_alone.count(f.name) > 0;
}

std::span<const Function> functions() {
  static const std::vector<Function> all = [] {
    std::vector<Function> out;
    for (const auto part : {elementwise, movement, reductions, networks, functions_with_options,
                            functions_of_math, functions_of_views, functions_of_windows,
                            functions_of_scatter, functions_of_sorting, functions_of_autograd,
                            functions_of_fft, functions_of_linalg, functions_of_special})
      for (Function& f : part()) out.push_back(std::move(f));
    return out;
  }();
  return all;
}

}  // namespace tuff::check

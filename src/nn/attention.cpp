// MultiHeadAttention: projections around scaled_dot_product_attention(), or, where the weights are
// asked for, around its formula.
#include <cmath>

#include <tuff/layers.h>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff::nn {
namespace {

// Before anything is made.
int64_t checked_features(int64_t features, int64_t heads) {
  if (heads < 1 || features % heads)
    fail<InvalidArgument>("MultiHeadAttention: {} heads do not divide {} features", heads,
                          features);
  return features;
}

Tensor zeros_parameter(int64_t n, TensorOptions o) {
  o.requires_grad = false;
  return Tensor::zeros({n}, o).realize().set_requires_grad();
}

// Both masks as one that broadcasts to (batch, heads, queries, keys), in the sense of
// scaled_dot_product_attention().
Tensor combined(const Tensor& attn_mask, bool is_causal, const Tensor& key_padding_mask,
                const Tensor& query, const Tensor& key) {
  if (attn_mask.defined() && is_causal)
    fail<InvalidArgument>("MultiHeadAttention: give attn_mask or is_causal, not both");
  if (!key_padding_mask.defined()) return attn_mask;
  const Size batch = key.size(0), keys = key.size(1), queries = query.size(1);
  if (key_padding_mask.dtype() != DType::Bool ||
      !detail::same(key_padding_mask.sizes(), {batch, keys}))
    fail<ShapeError>("MultiHeadAttention: key_padding_mask is {}{}, of bools ({}, {}) was wanted",
                     name(key_padding_mask.dtype()), detail::text(key_padding_mask.sizes()), batch,
                     keys);
  const Tensor seen = key_padding_mask.logical_not().reshape({batch, 1, 1, keys});
  if (is_causal) {
    const Tensor row = detail::counter(queries, 0, 2, key.device());
    return seen & (detail::counter(keys, 1, 2, key.device()) <= row);
  }
  if (!attn_mask.defined()) return seen;
  if (attn_mask.dtype() == DType::Bool) return seen & attn_mask;
  return Tensor::where(seen, attn_mask, -1e30);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t features, int64_t heads_, double dropout_,
                                       bool with_bias, const TensorOptions& o,
                                       std::optional<int64_t> kdim, std::optional<int64_t> vdim)
    : out_proj(checked_features(features, heads_), features, with_bias, o),
      heads(heads_),
      dropout(dropout_) {
  TensorOptions trained = o;
  trained.requires_grad = true;
  if (kdim.value_or(features) == features && vdim.value_or(features) == features) {
    in_proj_weight = Tensor::glorot_uniform({3 * features, features}, 1, trained);
  } else {
    q_proj_weight = Tensor::glorot_uniform({features, features}, 1, trained);
    k_proj_weight = Tensor::glorot_uniform({features, kdim.value_or(features)}, 1, trained);
    v_proj_weight = Tensor::glorot_uniform({features, vdim.value_or(features)}, 1, trained);
  }
  if (!with_bias) return;
  in_proj_bias = zeros_parameter(3 * features, o);
  out_proj.bias = zeros_parameter(features, o);
}

void MultiHeadAttention::members(Members& m) const {
  m.parameter("in_proj_weight", in_proj_weight);
  m.parameter("q_proj_weight", q_proj_weight), m.parameter("k_proj_weight", k_proj_weight);
  m.parameter("v_proj_weight", v_proj_weight), m.parameter("in_proj_bias", in_proj_bias);
  m.module("out_proj", out_proj);
}

// Part 0, 1, 2: queries, keys, values, as (batch, heads, time, features / heads).
Tensor MultiHeadAttention::projected(const Tensor& x, int64_t part) const {
  const int64_t features = out_proj.weight.size(0);
  const Tensor* const own[] = {&q_proj_weight, &k_proj_weight, &v_proj_weight};
  const Tensor weight = in_proj_weight.defined()
                            ? in_proj_weight.narrow(0, part * features, features)
                            : *own[part];
  if (x.dim() != 3 || x.size(-1) != weight.size(1))
    fail<ShapeError>("MultiHeadAttention: {} is not (batch, time, {})", detail::text(x.sizes()),
                     weight.size(1));
  const Tensor bias =
      in_proj_bias.defined() ? in_proj_bias.narrow(0, part * features, features) : Tensor();
  return x.linear(weight, bias)
      .reshape({x.size(0), x.size(1), heads, features / heads})
      .transpose(1, 2);
}

Tensor MultiHeadAttention::joined(const Tensor& y) const {
  return out_proj(y.transpose(1, 2).reshape({y.size(0), y.size(2), out_proj.weight.size(1)}));
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& attn_mask, bool is_causal,
                                      const Tensor& key_padding_mask) const {
  const Tensor q = projected(query, 0), k = projected(key, 1), v = projected(value, 2);
  const Tensor mask = combined(attn_mask, is_causal, key_padding_mask, query, key);
  const TrainingMode mode(training());
  return joined(Tensor::scaled_dot_product_attention(q, k, v, mask, dropout,
                                                     is_causal && !mask.defined()));
}

std::pair<Tensor, Tensor> MultiHeadAttention::with_weights(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
    bool is_causal, const Tensor& key_padding_mask, bool average_attn_weights) const {
  const Tensor q = projected(query, 0), k = projected(key, 1), v = projected(value, 2);
  Tensor mask = combined(attn_mask, is_causal, key_padding_mask, query, key);
  if (is_causal && !mask.defined())
    mask = detail::counter(key.size(1), 1, 2, key.device()) <=
           detail::counter(query.size(1), 0, 2, key.device());
  Tensor scores = q.matmul(k.T()) / std::sqrt(double(int64_t(q.size(-1))));
  if (mask.defined())
    scores = mask.dtype() == DType::Bool ? Tensor::where(mask, scores, -1e30) : scores + mask;
  const TrainingMode mode(training());
  const Tensor weights = scores.softmax(-1).dropout(dropout);
  return {joined(weights.matmul(v)), average_attn_weights ? weights.mean({1}) : weights};
}

}  // namespace tuff::nn

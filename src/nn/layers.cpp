#include <tuff/nn.h>

#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff::nn {
namespace {

TensorOptions trained(TensorOptions o) {
  o.requires_grad = true;
  return o;
}

Tensor constant(const Sizes& sizes, double v, TensorOptions o) {
  o.requires_grad = false;
  Tensor t = Tensor::full(sizes, v, o);
  return t.realize();
}
Tensor constant_parameter(const Sizes& sizes, double v, const TensorOptions& o) {
  return constant(sizes, v, o).set_requires_grad();
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias, const TensorOptions& o) {
  const double bound = 1.0 / std::sqrt(double(in));
  weight = Tensor::uniform({out, in}, -bound, bound, trained(o));
  if (with_bias) bias = Tensor::uniform({out}, -bound, bound, trained(o));
}

Conv2d::Conv2d(int64_t in, int64_t out, IntPair kernel, IntPair stride_, IntPair padding_,
               bool with_bias, const TensorOptions& o, IntPair dilation_, int64_t groups_)
    : stride(stride_), padding(padding_), dilation(dilation_), groups(groups_) {
  if (groups < 1 || in % groups || out % groups)
    fail<InvalidArgument>("Conv2d: {} groups do not divide {} and {} channels", groups, in, out);
  const double bound = 1.0 / std::sqrt(double(in / groups * kernel.h * kernel.w));
  weight = Tensor::uniform({out, in / groups, kernel.h, kernel.w}, -bound, bound, trained(o));
  if (with_bias) bias = Tensor::uniform({out}, -bound, bound, trained(o));
}

BatchNorm::BatchNorm(int64_t n, double epsilon, double momentum_, bool affine,
                     const TensorOptions& o)
    : running_mean(constant({n}, 0, o)),
      running_var(constant({n}, 1, o)),
      eps(epsilon),
      momentum(momentum_) {
  if (!affine) return;
  weight = constant_parameter({n}, 1, o);
  bias = constant_parameter({n}, 0, o);
}
LayerNorm::LayerNorm(int64_t n, double epsilon, const TensorOptions& o)
    : weight(constant_parameter({n}, 1, o)),
      bias(constant_parameter({n}, 0, o)),
      features(n),
      eps(epsilon) {}

RMSNorm::RMSNorm(int64_t n, std::optional<double> epsilon, const TensorOptions& o)
    : weight(constant_parameter({n}, 1, o)), features(n), eps(epsilon) {}

Embedding::Embedding(int64_t count, int64_t n, const TensorOptions& o)
    : weight(Tensor::randn({count, n}, trained(o))) {}

Dropout::Dropout(double probability) : p(probability) {
  if (!(p >= 0 && p <= 1)) fail<InvalidArgument>("Dropout: probability {} is not in 0..1", p);
}

namespace {

// Before anything is made.
int64_t checked_features(int64_t features, int64_t heads) {
  if (heads < 1 || features % heads)
    fail<InvalidArgument>("MultiHeadAttention: {} heads do not divide {} features", heads,
                          features);
  return features;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t features, int64_t heads_, double dropout_,
                                       bool with_bias, const TensorOptions& o)
    : out_proj(checked_features(features, heads_), features, with_bias, o),
      heads(heads_),
      dropout(dropout_) {
  in_proj_weight = Tensor::glorot_uniform({3 * features, features}, 1, trained(o));
  if (!with_bias) return;
  in_proj_bias = constant_parameter({3 * features}, 0, o);
  out_proj.bias = constant_parameter({features}, 0, o);
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& attn_mask, bool is_causal) const {
  const int64_t features = out_proj.weight.size(0);
  auto projected = [&](const Tensor& x, int64_t part) {
    if (x.dim() != 3 || x.size(-1) != features)
      fail<ShapeError>("MultiHeadAttention: {} is not (batch, time, {})", detail::text(x.sizes()),
                       features);
    const Tensor bias =
        in_proj_bias.defined() ? in_proj_bias.narrow(0, part * features, features) : Tensor();
    return x.linear(in_proj_weight.narrow(0, part * features, features), bias)
        .reshape({x.size(0), x.size(1), heads, features / heads})
        .transpose(1, 2);
  };
  const Tensor q = projected(query, 0), k = projected(key, 1), v = projected(value, 2);
  const TrainingMode mode(training());
  const Tensor y = Tensor::scaled_dot_product_attention(q, k, v, attn_mask, dropout, is_causal);
  return out_proj(y.transpose(1, 2).reshape(query.sizes()));
}
Tensor AdaptiveAvgPool2d::operator()(const Tensor& x) const {
  return run(x, [&](const Tensor& in) {
    if (in.dim() < 2)
      fail<ShapeError>("AdaptiveAvgPool2d: {} has no height and width", detail::text(in.sizes()));
    const int64_t h = in.size(-2), w = in.size(-1);
    if (output.h < 1 || output.w < 1 || h % output.h || w % output.w)
      fail<Unsupported>("AdaptiveAvgPool2d: {}x{} is not cut into {}x{} equal windows", h, w,
                        output.h, output.w);
    Sizes windows = in.sizes();
    windows.resize(windows.size() - 2);
    for (const int64_t n : {output.h, h / output.h, output.w, w / output.w}) windows.push_back(n);
    return in.reshape(windows).mean({-3, -1});
  });
}

Tensor Sequential::operator()(const Tensor& x) const {
  return run(x, [&](const Tensor& in) {
    Tensor y = in;
    for (const Step& s : steps_) y = s.forward(y);
    return y;
  });
}

void Sequential::members(Members& m) const {
  for (size_t i = 0; i < steps_.size(); i++) {
    const Step& s = steps_[i];
    if (s.module) m.module(std::to_string(i), *s.module);
    for (const NamedTensor& t : s.state) {
      const std::string name = fmt::format("{}.{}", i, t.name);
      t.trained ? m.parameter(name, t.tensor) : m.buffer(name, t.tensor);
    }
  }
}

}  // namespace tuff::nn

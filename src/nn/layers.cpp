#include <tuff/nn.h>

#include <algorithm>
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

StateDict named(std::initializer_list<NamedTensor> all) {
  StateDict out;
  for (const NamedTensor& t : all) {
    if (t.tensor.defined()) out.push_back(t);
  }
  return out;
}

const NamedTensor* find(const StateDict& state, const std::string& name) {
  const auto it = std::find_if(state.begin(), state.end(),
                               [&](const NamedTensor& t) { return t.name == name; });
  return it == state.end() ? nullptr : &*it;
}

}  // namespace

Parameters parameters_of(const StateDict& state) {
  Parameters out;
  for (const NamedTensor& t : state) {
    if (t.trained) out.push_back(t.tensor);
  }
  return out;
}

void append_state(StateDict& to, std::string_view prefix, const StateDict& state) {
  for (const NamedTensor& t : state)
    to.push_back({fmt::format("{}.{}", prefix, t.name), t.tensor, t.trained});
}

void load_state_dict(const StateDict& into, const StateDict& from) {
  for (const NamedTensor& t : from) {
    if (!find(into, t.name)) fail<InvalidArgument>("load_state_dict: no tensor '{}'", t.name);
  }
  for (const NamedTensor& t : into) {
    const NamedTensor* source = find(from, t.name);
    if (!source) fail<InvalidArgument>("load_state_dict: '{}' is missing", t.name);
    if (source->tensor.sizes() != t.tensor.sizes())
      fail<ShapeError>("load_state_dict: '{}' is {}, {} was given", t.name,
                       detail::text(t.tensor.sizes()), detail::text(source->tensor.sizes()));
  }
  // All of a file or nothing: what cannot be read is found before anything is assigned.
  std::vector<Tensor> values, all;
  for (const NamedTensor& t : into) values.push_back(find(from, t.name)->tensor);
  detail::wait_for(values);
  for (const NamedTensor& t : into) {
    const Tensor value = find(from, t.name)->tensor.detach();
    Tensor target = t.tensor;  // shares
    detail::store(target, value.to(target.device()).cast(target.dtype()));
    all.push_back(target);
  }
  Tensor::realize(all);
}

Linear::Linear(int64_t in, int64_t out, bool with_bias, const TensorOptions& o) {
  const double bound = 1.0 / std::sqrt(double(in));
  weight = Tensor::uniform({out, in}, -bound, bound, trained(o));
  if (with_bias) bias = Tensor::uniform({out}, -bound, bound, trained(o));
}
StateDict Linear::state_dict() const { return named({{"weight", weight}, {"bias", bias}}); }

Conv2d::Conv2d(int64_t in, int64_t out, IntPair kernel, IntPair stride_, IntPair padding_,
               bool with_bias, const TensorOptions& o, IntPair dilation_, int64_t groups_)
    : stride(stride_), padding(padding_), dilation(dilation_), groups(groups_) {
  if (groups < 1 || in % groups || out % groups)
    fail<InvalidArgument>("Conv2d: {} groups do not divide {} and {} channels", groups, in, out);
  const double bound = 1.0 / std::sqrt(double(in / groups * kernel.h * kernel.w));
  weight = Tensor::uniform({out, in / groups, kernel.h, kernel.w}, -bound, bound, trained(o));
  if (with_bias) bias = Tensor::uniform({out}, -bound, bound, trained(o));
}
StateDict Conv2d::state_dict() const { return named({{"weight", weight}, {"bias", bias}}); }

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
StateDict BatchNorm::state_dict() const {
  return named({{"weight", weight},
                {"bias", bias},
                {"running_mean", running_mean, false},
                {"running_var", running_var, false}});
}

LayerNorm::LayerNorm(int64_t n, double epsilon, const TensorOptions& o)
    : weight(constant_parameter({n}, 1, o)),
      bias(constant_parameter({n}, 0, o)),
      features(n),
      eps(epsilon) {}
StateDict LayerNorm::state_dict() const { return named({{"weight", weight}, {"bias", bias}}); }

RMSNorm::RMSNorm(int64_t n, std::optional<double> epsilon, const TensorOptions& o)
    : weight(constant_parameter({n}, 1, o)), features(n), eps(epsilon) {}
StateDict RMSNorm::state_dict() const { return named({{"weight", weight}}); }

Embedding::Embedding(int64_t count, int64_t n, const TensorOptions& o)
    : weight(Tensor::randn({count, n}, trained(o))) {}
StateDict Embedding::state_dict() const { return named({{"weight", weight}}); }

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
  const Tensor y = Tensor::scaled_dot_product_attention(q, k, v, attn_mask, dropout, is_causal);
  return out_proj(y.transpose(1, 2).reshape(query.sizes()));
}
StateDict MultiHeadAttention::state_dict() const {
  StateDict out = named({{"in_proj_weight", in_proj_weight}, {"in_proj_bias", in_proj_bias}});
  append_state(out, "out_proj", out_proj.state_dict());
  return out;
}

Tensor Sequential::operator()(const Tensor& x) const {
  Tensor y = x;
  for (const Step& s : steps_) y = s.run(y);
  return y;
}
StateDict Sequential::state_dict() const {
  StateDict out;
  for (size_t i = 0; i < steps_.size(); i++) append_state(out, std::to_string(i), steps_[i].state);
  return out;
}

}  // namespace tuff::nn

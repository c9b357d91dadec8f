// Layers: small structs of parameters with a call operator, initialized as PyTorch does.
// parameters() lists what an optimizer trains, state_dict() everything that a checkpoint holds,
// both in declaration order. Constructors that take tensors adopt parameters that were made
// elsewhere (a checkpoint, a recipe). Training mode is tuff::training().
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::nn {

using Parameters = std::vector<Tensor>;

/// What a layer keeps, by PyTorch's names: parameters and, not trained, buffers.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool trained = true;
};
using StateDict = std::vector<NamedTensor>;

/// The trained tensors of a state.
Parameters parameters_of(const StateDict& state);
/// `state` with "prefix." before its names, appended to `to`: how layers are nested.
void append_state(StateDict& to, std::string_view prefix, const StateDict& state);
/// Assigns values by name and realizes them. InvalidArgument names what `from` lacks or has too
/// much; ShapeError what differs in shape. Waits for values that are read from files; IoError, and
/// nothing is assigned, where that fails.
void load_state_dict(const StateDict& into, const StateDict& from);

/// y = x @ weight.T + bias; weight (out, in), uniform in +-1/sqrt(in).
struct Linear {
  Linear(int64_t in_features, int64_t out_features, bool bias = true,
         const TensorOptions& options = {});
  explicit Linear(Tensor weight, Tensor bias = {})
      : weight(std::move(weight)), bias(std::move(bias)) {}
  Tensor operator()(const Tensor& x) const { return x.linear(weight, bias); }
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  Tensor weight, bias;
};

/// weight (out, in/groups, KH, KW), uniform in +-1/sqrt(in/groups * KH * KW).
struct Conv2d {
  Conv2d(int64_t in_channels, int64_t out_channels, IntPair kernel, IntPair stride = 1,
         IntPair padding = 0, bool bias = true, const TensorOptions& options = {},
         IntPair dilation = 1, int64_t groups = 1);
  Conv2d(Tensor weight, Tensor bias, IntPair stride = 1, IntPair padding = 0, IntPair dilation = 1,
         int64_t groups = 1)
      : weight(std::move(weight)),
        bias(std::move(bias)),
        stride(stride),
        padding(padding),
        dilation(dilation),
        groups(groups) {}
  Tensor operator()(const Tensor& x) const {
    return x.conv2d(weight, bias, stride, padding, dilation, groups);
  }
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  Tensor weight, bias;
  IntPair stride, padding, dilation;
  int64_t groups;
};

/// Normalizes (N, C, ...) per channel: in training mode with the batch's statistics, which also
/// move the running ones, else with those.
struct BatchNorm {
  explicit BatchNorm(int64_t features, double eps = 1e-5, double momentum = 0.1, bool affine = true,
                     const TensorOptions& options = {});
  Tensor operator()(const Tensor& x) const {
    return x.batchnorm(running_mean, running_var, weight, bias, training(), momentum, eps);
  }
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  Tensor weight, bias, running_mean, running_var;
  double eps, momentum;
};

/// Over the last axis, of `features` elements; weight ones, bias zeros (Ba et al., 2016).
struct LayerNorm {
  explicit LayerNorm(int64_t features, double eps = 1e-5, const TensorOptions& options = {});
  LayerNorm(Tensor weight, Tensor bias, double eps = 1e-5)
      : weight(std::move(weight)),
        bias(std::move(bias)),
        features(this->weight.size(0)),
        eps(eps) {}
  Tensor operator()(const Tensor& x) const { return x.layernorm({features}, weight, bias, eps); }
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  Tensor weight, bias;
  int64_t features;
  double eps;
};

/// eps is the dtype's epsilon if not given.
struct RMSNorm {
  explicit RMSNorm(int64_t features, std::optional<double> eps = {},
                   const TensorOptions& options = {});
  explicit RMSNorm(Tensor weight, std::optional<double> eps = {})
      : weight(std::move(weight)), features(this->weight.size(0)), eps(eps) {}
  Tensor operator()(const Tensor& x) const { return x.rms_norm({features}, weight, eps); }
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  Tensor weight;
  int64_t features;
  std::optional<double> eps;
};

/// weight (count, features), standard normal.
struct Embedding {
  Embedding(int64_t count, int64_t features, const TensorOptions& options = {});
  explicit Embedding(Tensor weight) : weight(std::move(weight)) {}
  Tensor operator()(const Tensor& index) const { return Tensor::embedding(weight, index); }
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  Tensor weight;
};

/// InvalidArgument unless p is in 0..1.
struct Dropout {
  explicit Dropout(double p = 0.5);
  Tensor operator()(const Tensor& x) const { return x.dropout(p); }
  StateDict state_dict() const { return {}; }
  Parameters parameters() const { return {}; }
  double p;
};

/// Queries, keys and values projected, attended in `heads` parts and projected back; tensors are
/// (batch, time, features). Weights are Glorot-uniform as in PyTorch's MultiheadAttention.
struct MultiHeadAttention {
  /// InvalidArgument unless heads divides features.
  MultiHeadAttention(int64_t features, int64_t heads, double dropout = 0, bool bias = true,
                     const TensorOptions& options = {});
  /// attn_mask as of Tensor::scaled_dot_product_attention.
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const Tensor& attn_mask = {}, bool is_causal = false) const;
  Tensor operator()(const Tensor& x, bool is_causal = false) const {
    return (*this)(x, x, x, {}, is_causal);
  }
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  Tensor in_proj_weight, in_proj_bias;  // (3 * features, features), (3 * features)
  Linear out_proj;
  int64_t heads;
  double dropout;
};

/// Layers and functions of one tensor, one after the other:
/// Sequential(Linear(4, 8), [](const Tensor& x) { return x.relu(); }, Linear(8, 2)).
class Sequential {
 public:
  template <class... Layers>
    requires(sizeof...(Layers) > 0 && (std::invocable<const Layers&, const Tensor&> && ...))
  explicit Sequential(Layers... layers) {
    (append(std::move(layers)), ...);
  }
  template <class Layer>
  Sequential& append(Layer layer) {
    Step step;
    if constexpr (requires { layer.state_dict(); }) step.state = layer.state_dict();
    step.run = [layer = std::move(layer)](const Tensor& x) { return Tensor(layer(x)); };
    steps_.push_back(std::move(step));
    return *this;
  }
  Tensor operator()(const Tensor& x) const;
  /// Names begin with the layer's number.
  StateDict state_dict() const;
  Parameters parameters() const { return parameters_of(state_dict()); }
  size_t size() const { return steps_.size(); }

 private:
  struct Step {
    std::function<Tensor(const Tensor&)> run;
    StateDict state;
  };
  std::vector<Step> steps_;
};

}  // namespace tuff::nn

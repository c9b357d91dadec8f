// Layers: modules (module.h) with a call operator, initialized as PyTorch does. Constructors that
// take tensors adopt parameters that were made elsewhere (a checkpoint, a recipe). Dropout and
// batch statistics are active in training mode, see Module.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tuff/int4.h>
#include <tuff/module.h>
#include <tuff/tensor.h>

namespace tuff::nn {

/// y = x @ weight.T + bias; weight (out, in), uniform in +-1/sqrt(in).
struct Linear : Module {
  Linear(int64_t in_features, int64_t out_features, bool bias = true,
         const TensorOptions& options = {});
  explicit Linear(Tensor weight, Tensor bias = {})
      : weight(std::move(weight)), bias(std::move(bias)) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.linear(weight, bias); });
  }
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
  }
  Tensor weight, bias;
};

/// A Linear whose weight is packed by quantize_int4(): an eighth of the memory of F32. It is
/// trained no more; the bias is. Tensors: packed, scales, zeros (undefined if symmetric) and bias.
struct LinearInt4 : Module {
  /// InvalidArgument unless group_size is even and divides what the Linear takes.
  explicit LinearInt4(const Linear& linear, int64_t group_size = 32, bool symmetric = false);
  /// Weights of 0, for a state that is loaded. InvalidArgument as above.
  LinearInt4(int64_t in_features, int64_t out_features, bool bias = true, int64_t group_size = 32,
             bool symmetric = false, const TensorOptions& options = {});
  /// Of what quantize_int4() gave, which is computed now, and not by every product.
  explicit LinearInt4(const Int4Weight& weight, Tensor bias = {}, int64_t group_size = 32);
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) {
      return linear_int4(in, packed, scales, zeros, group_size, bias);
    });
  }
  void members(Members& m) const override {
    m.buffer("packed", packed), m.buffer("scales", scales), m.buffer("zeros", zeros);
    m.parameter("bias", bias);
  }
  Tensor packed, scales, zeros, bias;
  int64_t group_size;
};

/// Normalizes (N, C, ...) per channel: in training mode with the batch's statistics, which also
/// move the running ones, else with those.
struct BatchNorm : Module {
  explicit BatchNorm(int64_t features, double eps = 1e-5, double momentum = 0.1, bool affine = true,
                     const TensorOptions& options = {});
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) {
      return in.batchnorm(running_mean, running_var, weight, bias, training(), momentum, eps);
    });
  }
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
    m.buffer("running_mean", running_mean), m.buffer("running_var", running_var);
  }
  Tensor weight, bias, running_mean, running_var;
  double eps, momentum;
};

/// Over the last axis, of `features` elements; weight ones, bias zeros (Ba et al., 2016).
struct LayerNorm : Module {
  explicit LayerNorm(int64_t features, double eps = 1e-5, const TensorOptions& options = {});
  LayerNorm(Tensor weight, Tensor bias, double eps = 1e-5)
      : weight(std::move(weight)),
        bias(std::move(bias)),
        features(this->weight.size(0)),
        eps(eps) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.layernorm({features}, weight, bias, eps); });
  }
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
  }
  Tensor weight, bias;
  int64_t features;
  double eps;
};

/// (N, C, ...) with the mean and variance of each of `groups` parts of the channels (Wu and He,
/// 2018); weight and bias per channel. InvalidArgument unless groups divides channels.
struct GroupNorm : Module {
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true,
            const TensorOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
  }
  Tensor weight, bias;
  int64_t groups, channels;
  double eps;
};

/// (N, C, ...) with the mean and variance of every channel of every sample (Ulyanov et al., 2016),
/// in both modes: no running statistics.
struct InstanceNorm : Module {
  explicit InstanceNorm(int64_t features, double eps = 1e-5, bool affine = false,
                        const TensorOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
  }
  Tensor weight, bias;
  int64_t features;
  double eps;
};

/// LayerNorm over the channels of (N, C, H, W) at every place.
struct LayerNorm2d : Module {
  explicit LayerNorm2d(int64_t channels, double eps = 1e-6, const TensorOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  void members(Members& m) const override {
    m.parameter("weight", weight), m.parameter("bias", bias);
  }
  Tensor weight, bias;
  int64_t channels;
  double eps;
};

/// eps is the dtype's epsilon if not given.
struct RMSNorm : Module {
  explicit RMSNorm(int64_t features, std::optional<double> eps = {},
                   const TensorOptions& options = {});
  explicit RMSNorm(Tensor weight, std::optional<double> eps = {})
      : weight(std::move(weight)), features(this->weight.size(0)), eps(eps) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.rms_norm({features}, weight, eps); });
  }
  void members(Members& m) const override { m.parameter("weight", weight); }
  Tensor weight;
  int64_t features;
  std::optional<double> eps;
};

/// weight (count, features), standard normal. The row of padding_idx, which may count from the end,
/// is 0 and gets no gradient. InvalidArgument for one that is not there.
struct Embedding : Module {
  Embedding(int64_t count, int64_t features, const TensorOptions& options = {},
            std::optional<int64_t> padding_idx = {});
  explicit Embedding(Tensor weight, std::optional<int64_t> padding_idx = {});
  Tensor operator()(const Tensor& index) const;
  void members(Members& m) const override { m.parameter("weight", weight); }
  Tensor weight;
  std::optional<int64_t> padding_idx;
};

/// Rows of weight (count, features) picked by integers (bags, length), and their "sum", "mean" or
/// "max" over each bag. Rows of padding_idx count for nothing; a bag of them alone is 0.
/// InvalidArgument for another mode.
struct EmbeddingBag : Module {
  EmbeddingBag(int64_t count, int64_t features, std::string mode = "mean",
               const TensorOptions& options = {}, std::optional<int64_t> padding_idx = {});
  explicit EmbeddingBag(Tensor weight, std::string mode = "mean",
                        std::optional<int64_t> padding_idx = {});
  Tensor operator()(const Tensor& index) const;
  void members(Members& m) const override { m.parameter("weight", weight); }
  Tensor weight;
  std::string mode;
  std::optional<int64_t> padding_idx;
};

/// InvalidArgument unless p is in 0..1.
struct Dropout : Module {
  explicit Dropout(double p = 0.5);
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.dropout(p); });
  }
  void members(Members&) const override {}
  double p;
};

/// Queries, keys and values projected, attended in `heads` parts and projected back; tensors are
/// (batch, time, features), keys of kdim and values of vdim features if these are given. Weights
/// are Glorot-uniform as in PyTorch's MultiheadAttention.
struct MultiHeadAttention : Module {
  /// InvalidArgument unless heads divides features.
  MultiHeadAttention(int64_t features, int64_t heads, double dropout = 0, bool bias = true,
                     const TensorOptions& options = {}, std::optional<int64_t> kdim = {},
                     std::optional<int64_t> vdim = {});
  /// attn_mask as of Tensor::scaled_dot_product_attention (true attends, or added), and broadcast
  /// to (batch, heads, queries, keys); key_padding_mask of bools (batch, keys): true is ignored, as
  /// in PyTorch. InvalidArgument for an attn_mask beside is_causal.
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const Tensor& attn_mask = {}, bool is_causal = false,
                    const Tensor& key_padding_mask = {}) const;
  Tensor operator()(const Tensor& x, bool is_causal = false) const {
    return (*this)(x, x, x, {}, is_causal);
  }
  /// The same, and the weights (batch, queries, keys), means over the heads; (batch, heads,
  /// queries, keys) unless averaged. They are matrices in memory.
  std::pair<Tensor, Tensor> with_weights(const Tensor& query, const Tensor& key,
                                         const Tensor& value, const Tensor& attn_mask = {},
                                         bool is_causal = false,
                                         const Tensor& key_padding_mask = {},
                                         bool average_attn_weights = true) const;
  void members(Members& m) const override;
  Tensor in_proj_weight, in_proj_bias;  // (3 * features, features), (3 * features)
  // In the place of in_proj_weight where kdim or vdim is given.
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;
  Linear out_proj;
  int64_t heads;
  double dropout;

 private:
  Tensor projected(const Tensor& x, int64_t part) const;
  Tensor joined(const Tensor& y) const;
};

/// What it is given.
struct Identity : Module {
  Tensor operator()(const Tensor& x) const {
    return run(x, [](const Tensor& in) { return in; });
  }
  void members(Members&) const override {}
};

/// The axes from start_dim to end_dim as one: of (N, C, H, W) what a Linear takes.
struct Flatten : Module {
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : start_dim(start_dim), end_dim(end_dim) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.flatten(start_dim, end_dim); });
  }
  void members(Members&) const override {}
  int64_t start_dim, end_dim;
};

#define TUFF_ACTIVATION(Name, function)                                \
  struct Name : Module {                                               \
    Tensor operator()(const Tensor& x) const {                         \
      return run(x, [](const Tensor& in) { return in.function; });     \
    }                                                                  \
    void members(Members&) const override {}                           \
  }
/// Tensor::relu().
TUFF_ACTIVATION(ReLU, relu());
/// Tensor::relu6().
TUFF_ACTIVATION(ReLU6, relu6());
/// Tensor::selu().
TUFF_ACTIVATION(SELU, selu());
/// Tensor::silu().
TUFF_ACTIVATION(SiLU, silu());
/// Tensor::sigmoid().
TUFF_ACTIVATION(Sigmoid, sigmoid());
/// Tensor::logsigmoid().
TUFF_ACTIVATION(LogSigmoid, logsigmoid());
/// Tensor::hardsigmoid().
TUFF_ACTIVATION(Hardsigmoid, hardsigmoid());
/// Tensor::hardswish().
TUFF_ACTIVATION(Hardswish, hardswish());
/// Tensor::mish().
TUFF_ACTIVATION(Mish, mish());
/// Tensor::softsign().
TUFF_ACTIVATION(Softsign, softsign());
/// Tensor::tanh().
TUFF_ACTIVATION(Tanh, tanh());
/// Tensor::tanhshrink().
TUFF_ACTIVATION(Tanhshrink, tanhshrink());
#undef TUFF_ACTIVATION

// Those that one number shapes.
#define TUFF_ACTIVATION_BY(Name, function, type, argument, value)                     \
  struct Name : Module {                                                              \
    explicit Name(type argument = value) : argument(argument) {}                      \
    Tensor operator()(const Tensor& x) const {                                        \
      return run(x, [&](const Tensor& in) { return in.function(argument); });         \
    }                                                                                 \
    void members(Members&) const override {}                                          \
    type argument;                                                                    \
  }
/// Tensor::elu().
TUFF_ACTIVATION_BY(ELU, elu, double, alpha, 1);
/// Tensor::celu().
TUFF_ACTIVATION_BY(CELU, celu, double, alpha, 1);
/// Tensor::leaky_relu().
TUFF_ACTIVATION_BY(LeakyReLU, leaky_relu, double, negative_slope, 0.01);
/// Tensor::glu().
TUFF_ACTIVATION_BY(GLU, glu, int64_t, dim, -1);
/// Tensor::softmin().
TUFF_ACTIVATION_BY(Softmin, softmin, int64_t, dim, -1);
/// Tensor::softmax().
TUFF_ACTIVATION_BY(Softmax, softmax, int64_t, dim, -1);
/// Tensor::log_softmax().
TUFF_ACTIVATION_BY(LogSoftmax, log_softmax, int64_t, dim, -1);
#undef TUFF_ACTIVATION_BY

/// InvalidArgument, when called, unless min <= max.
struct Hardtanh : Module {
  explicit Hardtanh(double min = -1, double max = 1) : min(min), max(max) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.hardtanh(min, max); });
  }
  void members(Members&) const override {}
  double min, max;
};

/// Tensor::prelu() with one weight, or one per channel, that is learned.
struct PReLU : Module {
  explicit PReLU(int64_t parameters = 1, double init = 0.25, const TensorOptions& options = {});
  explicit PReLU(Tensor weight) : weight(std::move(weight)) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.prelu(weight); });
  }
  void members(Members& m) const override { m.parameter("weight", weight); }
  Tensor weight;
};

/// InvalidArgument, when called, for an approximation other than "none" and "tanh".
struct GELU : Module {
  explicit GELU(std::string approximate = "none") : approximate(std::move(approximate)) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.gelu(approximate); });
  }
  void members(Members&) const override {}
  std::string approximate;
};

/// Tensor::softplus().
struct Softplus : Module {
  explicit Softplus(double beta = 1, double threshold = 20) : beta(beta), threshold(threshold) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return in.softplus(beta, threshold); });
  }
  void members(Members&) const override {}
  double beta, threshold;
};

/// Layers and functions of one tensor, one after the other:
/// Sequential(Linear(4, 8), [](const Tensor& x) { return x.relu(); }, Linear(8, 2)).
/// Copies share their layers.
class Sequential : public Module {
 public:
  template <class... Layers>
    requires(sizeof...(Layers) > 0 && (std::invocable<const Layers&, const Tensor&> && ...))
  explicit Sequential(Layers... layers) {
    (append(std::move(layers)), ...);
  }
  template <class Layer>
  Sequential& append(Layer layer) {
    const auto kept = std::make_shared<Layer>(std::move(layer));
    Step step;
    if constexpr (std::derived_from<Layer, Module>)
      step.module = kept.get();
    else if constexpr (requires { kept->state_dict(); })
      step.state = kept->state_dict();
    step.forward = [kept](const Tensor& x) { return Tensor((*kept)(x)); };
    steps_.push_back(std::move(step));
    return *this;
  }
  Tensor operator()(const Tensor& x) const;
  /// Names begin with the layer's number.
  void members(Members& m) const override;
  size_t size() const { return steps_.size(); }

 private:
  struct Step {
    std::function<Tensor(const Tensor&)> forward;
    Module* module = nullptr;  // what `forward` keeps, if that is one
    StateDict state;           // else
  };
  std::vector<Step> steps_;
};

}  // namespace tuff::nn

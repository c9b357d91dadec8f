// Layers: small structs of parameters with a call operator, initialized as PyTorch does.
// parameters() lists what an optimizer trains, in declaration order. Constructors that take tensors
// adopt parameters that were made elsewhere (a checkpoint, a recipe).
#pragma once

#include <utility>
#include <vector>

#include <tuff/tensor.h>

namespace tuff::nn {

using Parameters = std::vector<Tensor>;

// y = x @ weight.T + bias; weight (out, in), uniform in +-1/sqrt(in).
struct Linear {
  Linear(int64_t in_features, int64_t out_features, bool bias = true,
         const TensorOptions& options = {});
  explicit Linear(Tensor weight, Tensor bias = {})
      : weight(std::move(weight)), bias(std::move(bias)) {}
  Tensor operator()(const Tensor& x) const { return x.linear(weight, bias); }
  Parameters parameters() const;
  Tensor weight, bias;
};

// weight (out, in/groups, kernel, kernel), uniform in +-1/sqrt(in/groups * kernel^2).
struct Conv2d {
  Conv2d(int64_t in_channels, int64_t out_channels, int64_t kernel, int64_t stride = 1,
         int64_t padding = 0, bool bias = true, const TensorOptions& options = {});
  Conv2d(Tensor weight, Tensor bias, int64_t stride = 1, int64_t padding = 0)
      : weight(std::move(weight)), bias(std::move(bias)), stride(stride), padding(padding) {}
  Tensor operator()(const Tensor& x) const { return x.conv2d(weight, bias, stride, padding); }
  Parameters parameters() const;
  Tensor weight, bias;
  int64_t stride, padding;
};

struct LayerNorm {
  explicit LayerNorm(int64_t features, double eps = 1e-5, const TensorOptions& options = {});
  LayerNorm(Tensor weight, Tensor bias, double eps = 1e-5)
      : weight(std::move(weight)),
        bias(std::move(bias)),
        features(this->weight.size(0)),
        eps(eps) {}
  Tensor operator()(const Tensor& x) const { return x.layernorm({features}, weight, bias, eps); }
  Parameters parameters() const;
  Tensor weight, bias;
  int64_t features;
  double eps;
};

// weight (count, features), standard normal.
struct Embedding {
  Embedding(int64_t count, int64_t features, const TensorOptions& options = {});
  explicit Embedding(Tensor weight) : weight(std::move(weight)) {}
  Tensor operator()(const Tensor& index) const { return Tensor::embedding(weight, index); }
  Parameters parameters() const;
  Tensor weight;
};

}  // namespace tuff::nn

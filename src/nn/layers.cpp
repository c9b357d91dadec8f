#include <tuff/nn.h>

#include <cmath>

namespace tuff::nn {
namespace {

TensorOptions trained(TensorOptions o) {
  o.requires_grad = true;
  return o;
}

Tensor constant_parameter(const Sizes& sizes, double v, const TensorOptions& o) {
  Tensor t = Tensor::full(sizes, v, o);
  t.realize();
  return t.set_requires_grad();
}

void append(Parameters& list, const Tensor& t) {
  if (t.defined()) list.push_back(t);
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias, const TensorOptions& o) {
  const double bound = 1.0 / std::sqrt(double(in));
  weight = Tensor::uniform({out, in}, -bound, bound, trained(o));
  if (with_bias) bias = Tensor::uniform({out}, -bound, bound, trained(o));
}
Parameters Linear::parameters() const {
  Parameters p{weight};
  append(p, bias);
  return p;
}

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, int64_t stride_, int64_t padding_,
               bool with_bias, const TensorOptions& o)
    : stride(stride_), padding(padding_) {
  const double bound = 1.0 / std::sqrt(double(in * kernel * kernel));
  weight = Tensor::uniform({out, in, kernel, kernel}, -bound, bound, trained(o));
  if (with_bias) bias = Tensor::uniform({out}, -bound, bound, trained(o));
}
Parameters Conv2d::parameters() const {
  Parameters p{weight};
  append(p, bias);
  return p;
}

LayerNorm::LayerNorm(int64_t n, double epsilon, const TensorOptions& o)
    : weight(constant_parameter({n}, 1, o)),
      bias(constant_parameter({n}, 0, o)),
      features(n),
      eps(epsilon) {}
Parameters LayerNorm::parameters() const { return {weight, bias}; }

Embedding::Embedding(int64_t count, int64_t n, const TensorOptions& o)
    : weight(Tensor::randn({count, n}, trained(o))) {}
Parameters Embedding::parameters() const { return {weight}; }

}  // namespace tuff::nn

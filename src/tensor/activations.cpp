// Activations of networks beside those of functions.cpp.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::as_float;
using detail::computed_wide;
using detail::magnitude;
using detail::self;

namespace {

// x above 0, below that the scaled exp(x / width) - 1.
Tensor exponential_below(const Tensor& x, double scale, double width) {
  const Tensor above = x > 0, below = Tensor::where(above, 0.0, x);
  return Tensor::where(above, x, (width == 1 ? below : below / width).expm1() * scale);
}

// x e^-|x| by the root of e^-|x| twice, as in silu(): a subnormal e^-|x| would leave few bits of
// it. x itself from 0 on.
Tensor faded_below(const Tensor& x, const Tensor& root) {
  return Tensor::where(x < 0, x * root * root, x);
}

// tanh(log(1 + e^x)) as a quotient, of e = e^-|x| so that nothing overflows.
Tensor mish_of(const Tensor& x) {
  const Tensor root = detail::exact_exp(magnitude(x) * -0.5), e = root * root, left = x < 0;
  const Tensor factor = Tensor::where(left, e + 2, e * 2 + 1), square = e * e;
  return faded_below(x, root) * factor /
         Tensor::where(left, square + e * 2 + 2, (square + e) * 2 + 1);
}

}  // namespace

Tensor TensorMath::elu(double alpha) const {
  return computed_wide(self(this), [&](const Tensor& x) { return exponential_below(x, alpha, 1); });
}
// The constants are those that the paper's equation 14 gives, to more digits.
Tensor TensorMath::selu() const {
  constexpr double alpha = 1.6732632423543772848, scale = 1.0507009873554804934;
  return computed_wide(self(this),
                       [](const Tensor& x) { return exponential_below(x, alpha, 1) * scale; });
}
Tensor TensorMath::celu(double alpha) const {
  if (alpha == 0 || std::isnan(alpha)) fail<InvalidArgument>("celu: alpha is {}", alpha);
  return computed_wide(self(this),
                       [&](const Tensor& x) { return exponential_below(x, alpha, alpha); });
}
Tensor TensorMath::hardsigmoid() const {
  return computed_wide(self(this), [](const Tensor& x) {
    return Tensor::where(x <= -3, 0.0, Tensor::where(x >= 3, 1.0, (x + 3) * (1.0 / 6)));
  });
}
Tensor TensorMath::hardswish() const {
  return computed_wide(self(this), [](const Tensor& x) {
    return Tensor::where(x <= -3, 0.0, Tensor::where(x >= 3, x, x * (x + 3) * (1.0 / 6)));
  });
}
Tensor TensorMath::hardtanh(double min, double max) const {
  if (!(min <= max)) fail<InvalidArgument>("hardtanh: {} is above {}", min, max);
  const Tensor x = as_float(self(this));
  return Tensor::where(x <= min, min, Tensor::where(x >= max, max, x));
}
Tensor TensorMath::relu6() const { return hardtanh(0, 6); }
Tensor TensorMath::mish() const {
  return computed_wide(self(this), mish_of);
}
Tensor TensorMath::logsigmoid() const {
  return computed_wide(self(this),
                       [](const Tensor& x) { return -((-x).softplus(1, INFINITY)); });
}
Tensor TensorMath::softsign() const {
  // From 1 on as 1 - 1/(1 + |x|), of which the gradient is one quotient and no difference.
  return computed_wide(self(this), [](const Tensor& x) {
    const Tensor over = (magnitude(x) + 1).reciprocal();
    const Tensor far = Tensor::where(x < 0, over - 1, 1 - over);
    return Tensor::where(magnitude(x) < 1, x * over, far);
  });
}
Tensor TensorMath::prelu(const Tensor& weight) const {
  const Tensor& x = self(this);
  detail::require_same_device("prelu", x, weight);
  Sizes along(size_t(x.dim()), 1);
  if (!detail::same(weight.numel(), 1)) {
    const Size channels = x.dim() == 0 ? Size(1) : x.size(x.dim() > 1 ? 1 : 0);
    if (weight.dim() != 1 || !detail::same(weight.size(0), channels))
      fail<ShapeError>("prelu: weight {} for {}", detail::text(weight.sizes()),
                       detail::text(x.sizes()));
    along[x.dim() > 1 ? 1 : 0] = channels;
  }
  const Tensor v = as_float(x);
  return Tensor::where(v > 0, v, weight.reshape(along).cast(v.dtype()) * v);
}
Tensor TensorMath::glu(int64_t dim) const {
  const Tensor& x = self(this);
  dim = detail::wrap_dim("glu", dim, x.dim());
  const Size n = x.size(dim);
  if (!detail::same(n % 2, 0))
    fail<ShapeError>("glu: axis {} of {} has no halves", dim, detail::text(x.sizes()));
  return computed_wide(x, [&](const Tensor& v) {
    return v.narrow(dim, 0, n / 2) * v.narrow(dim, n / 2, n / 2).sigmoid();
  });
}
Tensor TensorMath::softmin(int64_t dim) const { return (-as_float(self(this))).softmax(dim); }
Tensor TensorMath::tanhshrink() const {
  return computed_wide(self(this), [](const Tensor& x) { return x - x.tanh(); });
}
Tensor TensorMath::hardshrink(double lambda) const {
  const Tensor x = as_float(self(this));
  return Tensor::where((x >= -lambda) & (x <= lambda), 0.0, x);
}
Tensor TensorMath::softshrink(double lambda) const {
  if (!(lambda >= 0)) fail<InvalidArgument>("softshrink: lambda is {}", lambda);
  return computed_wide(self(this), [&](const Tensor& x) {
    const Tensor inside = (x >= -lambda) & (x <= lambda);
    return Tensor::where(inside, 0.0, Tensor::where(x < 0, x + lambda, x - lambda));
  });
}
Tensor TensorMath::threshold(double threshold, double value) const {
  const Tensor x = as_float(self(this));
  return Tensor::where(x <= threshold, value, x);
}
Tensor TensorMath::quick_gelu() const {
  return computed_wide(self(this), [](const Tensor& x) {
    const Tensor root = detail::exact_exp(magnitude(x) * -0.851);
    return faded_below(x, root) / (root * root + 1);
  });
}
Tensor TensorMath::rrelu(double lower, double upper) const {
  if (!(lower <= upper)) fail<InvalidArgument>("rrelu: {} is above {}", lower, upper);
  const Tensor x = as_float(self(this));
  if (!training()) return x.leaky_relu((lower + upper) / 2);
  return Tensor::where(x > 0, x, x * (x.rand_like() * (upper - lower) + lower));
}
Tensor TensorMath::normalize(double p, int64_t dim, double eps) const {
  const int64_t d = detail::wrap_dim("normalize", dim, self(this).dim());
  return detail::totalled(
      self(this), [&](const Tensor& x) { return x / x.norm(p, {d}, true).clamp(eps); });
}

}  // namespace tuff

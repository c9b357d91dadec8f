// Linear algebra and network functions, composed of the tensor floor's few ops.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::text;
using detail::totalled;

Tensor Tensor::matmul(const Tensor& other) const {
  return detail::matmul(detail::factor(*this), detail::factor(other));
}

Tensor detail::matmul(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0)
    fail<ShapeError>("matmul: a scalar was given: {} x {}", text(a.sizes()), text(b.sizes()));
  if (a.dim() == 1) return matmul(a.unsqueeze(0), b).squeeze(b.dim() == 1 ? -1 : -2);
  if (b.dim() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  if (!same(b.size(-2), a.size(-1)))
    fail<ShapeError>("matmul: inner dimensions differ: {} x {}", text(a.sizes()), text(b.sizes()));
  require_same_device("matmul", a, b);
  const NoViews computing;
  // (..., n, 1, k) * (..., 1, m, k), summed over k; products are added up unrounded.
  const DType t = promote(a.dtype(), b.dtype()), wide = accumulator(t);
  const Tensor rows = a.cast(wide).unsqueeze(-2),
               columns = b.cast(wide).transpose(-2, -1).unsqueeze(-3);
  const Tensor out = detail::own_sum("matmul", rows * columns, {-1});
  return is_float(t) ? out.cast(t) : out;
}

Tensor Tensor::linear(const Tensor& weight, const Tensor& bias) const {
  if (weight.dim() != 2 || dim() < 1 || weight.size(1) != size(-1)) {
    fail<ShapeError>("linear: input {} does not fit weight {} (out, in)", text(sizes()),
                     text(weight.sizes()));
  }
  if (bias.defined() && bias.sizes() != Sizes{weight.size(0)})
    fail<ShapeError>("linear: bias {} for {} outputs", text(bias.sizes()), weight.size(0));
  const detail::NoViews computing;
  const Tensor out = matmul(weight.T());
  return bias.defined() ? out + detail::factor(bias) : out;
}

namespace {

// The last axes, which a norm runs over.
Axes normalized_axes(const char* what, const Tensor& x, const Sizes& normalized,
                     std::initializer_list<const Tensor*> parameters) {
  const Sizes own = x.sizes();
  if (normalized.empty() || normalized.size() > own.size() ||
      !std::equal(normalized.rbegin(), normalized.rend(), own.rbegin(),
                  [](const Size& a, const Size& b) { return detail::same(a, b); })) {
    fail<ShapeError>("{}: {} does not end in the normalized shape {}", what, text(own),
                     text(normalized));
  }
  for (const Tensor* p : parameters) {
    if (p->defined() && p->sizes() != normalized)
      fail<ShapeError>("{}: a parameter {} for the normalized shape {}", what, text(p->sizes()),
                       text(normalized));
  }
  Axes axes;
  for (size_t i = 0; i < normalized.size(); i++) axes.push_back(-1 - int64_t(i));
  return axes;
}

Tensor scaled_and_shifted(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor scaled = weight.defined() ? x * weight : x;
  return bias.defined() ? scaled + bias : scaled;
}

double epsilon_of(DType t) { return std::ldexp(1.0, -row(t).mantissa_bits); }

}  // namespace

Tensor Tensor::layernorm(const Sizes& normalized, const Tensor& weight, const Tensor& bias,
                         double eps) const {
  const Axes axes = normalized_axes("layernorm", *this, normalized, {&weight, &bias});
  const detail::NoViews computing;
  return totalled(*this, [&](const Tensor& x) {
    const Tensor off = x - x.mean(axes, true);
    const Tensor out = off * (off.square().mean(axes, true) + eps).rsqrt();
    return scaled_and_shifted(out, weight, bias);
  });
}

Tensor Tensor::rms_norm(const Sizes& normalized, const Tensor& weight,
                        std::optional<double> eps) const {
  const Axes axes = normalized_axes("rms_norm", *this, normalized, {&weight});
  const double added = eps.value_or(epsilon_of(detail::real_dtype(dtype())));
  return totalled(*this, [&](const Tensor& x) {
    return scaled_and_shifted(x * (x.square().mean(axes, true) + added).rsqrt(), weight, {});
  });
}

namespace {

// A tensor of one number per channel, along axis 1.
Tensor per_channel(const Tensor& x, const char* what, const Tensor& values) {
  const int64_t channels = x.size(1);
  if (values.sizes() != Sizes{channels})
    fail<ShapeError>("batchnorm: {} {} for {} channels", what, text(values.sizes()), channels);
  Sizes along(size_t(x.dim()), 1);
  along[1] = channels;
  return values.reshape(along);
}

void update_running(const Tensor& running, const Tensor& batch, double momentum) {
  Tensor shared(running);  // copies share: the caller's tensor gets the new version
  const Tensor fresh = batch.detach().reshape(running.sizes());
  shared.assign((running.detach() * (1 - momentum) + fresh * momentum).cast(running.dtype()));
}

}  // namespace

Tensor Tensor::batchnorm(const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& weight, const Tensor& bias, bool training, double momentum,
                         double eps) const {
  if (dim() < 2) fail<ShapeError>("batchnorm: {} is not (N, C, ...)", text(sizes()));
  if (!training && (!running_mean.defined() || !running_var.defined()))
    fail<InvalidArgument>("batchnorm: running statistics are needed outside training");
  const Size channels = size(1), each = channels == 0 ? Size(0) : numel() / channels;
  if (training && each.max() < 2)
    fail<ShapeError>("batchnorm: {} has {} values per channel, training needs 2", text(sizes()),
                     each);
  Axes axes{0};
  for (int64_t i = 2; i < dim(); i++) axes.push_back(i);
  return totalled(*this, [&](const Tensor& x) {
    const Tensor mean = training ? x.mean(axes, true) : per_channel(x, "mean", running_mean);
    const Tensor off = x - mean;
    const Tensor var =
        training ? off.square().mean(axes, true) : per_channel(x, "variance", running_var);
    if (training && running_mean.defined()) {
      per_channel(x, "mean", running_mean);
      update_running(running_mean, mean, momentum);
    }
    if (training && running_var.defined()) {
      per_channel(x, "variance", running_var);
      update_running(running_var,
                     each.is_number() ? var * (double(each) / double(int64_t(each) - 1))
                                      : var * each / (each - 1),
                     momentum);
    }
    const Tensor out = off * (var + eps).rsqrt();
    return scaled_and_shifted(out, weight.defined() ? per_channel(x, "weight", weight) : Tensor(),
                              bias.defined() ? per_channel(x, "bias", bias) : Tensor());
  });
}

static thread_local bool training_mode = false;
bool training() { return training_mode; }
TrainingMode::TrainingMode(bool on) : before_(training_mode) { training_mode = on; }
TrainingMode::~TrainingMode() { training_mode = before_; }

Tensor Tensor::dropout(double p) const {
  if (!(p >= 0 && p <= 1)) fail<InvalidArgument>("dropout: probability {} is not in 0..1", p);
  if (!training() || p == 0) return *this;
  if (p == 1) return *this * 0.0;
  const Tensor keep = rand(sizes(), {DType::F32, device()}) >= p;
  return where(keep, *this * (1.0 / (1.0 - p)), 0.0);
}

Tensor Tensor::scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& mask, double dropout_p, bool is_causal,
                                            std::optional<double> scale) {
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2 || !detail::same(q.size(-1), k.size(-1)) ||
      !detail::same(k.size(-2), v.size(-2))) {
    fail<ShapeError>("scaled_dot_product_attention: q {}, k {}, v {} do not fit", text(q.sizes()),
                     text(k.sizes()), text(v.sizes()));
  }
  if (mask.defined() && is_causal)
    fail<InvalidArgument>("scaled_dot_product_attention: give a mask or is_causal, not both");
  const detail::NoViews computing;
  // Rounded once they are scaled: what the sums alone come to may be beyond a narrow dtype.
  const Tensor a = detail::factor(q), b = detail::factor(k);
  const DType narrow = promote(a.dtype(), b.dtype()), wide = accumulator(narrow);
  const Tensor sums = detail::matmul(a.cast(wide), b.cast(wide).T());
  Tensor scores = sums * scale.value_or(1.0 / std::sqrt(double(q.size(-1))));
  if (is_float(narrow)) scores = scores.cast(narrow);
  if (is_causal) {
    const Tensor row = detail::counter(q.size(-2), 0, 2, q.device()),
                 column = detail::counter(k.size(-2), 1, 2, q.device());
    scores = where(column <= row, scores, -1e30);  // finite: devices that flush infinities agree
  } else if (mask.defined()) {
    scores = mask.dtype() == DType::Bool ? where(mask, scores, -1e30) : scores + mask;
  }
  return scores.softmax(-1).dropout(dropout_p).matmul(v);
}

}  // namespace tuff

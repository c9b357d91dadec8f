// Linear algebra and network functions, composed of the tensor floor's few ops.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::derive;
using detail::text;
using detail::uop;
using graph::Op;

Tensor Tensor::matmul(const Tensor& other) const {
  if (dim() == 0 || other.dim() == 0)
    fail<ShapeError>("matmul: a scalar was given: {} x {}", text(sizes()), text(other.sizes()));
  if (dim() == 1) return unsqueeze(0).matmul(other).squeeze(other.dim() == 1 ? -1 : -2);
  if (other.dim() == 1) return matmul(other.unsqueeze(1)).squeeze(-1);
  const int64_t k = size(-1);
  if (other.size(-2) != k)
    fail<ShapeError>("matmul: inner dimensions differ: {} x {}", text(sizes()),
                     text(other.sizes()));
  // (..., n, 1, k) * (..., 1, m, k), summed over k.
  return (unsqueeze(-2) * other.transpose(-2, -1).unsqueeze(-3)).sum({-1});
}

Tensor Tensor::linear(const Tensor& weight, const Tensor& bias) const {
  if (weight.dim() != 2 || dim() < 1 || weight.size(1) != size(-1)) {
    fail<ShapeError>("linear: input {} does not fit weight {} (out, in)", text(sizes()),
                     text(weight.sizes()));
  }
  const Tensor out = matmul(weight.T());
  return bias.defined() ? out + bias : out;
}

namespace {

// Windows along one axis, (..., n, ...) -> (..., k, out, ...): the axis is repeated and cut into k
// rows of n + dilation, so that row i starts i*dilation further and no gather is needed. Needs
// out*stride <= n + dilation.
Tensor windows_1d(const Tensor& x, int64_t d, int64_t k, int64_t stride, int64_t dilation) {
  const int64_t n = x.size(d), reach = dilation * (k - 1) + 1, out = (n - reach) / stride + 1;
  const int64_t row = n + dilation;
  const int64_t times = (k * row + n - 1) / n;
  Sizes repeats(size_t(x.dim()), 1);
  repeats[size_t(d)] = times;
  Sizes rows = x.sizes();
  rows[size_t(d)] = k;
  rows.insert(rows.begin() + d + 1, row);
  Tensor t = x.repeat(repeats).narrow(d, 0, k * row).reshape(rows).narrow(d + 1, 0, out * stride);
  if (stride > 1) {
    Sizes strided = t.sizes();
    strided[size_t(d) + 1] = out;
    strided.insert(strided.begin() + d + 2, stride);
    t = t.reshape(strided).narrow(d + 2, 0, 1).squeeze(d + 2);
  }
  return t;
}

// Windows along the last two axes: (..., H, W) -> (..., OH, OW, KH, KW). Each axis is padded where
// windows_1d needs it; the windows that the padding adds are cut off again.
Tensor windows_2d(const Tensor& x, int64_t k_h, int64_t k_w, int64_t stride, int64_t dilation) {
  auto padded_for = [&](const Tensor& t, int64_t d, int64_t k) {
    const int64_t n = t.size(d), out = (n - dilation * (k - 1) - 1) / stride + 1;
    const int64_t missing = std::max<int64_t>(0, out * stride - n - dilation);
    Sizes padding(size_t(2 * (t.dim() - d)), 0);
    padding.back() = missing;
    return t.pad(padding);
  };
  auto windows = [&](const Tensor& t, int64_t d, int64_t k) {
    const int64_t out = (t.size(d) - dilation * (k - 1) - 1) / stride + 1;
    const Tensor w = windows_1d(padded_for(t, d, k), d, k, stride, dilation);
    return w.narrow(d + 1, 0, out);
  };
  const int64_t h = x.dim() - 2, w = x.dim() - 1;
  Tensor t = windows(x, w, k_w);  // (..., H, KW, OW)
  t = windows(t, h, k_h);         // (..., KH, OH, KW, OW)
  Sizes order;
  for (int64_t i = 0; i < h; i++) order.push_back(i);
  order.insert(order.end(), {h + 1, h + 3, h, h + 2});
  return t.permute(order);  // (..., OH, OW, KH, KW)
}

void require_window(const char* what, const Tensor& x, int64_t k_h, int64_t k_w, int64_t stride,
                    int64_t dilation) {
  if (k_h < 1 || k_w < 1 || stride < 1 || dilation < 1)
    fail<InvalidArgument>("{}: kernel {}x{}, stride {} and dilation {} must be positive", what, k_h,
                          k_w, stride, dilation);
  if (x.size(-2) < dilation * (k_h - 1) + 1 || x.size(-1) < dilation * (k_w - 1) + 1) {
    fail<ShapeError>("{}: a {}x{} window (dilation {}) does not fit the padded input {}", what, k_h,
                     k_w, dilation, text(x.sizes()));
  }
}

}  // namespace

Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, int64_t stride, int64_t padding,
                      int64_t dilation, int64_t groups) const {
  if (dim() != 4 || weight.dim() != 4)
    fail<ShapeError>("conv2d: input {} and weight {} must have 4 axes", text(sizes()),
                     text(weight.sizes()));
  const int64_t n = size(0), c = size(1), o = weight.size(0), k_h = weight.size(2),
                k_w = weight.size(3);
  if (groups < 1 || c % groups || o % groups || weight.size(1) * groups != c) {
    fail<ShapeError>("conv2d: {} input channels, weight {} and {} groups do not fit", c,
                     text(weight.sizes()), groups);
  }
  if (bias.defined() && bias.sizes() != Sizes{o})
    fail<ShapeError>("conv2d: bias {} for {} output channels", text(bias.sizes()), o);
  const Tensor x = pad({padding, padding, padding, padding});
  require_window("conv2d", x, k_h, k_w, stride, dilation);
  const Tensor w = windows_2d(x, k_h, k_w, stride, dilation);  // (N, C, OH, OW, KH, KW)
  const int64_t oh = w.size(2), ow = w.size(3), cg = c / groups, og = o / groups;
  const Tensor in =
      w.reshape({n, groups, 1, cg, oh, ow, k_h, k_w}).permute({0, 1, 2, 4, 5, 3, 6, 7});
  const Tensor ker = weight.reshape({1, groups, og, 1, 1, cg, k_h, k_w});
  const Tensor out = (in * ker).sum({-3, -2, -1}).reshape({n, o, oh, ow});
  return bias.defined() ? out + bias.reshape({1, o, 1, 1}) : out;
}

Tensor Tensor::max_pool2d(int64_t kernel, std::optional<int64_t> stride, int64_t padding) const {
  if (dim() < 2) fail<ShapeError>("max_pool2d: input {} has fewer than 2 axes", text(sizes()));
  const Tensor x = padding ? pad({padding, padding, padding, padding}, -INFINITY) : *this;
  const int64_t step = stride.value_or(kernel);
  require_window("max_pool2d", x, kernel, kernel, step, 1);
  return windows_2d(x, kernel, kernel, step, 1).max({-2, -1});
}
Tensor Tensor::avg_pool2d(int64_t kernel, std::optional<int64_t> stride) const {
  if (dim() < 2) fail<ShapeError>("avg_pool2d: input {} has fewer than 2 axes", text(sizes()));
  const int64_t step = stride.value_or(kernel);
  require_window("avg_pool2d", *this, kernel, kernel, step, 1);
  return windows_2d(*this, kernel, kernel, step, 1).mean({-2, -1});
}

Tensor Tensor::layernorm(const Sizes& normalized, const Tensor& weight, const Tensor& bias,
                         double eps) const {
  const Sizes own = sizes();
  if (normalized.size() > own.size() ||
      !std::equal(normalized.rbegin(), normalized.rend(), own.rbegin())) {
    fail<ShapeError>("layernorm: {} does not end in the normalized shape {}", text(own),
                     text(normalized));
  }
  Sizes axes;
  for (size_t i = 0; i < normalized.size(); i++) axes.push_back(-1 - int64_t(i));
  const Tensor off = *this - mean(axes, true);
  Tensor out = off * (off.square().mean(axes, true) + eps).rsqrt();
  if (weight.defined()) out = out * weight;
  return bias.defined() ? out + bias : out;
}

static thread_local bool training_mode = false;
bool training() { return training_mode; }
TrainingMode::TrainingMode(bool on) : before_(training_mode) { training_mode = on; }
TrainingMode::~TrainingMode() { training_mode = before_; }

Tensor Tensor::dropout(double p) const {
  if (p < 0 || p > 1) fail<InvalidArgument>("dropout: probability {} is not in 0..1", p);
  if (!training() || p == 0) return *this;
  if (p == 1) return *this * 0.0;
  const Tensor keep = rand(sizes(), {DType::F32, device()}) >= p;
  return where(keep, *this * (1.0 / (1.0 - p)), 0.0);
}

Tensor Tensor::scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& mask, bool is_causal) {
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2 || q.size(-1) != k.size(-1) ||
      k.size(-2) != v.size(-2)) {
    fail<ShapeError>("scaled_dot_product_attention: q {}, k {}, v {} do not fit", text(q.sizes()),
                     text(k.sizes()), text(v.sizes()));
  }
  if (mask.defined() && is_causal)
    fail<InvalidArgument>("scaled_dot_product_attention: give a mask or is_causal, not both");
  Tensor scores = q.matmul(k.T()) * (1.0 / std::sqrt(double(q.size(-1))));
  if (is_causal) {
    const int64_t n = q.size(-2), m = k.size(-2);
    const TensorOptions index{DType::I32, q.device()};
    const Tensor seen = arange(0, m, 1, index).unsqueeze(0) <= arange(0, n, 1, index).unsqueeze(1);
    scores = where(seen, scores, -1e30);  // finite, so that devices that flush infinities agree
  } else if (mask.defined()) {
    scores = mask.dtype() == DType::Bool ? where(mask, scores, -1e30) : scores + mask;
  }
  return scores.softmax(-1).matmul(v);
}

Tensor Tensor::one_hot(int64_t classes) const {
  if (is_float(dtype()))
    fail<InvalidArgument>("one_hot: indices are {}, not integers", name(dtype()));
  return (unsqueeze(-1) == arange(0, classes, 1, {DType::I32, device()}).cast(dtype()))
      .cast(DType::I32);
}

Tensor Tensor::gather(int64_t d, const Tensor& index) const {
  d = detail::wrap_dim("gather", d, dim());
  if (is_float(index.dtype()))
    fail<InvalidArgument>("gather: indices are {}, not integers", name(index.dtype()));
  if (index.dim() != dim())
    fail<ShapeError>("gather: index {} and input {} differ in rank", text(index.sizes()),
                     text(sizes()));
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t i = 0; i < dim(); i++) {
    if (i != d && index.size(i) > size(i))
      fail<ShapeError>("gather: index {} is larger than input {} on axis {}", text(index.sizes()),
                       text(sizes()), i);
    parts.emplace_back(0, i == d ? size(i) : index.size(i));
  }
  // (..., index axis, ..., source axis): the source axis is chosen by comparison and summed away.
  const Tensor moved = shrink(parts).unsqueeze(-1).transpose(d, -1);
  const Tensor hit = index.one_hot(size(d)) != 0;
  return where(hit, moved, 0).sum({-1}).cast(dtype());
}

Tensor Tensor::embedding(const Tensor& weight, const Tensor& index) {
  if (weight.dim() != 2)
    fail<ShapeError>("embedding: weight {} must have 2 axes", text(weight.sizes()));
  const Tensor hit = index.one_hot(weight.size(0)) != 0;  // (..., V)
  return where(hit.unsqueeze(-1), weight, 0).sum({-2});   // (..., V, C) -> (..., C)
}

Tensor Tensor::cross_entropy(const Tensor& target) const {
  if (dim() != 2 || target.dim() != 1 || target.size(0) != size(0)) {
    fail<ShapeError>("cross_entropy: logits {} need (N, C) and target {} (N)", text(sizes()),
                     text(target.sizes()));
  }
  if (is_float(target.dtype()))
    fail<InvalidArgument>("cross_entropy: target is {}, not integer", name(target.dtype()));
  const Tensor hit = target.one_hot(size(1)) != 0;
  return where(hit, log_softmax(-1), 0).sum() * (-1.0 / double(size(0)));
}

Tensor Tensor::tril(int64_t diagonal) const {
  if (dim() < 2) fail<ShapeError>("tril: {} has fewer than 2 axes", text(sizes()));
  const TensorOptions index{DType::I32, device()};
  const Tensor keep = arange(0, size(-1), 1, index).unsqueeze(0) <=
                      arange(0, size(-2), 1, index).unsqueeze(1) + diagonal;
  return where(keep, *this, 0);
}
Tensor Tensor::triu(int64_t diagonal) const {
  if (dim() < 2) fail<ShapeError>("triu: {} has fewer than 2 axes", text(sizes()));
  const TensorOptions index{DType::I32, device()};
  const Tensor keep = arange(0, size(-1), 1, index).unsqueeze(0) >=
                      arange(0, size(-2), 1, index).unsqueeze(1) + diagonal;
  return where(keep, *this, 0);
}

}  // namespace tuff

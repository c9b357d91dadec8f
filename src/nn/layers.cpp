#include <tuff/layers.h>

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

// One value per channel, against (N, C, ...).
Tensor per_channel(const Tensor& v, const Tensor& x) {
  Sizes sizes(size_t(x.dim()), Size(1));
  sizes[1] = v.numel();
  return v.reshape(sizes);
}
Tensor scaled(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor y = x;
  if (weight.defined()) y = y * per_channel(weight, y);
  return bias.defined() ? y + per_channel(bias, y) : y;
}
void require_channels(const char* layer, const Tensor& x, int64_t rank, int64_t channels) {
  if (x.dim() < rank || x.size(1) != channels)
    fail<ShapeError>("{}: {} is not (batch, {}, ...)", layer, detail::text(x.sizes()), channels);
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias, const TensorOptions& o) {
  const double bound = 1.0 / std::sqrt(double(in));
  weight = Tensor::uniform({out, in}, -bound, bound, trained(o));
  if (with_bias) bias = Tensor::uniform({out}, -bound, bound, trained(o));
}

LinearInt4::LinearInt4(const Linear& linear, int64_t size, bool symmetric)
    : LinearInt4(quantize_int4(linear.weight.detach(), size, symmetric), linear.bias, size) {}
LinearInt4::LinearInt4(int64_t in, int64_t out, bool with_bias, int64_t size, bool symmetric,
                       const TensorOptions& o)
    : LinearInt4(quantize_int4(constant({out, in}, 0, o), size, symmetric), {}, size) {
  if (with_bias) bias = constant_parameter({out}, 0, o);
}

LinearInt4::LinearInt4(const Int4Weight& weight, Tensor given, int64_t size)
    : packed(weight.packed),
      scales(weight.scales),
      zeros(weight.zeros),
      bias(std::move(given)),
      group_size(size) {
  std::vector<Tensor> own{packed, scales};
  if (zeros.defined()) own.push_back(zeros);
  Tensor::realize(own);
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

PReLU::PReLU(int64_t parameters, double init, const TensorOptions& o)
    : weight(constant_parameter({parameters}, init, o)) {}

GroupNorm::GroupNorm(int64_t groups_, int64_t n, double epsilon, bool affine,
                     const TensorOptions& o)
    : groups(groups_), channels(n), eps(epsilon) {
  if (groups < 1 || n % groups)
    fail<InvalidArgument>("GroupNorm: {} groups do not divide {} channels", groups, n);
  if (!affine) return;
  weight = constant_parameter({n}, 1, o);
  bias = constant_parameter({n}, 0, o);
}
Tensor GroupNorm::operator()(const Tensor& x) const {
  return run(x, [&](const Tensor& in) {
    require_channels("GroupNorm", in, 2, channels);
    const Size part = detail::product(in.sizes()) / (in.size(0) * groups);
    const Tensor y = in.reshape({in.size(0), groups, part}).layernorm({part}, {}, {}, eps);
    return scaled(y.reshape(in.sizes()), weight, bias).cast(detail::total_dtype(in.dtype()));
  });
}

InstanceNorm::InstanceNorm(int64_t n, double epsilon, bool affine, const TensorOptions& o)
    : features(n), eps(epsilon) {
  if (!affine) return;
  weight = constant_parameter({n}, 1, o);
  bias = constant_parameter({n}, 0, o);
}
Tensor InstanceNorm::operator()(const Tensor& x) const {
  return run(x, [&](const Tensor& in) {
    require_channels("InstanceNorm", in, 3, features);
    const Size part = detail::product(in.sizes()) / (in.size(0) * features);
    const Tensor y = in.reshape({in.size(0), features, part}).layernorm({part}, {}, {}, eps);
    return scaled(y.reshape(in.sizes()), weight, bias).cast(detail::total_dtype(in.dtype()));
  });
}

LayerNorm2d::LayerNorm2d(int64_t n, double epsilon, const TensorOptions& o)
    : weight(constant_parameter({n}, 1, o)),
      bias(constant_parameter({n}, 0, o)),
      channels(n),
      eps(epsilon) {}
Tensor LayerNorm2d::operator()(const Tensor& x) const {
  return run(x, [&](const Tensor& in) {
    require_channels("LayerNorm2d", in, 4, channels);
    return in.permute({0, 2, 3, 1}).layernorm({channels}, weight, bias, eps).permute({0, 3, 1, 2});
  });
}

RMSNorm::RMSNorm(int64_t n, std::optional<double> epsilon, const TensorOptions& o)
    : weight(constant_parameter({n}, 1, o)), features(n), eps(epsilon) {}

namespace {

std::optional<int64_t> checked_row(const char* layer, std::optional<int64_t> row, int64_t count) {
  if (!row) return row;
  const int64_t wrapped = *row < 0 ? *row + count : *row;
  if (wrapped < 0 || wrapped >= count)
    fail<InvalidArgument>("{}: padding_idx {} is outside of {} rows", layer, *row, count);
  return wrapped;
}

// Standard normal, the row of padding_idx 0.
Tensor table(int64_t count, int64_t n, const TensorOptions& o, std::optional<int64_t> padding_idx) {
  if (!padding_idx) return Tensor::randn({count, n}, trained(o));
  TensorOptions plain = o;
  plain.requires_grad = false;
  Tensor t = Tensor::randn({count, n}, plain);
  const Tensor row = detail::counter(count, 0, 2, t.device());
  return t.masked_fill(row == *padding_idx, 0).realize().set_requires_grad();
}

// What an index of padding_idx picks is without gradient.
Tensor picked(const Tensor& weight, const Tensor& index, std::optional<int64_t> padding_idx) {
  const Tensor rows = Tensor::embedding(weight, index);
  if (!padding_idx) return rows;
  return Tensor::where((index == *padding_idx).unsqueeze(-1), rows.detach(), rows);
}

}  // namespace

Embedding::Embedding(int64_t count, int64_t n, const TensorOptions& o,
                     std::optional<int64_t> padding)
    : padding_idx(checked_row("Embedding", padding, count)) {
  weight = table(count, n, o, padding_idx);
}
Embedding::Embedding(Tensor given, std::optional<int64_t> padding)
    : weight(std::move(given)),
      padding_idx(checked_row("Embedding", padding, padding ? int64_t(weight.size(0)) : 0)) {}
Tensor Embedding::operator()(const Tensor& index) const {
  return run(index, [&](const Tensor& in) { return picked(weight, in, padding_idx); });
}

namespace {

std::string checked_mode(std::string mode) {
  if (mode != "sum" && mode != "mean" && mode != "max")
    fail<InvalidArgument>("EmbeddingBag: mode '{}' is none of sum, mean, max", mode);
  return mode;
}

}  // namespace

EmbeddingBag::EmbeddingBag(int64_t count, int64_t n, std::string how, const TensorOptions& o,
                           std::optional<int64_t> padding)
    : mode(checked_mode(std::move(how))),
      padding_idx(checked_row("EmbeddingBag", padding, count)) {
  weight = table(count, n, o, padding_idx);
}
EmbeddingBag::EmbeddingBag(Tensor given, std::string how, std::optional<int64_t> padding)
    : weight(std::move(given)),
      mode(checked_mode(std::move(how))),
      padding_idx(checked_row("EmbeddingBag", padding, padding ? int64_t(weight.size(0)) : 0)) {}
Tensor EmbeddingBag::operator()(const Tensor& index) const {
  return run(index, [&](const Tensor& in) {
    if (in.dim() != 2)
      fail<ShapeError>("EmbeddingBag: {} is not (bags, length)", detail::text(in.sizes()));
    const Tensor rows = Tensor::embedding(weight, in);
    if (!padding_idx)
      return mode == "sum" ? rows.sum({1}) : mode == "mean" ? rows.mean({1}) : rows.max({1});
    const Tensor counts = (in != *padding_idx).unsqueeze(-1);
    if (mode == "max") {
      const DType t = rows.dtype();
      const double least = has_infinity(t) ? -INFINITY : -largest_value(t);
      const Tensor largest = Tensor::where(counts, rows, least).max({1});
      return Tensor::where(counts.any({1}), largest, 0.0);
    }
    const Tensor sum = Tensor::where(counts, rows, 0.0).sum({1});
    return mode == "sum" ? sum : sum / counts.cast(rows.dtype()).sum({1}).clamp(1);
  });
}

Dropout::Dropout(double probability) : p(probability) {
  if (!(p >= 0 && p <= 1)) fail<InvalidArgument>("Dropout: probability {} is not in 0..1", p);
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

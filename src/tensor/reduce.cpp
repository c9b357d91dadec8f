// Reductions, softmax and what is made of them.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::derive;
using detail::uop;
using detail::wrap_dims;
using graph::Op;

namespace {

Tensor finish(const Tensor& kept, const Sizes& dims, bool keepdim) {
  if (keepdim) return kept;
  Sizes out;
  const Sizes own = kept.sizes();
  for (size_t i = 0; i < own.size(); i++) {
    if (!std::binary_search(dims.begin(), dims.end(), int64_t(i))) out.push_back(own[i]);
  }
  return kept.reshape(out);
}

Tensor reduce(const char* what, Op op, const Tensor& x, const Sizes& given, bool keepdim) {
  const Sizes dims = wrap_dims(what, given, x.dim());
  return finish(derive(x, graph::reduce(op, uop(x), dims)), dims, keepdim);
}

int64_t reduced_count(const char* what, const Tensor& x, const Sizes& given) {
  int64_t n = 1;
  for (int64_t d : wrap_dims(what, given, x.dim())) n *= x.size(d);
  return n;
}

void require_elements(const char* what, const Tensor& x, const Sizes& dims) {
  if (reduced_count(what, x, dims) == 0)
    fail<ShapeError>("{}: no elements to choose from in {}", what, detail::text(x.sizes()));
}

Tensor as_float(const Tensor& x) { return is_float(x.dtype()) ? x : x.cast(DType::F32); }

}  // namespace

// Sums of f16 and bf16 are accumulated in f32 and rounded once.
Tensor Tensor::sum(const Sizes& dims, bool keepdim) const {
  const DType acc = accumulator(dtype());
  const Tensor total = reduce("sum", Op::Add, cast(acc), dims, keepdim);
  return is_float(dtype()) ? total.cast(dtype()) : total;
}
Tensor Tensor::prod(const Sizes& dims, bool keepdim) const {
  const DType acc = accumulator(dtype());
  const Tensor total = reduce("prod", Op::Mul, cast(acc), dims, keepdim);
  return is_float(dtype()) ? total.cast(dtype()) : total;
}
Tensor Tensor::max(const Sizes& dims, bool keepdim) const {
  require_elements("max", *this, dims);
  return reduce("max", Op::Max, *this, dims, keepdim);
}
Tensor Tensor::min(const Sizes& dims, bool keepdim) const {
  require_elements("min", *this, dims);
  if (is_float(dtype())) return reduce("min", Op::Max, neg(), dims, keepdim).neg();
  if (dtype() == DType::Bool) return reduce("min", Op::Mul, *this, dims, keepdim);
  // ~x reverses the order of integers without the overflow that -x has.
  const Number all_ones = is_unsigned(dtype()) ? Number(uint64_t(-1)) : Number(-1);
  return reduce("min", Op::Max, *this ^ all_ones, dims, keepdim) ^ all_ones;
}
Tensor Tensor::mean(const Sizes& dims, bool keepdim) const {
  const Tensor x = as_float(*this);
  const int64_t n = reduced_count("mean", x, dims);
  return (x.cast(accumulator(x.dtype())).sum(dims, keepdim) * (1.0 / double(n))).cast(x.dtype());
}
Tensor Tensor::var(const Sizes& dims, bool keepdim, int64_t correction) const {
  const Tensor x = as_float(*this);
  const int64_t n = reduced_count("var", x, dims);
  const Tensor off = x - x.mean(dims, true);
  return off.square().sum(dims, keepdim) * (1.0 / double(std::max<int64_t>(n - correction, 0)));
}
Tensor Tensor::stdev(const Sizes& dims, bool keepdim, int64_t correction) const {
  return var(dims, keepdim, correction).sqrt();
}

// The first of the equal extremes: positions are counted from the end so that the largest wins.
static Tensor arg_of(const Tensor& x, const Tensor& extreme, int64_t d, bool keepdim) {
  const int64_t n = x.size(d);
  Sizes along(size_t(x.dim()), 1);
  along[size_t(d)] = n;
  const Tensor from_end = (n - Tensor::arange(0, n, 1, {DType::I32, x.device()})).reshape(along);
  const Tensor hit = (x == extreme) | x.isnan();
  return n - (hit.cast(DType::I32) * from_end).max({d}, keepdim);
}

Tensor Tensor::argmax(std::optional<int64_t> given, bool keepdim) const {
  if (!given) return flatten().argmax(0);
  const int64_t d = detail::wrap_dim("argmax", *given, dim());
  return arg_of(*this, max({d}, true), d, keepdim);
}
Tensor Tensor::argmin(std::optional<int64_t> given, bool keepdim) const {
  if (!given) return flatten().argmin(0);
  const int64_t d = detail::wrap_dim("argmin", *given, dim());
  return arg_of(*this, min({d}, true), d, keepdim);
}

// The maximum only keeps exp in range: it carries no gradient.
Tensor Tensor::logsumexp(const Sizes& dims, bool keepdim) const {
  const Tensor x = as_float(*this);
  const Tensor m = x.max(dims, true).detach();
  const Tensor kept = (x - m).exp().sum(dims, true).log() + m;
  return finish(kept, wrap_dims("logsumexp", dims, dim()), keepdim);
}
Tensor Tensor::softmax(int64_t d) const {
  const Sizes axis{detail::wrap_dim("softmax", d, dim())};
  const Tensor x = as_float(*this);
  const Tensor e = (x - x.max(axis, true).detach()).exp();
  return e * e.sum(axis, true).reciprocal();
}
Tensor Tensor::log_softmax(int64_t d) const {
  const Sizes axis{detail::wrap_dim("log_softmax", d, dim())};
  const Tensor x = as_float(*this);
  const Tensor off = x - x.max(axis, true).detach();
  return off - off.exp().sum(axis, true).log();
}

}  // namespace tuff

// Reductions, softmax, running sums and products and what is made of them.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/scans.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::total_dtype;
using detail::totalled;
using detail::derive;
using detail::uop;
using detail::wrap_dims;
using ir::Op;

namespace {

Tensor finish(const Tensor& kept, const Axes& dims, bool keepdim) {
  if (keepdim) return kept;
  Sizes out;
  const Sizes own = kept.sizes();
  for (size_t i = 0; i < own.size(); i++) {
    if (!std::binary_search(dims.begin(), dims.end(), int64_t(i))) out.push_back(own[i]);
  }
  const detail::NoViews computing;
  return kept.reshape(out);
}

// A scalar is reduced as if it had one axis.
Axes reduced_axes(const char* what, const Axes& given, int64_t rank) {
  if (rank > 0) return wrap_dims(what, given, rank);
  for (int64_t d : given) {
    if (d != 0 && d != -1) detail::wrap_dim(what, d, 0);
  }
  if (!given.empty()) wrap_dims(what, given, 1);  // refuses the same axis twice
  return {};
}

Tensor reduce(const char* what, Op op, const Tensor& x, const Axes& given, bool keepdim) {
  const detail::BuildGuard section;
  const Axes dims = reduced_axes(what, given, x.dim());
  const ir::UOp total = ir::reduce(op, uop(x), dims);
  // A reduction is stored, which needs a device.
  const bool stored = total->op == Op::Reduce;
  return finish(derive(x, stored ? detail::placed(total, x.device()) : total), dims, keepdim);
}

Size reduced_count(const char* what, const Tensor& x, const Axes& given) {
  Size n = 1;
  for (int64_t d : reduced_axes(what, given, x.dim())) n *= x.size(d);
  return n;
}

// The dtype of sums, products and running sums: 64 bits for integers and bools.
DType sum_dtype(DType t) {
  if (is_float(t)) return t;
  return is_unsigned(t) ? DType::U64 : DType::I64;
}

// What elements are added up in: as wide as sum_dtype() only where a result could need it, since
// 64 bits take twice the time, and more where they are emulated.
DType summed_in(const char* what, const Tensor& x, const Axes& dims) {
  const DType t = x.dtype();
  if (is_float(t) || size_bytes(t) >= 4) return is_float(t) ? accumulator(t) : sum_dtype(t);
  const int64_t largest = t == DType::Bool ? 1 : int64_t(1) << (8 * size_bytes(t));
  const int64_t most = INT32_MAX / largest;
  return reduced_count(what, x, dims).max() <= most ? accumulator(t) : sum_dtype(t);
}

DType multiplied_in(DType t) {
  return is_float(t) || t == DType::Bool ? accumulator(t) : sum_dtype(t);
}

Tensor summed(const char* what, const Tensor& x, const Axes& dims, bool keepdim) {
  return reduce(what, Op::Add, x.cast(summed_in(what, x, dims)), dims, keepdim);
}

void require_elements(const char* what, const Tensor& x, const Axes& dims) {
  if (detail::same(reduced_count(what, x, dims), 0))
    fail<ShapeError>("{}: no elements to choose from in {}", what, detail::text(x.sizes()));
}

}  // namespace

Tensor detail::own_sum(const char* what, const Tensor& x, const Axes& dims) {
  return reduce(what, Op::Add, x, dims, false);
}
Tensor detail::own_reduction(const char* what, Op op, const Tensor& x, const Axes& dims) {
  return reduce(what, op, x, dims, false);
}

// Sums of f16 and bf16 are accumulated in f32 and rounded once.
Tensor Tensor::sum(const Axes& dims, bool keepdim) const {
  return summed("sum", *this, dims, keepdim).cast(total_dtype(sum_dtype(dtype())));
}
Tensor Tensor::prod(const Axes& dims, bool keepdim) const {
  const Tensor x = cast(multiplied_in(dtype()));
  return reduce("prod", Op::Mul, x, dims, keepdim).cast(total_dtype(sum_dtype(dtype())));
}
Tensor Tensor::max(const Axes& dims, bool keepdim) const {
  require_elements("max", *this, dims);
  return reduce("max", Op::Max, *this, dims, keepdim);
}
Tensor Tensor::min(const Axes& dims, bool keepdim) const {
  require_elements("min", *this, dims);
  if (is_float(dtype())) return reduce("min", Op::Max, neg(), dims, keepdim).neg();
  if (dtype() == DType::Bool) return reduce("min", Op::Mul, *this, dims, keepdim);
  // ~x reverses the order of integers without the overflow that -x has.
  const Number all_ones = is_unsigned(dtype()) ? Number(uint64_t(-1)) : Number(-1);
  return reduce("min", Op::Max, *this ^ all_ones, dims, keepdim) ^ all_ones;
}
Tensor Tensor::any(const Axes& dims, bool keepdim) const {
  return reduce("any", Op::Add, cast(DType::Bool), dims, keepdim);
}
Tensor Tensor::all(const Axes& dims, bool keepdim) const {
  return reduce("all", Op::Mul, cast(DType::Bool), dims, keepdim);
}
Tensor Tensor::mean(const Axes& dims, bool keepdim) const {
  const Size n = reduced_count("mean", *this, dims);
  const auto divided = [&](const Tensor& total) {
    return n.is_number() ? total * (1.0 / double(int64_t(n))) : total / n;
  };
  // Sums of 64-bit integers could wrap.
  if (!is_float(dtype()) && size_bytes(dtype()) <= 4)
    return divided(summed("mean", *this, dims, keepdim).cast(detail::real_dtype(dtype())));
  return totalled(*this, [&](const Tensor& x) { return divided(x.sum(dims, keepdim)); });
}
Tensor Tensor::var(const Axes& dims, bool keepdim, int64_t correction) const {
  const Size left = reduced_count("var", *this, dims) - correction;
  return totalled(*this, [&](const Tensor& x) {
    const Tensor off = x - x.mean(dims, true);
    const Tensor total = off.square().sum(dims, keepdim);
    if (!left.is_number()) return total / detail::number_like(x, left).clamp(0);
    return total * (1.0 / double(std::max<int64_t>(left, 0)));
  });
}
Tensor Tensor::std(const Axes& dims, bool keepdim, int64_t correction) const {
  return totalled(*this,
                       [&](const Tensor& x) { return x.var(dims, keepdim, correction).sqrt(); });
}

// The first of the equal extremes: positions are counted from the end so that the largest wins.
static Tensor arg_of(const Tensor& x, const Tensor& extreme, int64_t d, bool keepdim) {
  const Size n = x.size(d);
  const Tensor from_end = n - detail::counter(n, d, x.dim(), x.device());
  const Tensor hit = (x == extreme) | x.isnan();
  return n - (hit.cast(from_end.dtype()) * from_end).max({d}, keepdim);
}

namespace {

using ArgExtreme = Tensor (Tensor::*)(std::optional<int64_t>, bool) const;

// The position among all elements, or in a scalar as if it had one axis: along a row of them.
Tensor arg_flat(const char* what, ArgExtreme of, const Tensor& x, std::optional<int64_t> given,
                bool keepdim) {
  if (given) reduced_axes(what, {*given}, x.dim());
  const Tensor at = (x.reshape({x.numel()}).*of)(0, false);
  return keepdim ? at.reshape(Sizes(size_t(x.dim()), 1)) : at;
}

}  // namespace

Tensor Tensor::argmax(std::optional<int64_t> given, bool keepdim) const {
  if (!given || dim() == 0) return arg_flat("argmax", &Tensor::argmax, *this, given, keepdim);
  const int64_t d = detail::wrap_dim("argmax", *given, dim());
  return arg_of(*this, max({d}, true), d, keepdim);
}
Tensor Tensor::argmin(std::optional<int64_t> given, bool keepdim) const {
  if (!given || dim() == 0) return arg_flat("argmin", &Tensor::argmin, *this, given, keepdim);
  const int64_t d = detail::wrap_dim("argmin", *given, dim());
  return arg_of(*this, min({d}, true), d, keepdim);
}

// The maximum only keeps exp in range: it carries no gradient. An infinite one would leave inf -
// inf.
Tensor Tensor::logsumexp(const Axes& dims, bool keepdim) const {
  require_elements("logsumexp", *this, dims);
  const Tensor kept = totalled(*this, [&](const Tensor& x) {
    const Tensor largest = x.max(dims, true).detach();
    const Tensor m = where(largest.isinf(), 0.0, largest);
    return detail::quick_exp(x - m).sum(dims, true).log() + m;
  });
  return finish(kept, reduced_axes("logsumexp", dims, dim()), keepdim);
}
Tensor Tensor::softmax(int64_t d) const {
  if (dim() == 0) return reshape({1}).softmax(d).reshape({});
  const Axes axis{detail::wrap_dim("softmax", d, dim())};
  if (numel() == 0) return detail::no_view(detail::as_float(*this));
  return totalled(*this, [&](const Tensor& x) {
    const Tensor e = detail::quick_exp(x - x.max(axis, true).detach());
    return e * e.sum(axis, true).reciprocal();
  });
}
Tensor Tensor::log_softmax(int64_t d) const {
  if (dim() == 0) return reshape({1}).log_softmax(d).reshape({});
  const Axes axis{detail::wrap_dim("log_softmax", d, dim())};
  if (numel() == 0) return detail::no_view(detail::as_float(*this));
  return totalled(*this, [&](const Tensor& x) {
    const Tensor off = x - x.max(axis, true).detach();
    return off - detail::quick_exp(off).sum(axis, true).log();
  });
}

Tensor Tensor::cumsum(int64_t d) const {
  reduced_axes("cumsum", {d}, dim());
  const Tensor x = cast(summed_in("cumsum", *this, {d}));
  return detail::running(Op::Add, x, d).cast(total_dtype(sum_dtype(dtype())));
}
Tensor TensorSorting::cumprod(int64_t d) const {
  const Tensor& x = detail::self(this);
  reduced_axes("cumprod", {d}, x.dim());
  const Tensor products = detail::running(Op::Mul, x.cast(multiplied_in(x.dtype())), d);
  return products.cast(total_dtype(sum_dtype(x.dtype())));
}

}  // namespace tuff

// Order and selection: elements taken from where order.h says that they are.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/order.h"
#include "tensor/scans.h"

namespace tuff {

using detail::counter;
using detail::self;
using detail::text;

namespace {

// A tensor with the axis to sort as its last one; a scalar as if it had one.
struct Sorted {
  Tensor given;
  int64_t axis;
  Tensor x;

  Sorted(const char* what, const Tensor& t, int64_t dim)
      : given(t), axis(detail::wrap_dim(what, dim, std::max<int64_t>(1, t.dim()))) {
    detail::require_numbers(what, t.sizes());
    x = t.dim() == 0 ? t.reshape({1}) : t.transpose(axis, -1);
  }
  int64_t n() const { return x.size(-1); }
  void require_elements(const char* what) const {
    if (n() == 0)
      fail<ShapeError>("{}: no elements to choose from on axis {} of {}", what, axis,
                       text(given.sizes()));
  }
  Tensor keys(bool descending = false) const { return detail::order_keys(x.detach(), descending); }
  // Back to the order of axes.
  Tensor placed(const Tensor& t) const {
    return given.dim() == 0 ? t.reshape({}) : t.transpose(axis, -1);
  }
  // {elements at positions of the last axis, the positions}.
  std::pair<Tensor, Tensor> at(const Tensor& positions) const {
    return {placed(x.gather(-1, positions)), placed(positions)};
  }
  // The same of one position each.
  std::pair<Tensor, Tensor> one_at(const Tensor& positions, bool keepdim) const {
    std::pair<Tensor, Tensor> both = at(positions);
    if (keepdim || given.dim() == 0) return both;
    return {both.first.squeeze(axis), both.second.squeeze(axis)};
  }
};

Tensor all_of(const Tensor& x) { return x.reshape({x.numel()}); }

// How many elements of the last axis are not NaN, which are the first ones in order.
Tensor valid_count(const Tensor& x) {
  return detail::own_sum("count", (~x.isnan()).cast(DType::I32), {-1}).unsqueeze(-1);
}

std::pair<Tensor, Tensor> middle(const char* what, const Tensor& given, int64_t dim, bool keepdim,
                                 bool without_nan) {
  const Sorted s(what, given, dim);
  s.require_elements(what);
  const Tensor order = detail::stable_order(s.keys());
  const int64_t n = s.n();
  if (!is_float(given.dtype())) return s.one_at(order.narrow(-1, (n - 1) / 2, 1), keepdim);
  const Tensor valid = valid_count(s.x.detach());
  const Tensor rank = without_nan
                          ? (valid - 1).clamp(0) / 2
                          : Tensor::where(valid < n, valid, valid.full_like((n - 1) / 2));
  return s.one_at(detail::taken(order, rank.cast(DType::I32)), keepdim);
}

// Where quantiles lie between the elements of an axis, in the dtype that they are computed in.
struct QuantileOptions {
  const char* what;
  std::optional<int64_t> dim;
  bool keepdim, without_nan;
  Interpolation between;
};

Tensor between_elements(const Tensor& sorted, const Tensor& rank, Interpolation between) {
  const auto at = [&](const Tensor& place) { return sorted.gather(-1, place.cast(DType::I32)); };
  if (between == Interpolation::Lower) return at(rank.floor());
  if (between == Interpolation::Higher) return at(rank.ceil());
  if (between == Interpolation::Nearest) return at(rank.round());
  const Tensor low = at(rank.floor()), high = at(rank.ceil()), part = rank - rank.floor();
  if (between == Interpolation::Midpoint) return low.lerp(high, 0.5);
  return Tensor::where(part == 0, low, low.lerp(high, part));  // of infinite ones no difference
}

// (..., n), q (m) -> (..., m)
Tensor quantiles_of_last(const Tensor& x, const Tensor& q, const QuantileOptions& o) {
  const int64_t n = x.size(-1);
  const Tensor sorted = x.gather(-1, detail::stable_order(detail::order_keys(x.detach())));
  const Tensor valid = valid_count(x.detach());
  Tensor rank = q * (valid - 1).clamp(0).cast(x.dtype());
  // Where there is NaN the last element is one.
  if (!o.without_nan) rank = Tensor::where(valid < n, rank.full_like(n - 1), rank);
  return between_elements(sorted, rank, o.between);
}

Tensor quantiles(const Tensor& given, const Tensor& q, const QuantileOptions& o) {
  if (q.dim() > 1) fail<ShapeError>("{}: q {} has more than one axis", o.what, text(q.sizes()));
  detail::require_same_device(o.what, given, q);
  if (o.dim) detail::wrap_dim(o.what, *o.dim, std::max<int64_t>(1, given.dim()));
  const bool along = o.dim && given.dim() > 0;
  const Sorted s(o.what, along ? given : all_of(given), along ? *o.dim : 0);
  s.require_elements(o.what);
  if (given.dtype() != DType::F64 && s.n() > int64_t(1) << 24)
    fail<Unsupported>("{}: {} elements are more than the 2^24 that F32 counts: cast to F64", o.what,
                      s.n());
  return detail::computed_wide(s.x, [&](const Tensor& x) {
    const Tensor each = q.detach().reshape({q.numel()}).cast(x.dtype()).clamp(0.0, 1.0);
    const Tensor last = quantiles_of_last(x, each, o);
    Tensor out = last.transpose(s.axis, -1).movedim(s.axis, 0);  // the axis of q, then the others
    if (o.keepdim && along) out = out.unsqueeze(s.axis + 1);
    if (o.keepdim && !along) {
      Sizes ones(size_t(given.dim()) + 1, 1);
      ones[0] = q.numel();
      out = out.reshape(ones);
    }
    return q.dim() == 0 ? out.squeeze(0) : out;
  });
}

Tensor quantile_at(const Tensor& x, double q, const QuantileOptions& o) {
  if (!(q >= 0 && q <= 1)) fail<InvalidArgument>("{}: q is {}, not in 0..1", o.what, q);
  const DType t = x.dtype() == DType::F64 ? DType::F64 : DType::F32;
  return quantiles(x, Tensor::full({}, q, {t, x.device()}), o);
}

}  // namespace

std::pair<Tensor, Tensor> TensorSorting::sort(int64_t dim, bool descending) const {
  const Sorted s("sort", self(this), dim);
  return s.at(detail::stable_order(s.keys(descending)));
}
Tensor TensorSorting::argsort(int64_t dim, bool descending) const {
  const Sorted s("argsort", self(this), dim);
  return s.placed(detail::stable_order(s.keys(descending)));
}
Tensor TensorSorting::msort() const { return self(this).sort(0).first; }

std::pair<Tensor, Tensor> TensorSorting::topk(int64_t k, int64_t dim, bool largest) const {
  const Sorted s("topk", self(this), dim);
  if (k < 0 || k > s.n() || (self(this).dim() == 0 && k != 1))
    fail<ShapeError>("topk: {} elements asked for of axis {} of {}, which has {}", k, s.axis,
                     text(s.given.sizes()), s.n());
  return s.at(detail::first_in_order(s.keys(largest), k));
}

std::pair<Tensor, Tensor> TensorSorting::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  const Sorted s("kthvalue", self(this), dim);
  if (k < 1 || k > s.n())
    fail<ShapeError>("kthvalue: k is {}, not in 1..{}, for axis {} of {}", k, s.n(), s.axis,
                     text(s.given.sizes()));
  return s.one_at(detail::first_in_order(s.keys(), k).narrow(-1, k - 1, 1), keepdim);
}

Tensor TensorSorting::median() const {
  return middle("median", all_of(self(this)), 0, false, false).first;
}
std::pair<Tensor, Tensor> TensorSorting::median(int64_t dim, bool keepdim) const {
  return middle("median", self(this), dim, keepdim, false);
}
Tensor TensorSorting::nanmedian() const {
  return middle("nanmedian", all_of(self(this)), 0, false, true).first;
}
std::pair<Tensor, Tensor> TensorSorting::nanmedian(int64_t dim, bool keepdim) const {
  return middle("nanmedian", self(this), dim, keepdim, true);
}

std::pair<Tensor, Tensor> TensorSorting::mode(int64_t dim, bool keepdim) const {
  const Sorted s("mode", self(this), dim);
  s.require_elements("mode");
  const Tensor x = s.x.detach(), order = detail::stable_order(detail::order_keys(x));
  const Tensor sorted = detail::taken(x, order).contiguous();
  const Tensor here = counter(s.n(), x.dim() - 1, x.dim(), x.device());
  // A run begins where an element differs from the one before it; the longest ends where an element
  // is the farthest from its run's begin.
  const Tensor differs = sorted != sorted.roll({1}, {-1});
  const Tensor begin = detail::running(ir::Op::Max, Tensor::where(differs, here, 0), -1);
  return s.one_at(detail::taken(order, (here - begin).argmax(-1, true)), keepdim);
}

Tensor TensorSorting::quantile(double q, std::optional<int64_t> dim, bool keepdim,
                               Interpolation between) const {
  return quantile_at(self(this), q, {"quantile", dim, keepdim, false, between});
}
Tensor TensorSorting::quantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                               Interpolation between) const {
  return quantiles(self(this), q, {"quantile", dim, keepdim, false, between});
}
Tensor TensorSorting::nanquantile(double q, std::optional<int64_t> dim, bool keepdim,
                                  Interpolation between) const {
  return quantile_at(self(this), q, {"nanquantile", dim, keepdim, true, between});
}
Tensor TensorSorting::nanquantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                                  Interpolation between) const {
  return quantiles(self(this), q, {"nanquantile", dim, keepdim, true, between});
}

}  // namespace tuff

// Functions that store by index: each brings its index to the shape of what is stored, and is a
// Scatter then, or a few.
#include "tensor/scatter.h"

#include <limits>

#include "engine/program/compile_options.h"
#include "ir/scalar_eval.h"
#include "tensor/impl.h"
#include "tensor/indexed.h"
#include "tensor/positions.h"
#include "tensor/scatter_segments.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::overwrite;
using detail::self;
using detail::text;
using detail::uop;
using ir::Named;
using ir::Op;

void use_deterministic_algorithms(bool on) { engine::set_deterministic(on); }
bool are_deterministic_algorithms_enabled() { return engine::is_deterministic(); }

Tensor detail::scattered(const Tensor& target, const Tensor& value, const Tensor& index, int64_t d,
                         Op op, Named named) {
  const DType t = target.dtype();
  const bool rounds = is_float(t) && (op == Op::Add || op == Op::Mul);
  const DType wide = rounds ? accumulator(t) : t;
  const Tensor into = target.cast(wide), given = value.cast(wide);
  return derive(target, ir::scatter(uop(into), uop(given), uop(index), {op, d, named})).cast(t);
}

namespace {

// What is put where: along axis d, in the shape of x but for it, positions from the start.
struct Put {
  Tensor x;
  int64_t d;
  Tensor index, source;
  Tensor shared = {};  // the same along the axis alone, where that is all
  Named named() const { return detail::same(index.size(d), 1) ? Named::Once : Named::Any; }
};

// Where all that is behind the axis shares the index.
bool is_sorted_first(const Put& p, Op op) {
  return op != Op::Assign && p.d == 0 && p.shared.defined() &&
         detail::is_sorted_first(p.x, p.shared.numel());
}

Tensor combined(const Put& p, Op op) {
  if (is_sorted_first(p, op)) {
    const auto rows = [](const Tensor& t) { return t.reshape({1, t.size(0), -1}); };
    return detail::scattered_sorted(rows(p.x), rows(p.source), p.shared.reshape({1, p.shared.numel()}),
                                    op)
        .reshape(p.x.sizes());
  }
  return detail::scattered(p.x, p.source, p.index, p.d, op, p.named());
}

void require_index(const char* what, const Tensor& x, int64_t d, const Tensor& index) {
  detail::require_integers(what, index);
  detail::require_same_device(what, x, index);
  detail::require_inside(detail::on_axis(what, x.size(d), true), index);
}

// Off its axis an index may be smaller than x: there nothing is put.
Tensor widened(const Tensor& t, const Sizes& sizes, int64_t d) {
  Tensor out = t;
  for (int64_t i = 0; i < t.dim(); i++) {
    const Size more = sizes[size_t(i)] - t.size(i);
    if (i != d && !detail::same(more, 0)) out = detail::pad_axis(out, i, 0, more);
  }
  return out;
}

Put elements(const char* what, const Tensor& given, int64_t dim, const Tensor& at,
             const Tensor& value) {
  const int64_t d = detail::wrap_dim(what, dim, std::max<int64_t>(given.dim(), 1));
  const auto with_axis = [](const Tensor& t) { return t.dim() ? t : t.reshape({1}); };
  const Tensor x = with_axis(given), index = with_axis(at), source = with_axis(value);
  detail::require_same_device(what, x, source);
  if (index.dim() != x.dim() || source.dim() != x.dim())
    fail<ShapeError>("{}: index {} and source {} have other ranks than the tensor {}", what,
                     text(index.sizes()), text(source.sizes()), text(x.sizes()));
  std::vector<std::pair<Size, Size>> part;
  for (int64_t i = 0; i < x.dim(); i++) {
    const Size n = index.size(i);
    if ((source.size(i) - n).min() < 0 || (i != d && (x.size(i) - n).min() < 0))
      fail<ShapeError>("{}: index {} is larger than source {} or tensor {} on axis {}", what,
                       text(index.sizes()), text(source.sizes()), text(x.sizes()), i);
    part.emplace_back(0, n);
  }
  require_index(what, x, d, index);
  // 0 is what is put nowhere.
  const Tensor places = widened(detail::from_start(index, x.size(d)) + 1, x.sizes(), d) - 1;
  Put p{x, d, places, widened(source.shrink(part), x.sizes(), d).cast(x.dtype())};
  if (x.dim() == 1) p.shared = places;
  return p;
}

Put rows(const char* what, const Tensor& given, int64_t dim, const Tensor& index,
         const Tensor& source) {
  const int64_t d = detail::wrap_dim(what, dim, std::max<int64_t>(given.dim(), 1));
  const Tensor x = given.dim() ? given : given.reshape({1});
  if (index.dim() > 1)
    fail<ShapeError>("{}: index {} has more than one axis", what, text(index.sizes()));
  detail::require_same_device(what, x, source);
  Sizes sizes = x.sizes(), along(size_t(x.dim()), 1);
  sizes[size_t(d)] = along[size_t(d)] = index.numel();
  const Tensor value = source.dim() ? source : source.reshape({1});
  if (!detail::same(value.sizes(), sizes))
    fail<ShapeError>("{}: a source of {} for {} rows on axis {} of {}", what, text(source.sizes()),
                     index.numel(), d, text(x.sizes()));
  require_index(what, x, d, index);
  const Tensor places = detail::from_start(index.reshape(along), x.size(d));
  return {x, d, places.expand(sizes), value.cast(x.dtype()), places};
}

// As many rows as an index names.
Tensor rows_of(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  const int64_t d = detail::wrap_dim("index_fill", dim, std::max<int64_t>(x.dim(), 1));
  Sizes sizes = x.dim() ? x.sizes() : Sizes{1};
  sizes[size_t(d)] = index.numel();
  if (value.dim() != 0)
    fail<ShapeError>("index_fill: a value of {} instead of one number", text(value.sizes()));
  return value.expand(sizes);
}

Tensor filled(const Tensor& x, const Scalar& v, const Sizes& sizes) {
  const ir::Shape shape = detail::shape_of(sizes);
  return detail::derive(
      x, ir::expand(ir::reshape(ir::constant(v), ir::Shape(shape.size(), ir::Dim(1))), shape));
}

void require_summable(const char* what, const Tensor& x) {
  if (x.dtype() == DType::Bool) fail<InvalidArgument>("{}: bools have no sum: cast() them", what);
}

// Largest becomes least.
Tensor opposite(const Tensor& x) {
  if (is_float(x.dtype())) return x.neg();
  if (x.dtype() == DType::Bool) return x.logical_not();
  return x ^ filled(x, Scalar::of_int(x.dtype(), -1), x.sizes());
}

// Where something comes to x, the element that changes nothing.
Put without_own(Put p, Op op) {
  const Scalar neutral = ir::reduce_identity(op, p.x.dtype());
  p.x = detail::scattered(p.x, filled(p.x, neutral, p.index.sizes()), p.index, p.d, Op::Assign,
                          p.named());
  return p;
}

Tensor mean_of(Put p, bool include_self) {
  const DType t = p.x.dtype(), wide = is_float(t) ? accumulator(t) : t;
  p.x = p.x.cast(wide);
  p.source = p.source.cast(wide);
  Put ones = p;
  ones.x = p.x.full_like(include_self ? 1 : 0);
  ones.source = p.source.full_like(1);
  Tensor count = combined(ones, Op::Add);
  if (!include_self) count = count.maximum(count.full_like(1));
  const Tensor sum = combined(include_self ? p : without_own(p, Op::Add), Op::Add);
  return (is_float(t) ? sum / count : sum.floor_divide(count)).cast(t);
}

Tensor reduced(const char* what, const Put& p, std::string_view by, bool include_self) {
  if (by == "sum" || by == "mean") require_summable(what, p.x);
  if (by == "mean") return mean_of(p, include_self);
  const Op op = by == "sum" ? Op::Add : by == "prod" ? Op::Mul : Op::Max;
  if (by == "amin") {
    const Put other{opposite(p.x), p.d, p.index, opposite(p.source), p.shared};
    return opposite(combined(include_self ? other : without_own(other, op), op));
  }
  if (op == Op::Max && by != "amax")
    fail<InvalidArgument>("{}: reduce is \"{}\", none of sum, prod, mean, amax, amin", what, by);
  return combined(include_self ? p : without_own(p, op), op);
}

Tensor put_or_combined(const Put& p, std::string_view reduce) {
  if (!reduce.empty() && reduce != "add" && reduce != "multiply")
    fail<InvalidArgument>("scatter: reduce is \"{}\", neither add nor multiply", reduce);
  if (reduce == "add") require_summable("scatter", p.x);
  return combined(p, reduce.empty() ? Op::Assign : reduce == "add" ? Op::Add : Op::Mul);
}

}  // namespace

Tensor TensorScatter::scatter(int64_t dim, const Tensor& index, const Tensor& source,
                              std::string_view reduce) const {
  const Tensor& x = self(this);
  return put_or_combined(elements("scatter", x, dim, index, source), reduce).reshape(x.sizes());
}
Tensor TensorScatter::scatter(int64_t dim, const Tensor& index, Number value,
                              std::string_view reduce) const {
  const Tensor& x = self(this);
  const Tensor one = Tensor::full({}, value, {x.dtype(), x.device()});
  return scatter(dim, index, one.expand(index.sizes()), reduce);
}
Tensor TensorScatter::scatter_add(int64_t dim, const Tensor& index, const Tensor& source) const {
  return scatter_reduce(dim, index, source, "sum");
}
Tensor TensorScatter::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& source,
                                     std::string_view reduce, bool include_self) const {
  const Tensor& x = self(this);
  const Put p = elements("scatter_reduce", x, dim, index, source);
  return reduced("scatter_reduce", p, reduce, include_self).reshape(x.sizes());
}
Tensor TensorScatter::index_add(int64_t dim, const Tensor& index, const Tensor& source,
                                Number alpha) const {
  const Tensor& x = self(this);
  require_summable("index_add", x);
  const bool is_one = !alpha.varies() && alpha.value() == 1;
  const Put p = rows("index_add", x, dim, index, is_one ? source : source * alpha);
  return combined(p, Op::Add).reshape(x.sizes());
}
Tensor TensorScatter::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  const Tensor& x = self(this);
  return combined(rows("index_copy", x, dim, index, source), Op::Assign).reshape(x.sizes());
}
Tensor TensorScatter::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const {
  const Tensor& x = self(this);
  const Put p = rows("index_fill", x, dim, index, rows_of(x, dim, index, value));
  return combined(p, Op::Assign).reshape(x.sizes());
}
Tensor TensorScatter::index_fill(int64_t dim, const Tensor& index, Number value) const {
  const Tensor& x = self(this);
  return index_fill(dim, index, Tensor::full({}, value, {x.dtype(), x.device()}));
}
Tensor TensorScatter::index_reduce(int64_t dim, const Tensor& index, const Tensor& source,
                                   std::string_view reduce, bool include_self) const {
  const Tensor& x = self(this);
  const Put p = rows("index_reduce", x, dim, index, source);
  return reduced("index_reduce", p, reduce, include_self).reshape(x.sizes());
}
Tensor TensorScatter::put(const Tensor& index, const Tensor& source, bool accumulate) const {
  const Tensor& x = self(this);
  if (!detail::same(index.numel(), source.numel()))
    fail<ShapeError>("put: {} indices for {} elements", index.numel(), source.numel());
  if (accumulate) require_summable("put", x);
  const Put p = rows("put", x.reshape({x.numel()}), 0, index.reshape({index.numel()}),
                     source.reshape({source.numel()}));
  return combined(p, accumulate ? Op::Add : Op::Assign).reshape(x.sizes());
}
Tensor TensorScatter::masked_scatter(const Tensor& mask, const Tensor& source) const {
  const Tensor& x = self(this);
  if (mask.dtype() != DType::Bool)
    fail<InvalidArgument>("masked_scatter: the mask is {}, not bool", name(mask.dtype()));
  const Tensor here = mask.expand(detail::broadcast_sizes("masked_scatter", mask.sizes(), x.sizes()));
  if (!detail::same(here.sizes(), x.sizes()))
    fail<ShapeError>("masked_scatter: a mask of {} for {}", text(mask.sizes()), text(x.sizes()));
  if (detail::same(x.numel(), 0)) return x;
  const Tensor flat = here.reshape({x.numel()}).cast(detail::position_dtype(x.numel()));
  const Tensor next = detail::rows_at(source.reshape({source.numel()}), 0, flat.cumsum(0) - 1);
  return Tensor::where(here, next.reshape(x.sizes()).cast(x.dtype()), x);
}
Tensor TensorScatter::masked_select(const Tensor& mask) const {
  const Tensor& x = self(this);
  if (mask.dtype() != DType::Bool)
    fail<InvalidArgument>("masked_select: the mask is {}, not bool", name(mask.dtype()));
  Sizes both = detail::broadcast_sizes("masked_select", x.sizes(), mask.sizes());
  if (both.empty()) both.push_back(1);
  return x.expand(both).index({mask.expand(both)});
}
Tensor TensorScatter::take_along_dim(const Tensor& index, std::optional<int64_t> dim) const {
  const Tensor& x = self(this);
  if (!dim) return x.reshape({x.numel()}).gather(0, index.reshape({index.numel()}));
  if (index.dim() != x.dim())
    fail<ShapeError>("take_along_dim: index {} and input {} differ in rank", text(index.sizes()),
                     text(x.sizes()));
  const auto d = size_t(detail::wrap_dim("take_along_dim", *dim, x.dim()));
  Sizes own = x.sizes(), at = index.sizes();
  own[d] = at[d] = 1;
  Sizes both = detail::broadcast_sizes("take_along_dim", own, at), places = both;
  both[d] = x.size(int64_t(d));
  places[d] = index.size(int64_t(d));
  return x.expand(both).gather(int64_t(d), index.expand(places));
}

#define TUFF_IN_PLACE(function, parameters, arguments)                                       \
  Tensor& TensorScatter::function##_ parameters {                                            \
    return overwrite(#function "_", self(this), detail::current(self(this)).function arguments); \
  }
TUFF_IN_PLACE(scatter,
              (int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce),
              (dim, index, source, reduce))
TUFF_IN_PLACE(scatter, (int64_t dim, const Tensor& index, Number value, std::string_view reduce),
              (dim, index, value, reduce))
TUFF_IN_PLACE(scatter_add, (int64_t dim, const Tensor& index, const Tensor& source),
              (dim, index, source))
TUFF_IN_PLACE(scatter_reduce,
              (int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
               bool include_self),
              (dim, index, source, reduce, include_self))
TUFF_IN_PLACE(index_add, (int64_t dim, const Tensor& index, const Tensor& source, Number alpha),
              (dim, index, source, alpha))
TUFF_IN_PLACE(index_copy, (int64_t dim, const Tensor& index, const Tensor& source),
              (dim, index, source))
TUFF_IN_PLACE(index_fill, (int64_t dim, const Tensor& index, Number value), (dim, index, value))
TUFF_IN_PLACE(index_fill, (int64_t dim, const Tensor& index, const Tensor& value),
              (dim, index, value))
TUFF_IN_PLACE(index_reduce,
              (int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
               bool include_self),
              (dim, index, source, reduce, include_self))
TUFF_IN_PLACE(put, (const Tensor& index, const Tensor& source, bool accumulate),
              (index, source, accumulate))
TUFF_IN_PLACE(masked_scatter, (const Tensor& mask, const Tensor& source), (mask, source))
#undef TUFF_IN_PLACE

}  // namespace tuff

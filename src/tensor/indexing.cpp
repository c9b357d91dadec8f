// Indexing with integer tensors, and the triangles. An index is compared with a counter and the
// element summed out of zeros; the scheduler turns that into one load (sched/pick.h).
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/indexed.h"
#include "tensor/positions.h"
#include "tensor/scatter_segments.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::counter;
using detail::derive;
using detail::text;
using detail::uop;
using ir::Op;

namespace detail {

void require_integers(const char* what, const Tensor& index) {
  if (!is_int(index.dtype()))
    fail<InvalidArgument>("{}: indices are {}, not integers", what, name(index.dtype()));
}

Tensor pick(const Tensor& hit, const Tensor& x, const Axes& dims) {
  const Tensor chosen = Tensor::where(hit, x, x.full_like(0));
  const Axes axes = wrap_dims("pick", dims, chosen.dim());
  Sizes left;
  for (int64_t i = 0; i < chosen.dim(); i++) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) left.push_back(chosen.size(i));
  }
  const NoViews computing;
  // One summand at most is not 0: the element's own dtype holds the sum.
  return derive(x, ir::reduce(Op::Add, uop(chosen), axes)).reshape(left);
}

}  // namespace detail

namespace {

// Wide enough for the index and the extent: narrow integers cannot count to every extent.
Tensor as_positions(const Tensor& index, const Size& n) {
  const DType wanted = detail::position_dtype(n);
  return size_bytes(index.dtype()) < size_bytes(wanted) ? index.cast(wanted) : index;
}

// index == 0..n-1 along a new last axis.
Tensor hits(const Tensor& index, const Size& n) {
  const Tensor at = as_positions(index, n).unsqueeze(-1);
  // Counted in the index's own dtype: a comparison with a counter that is cast is no pick.
  ir::Shape along(size_t(at.dim()), ir::Dim(1));
  along.back() = detail::dim_of(n);
  const ir::UOp count = ir::reshape(ir::iota(along.back(), at.dtype()), along);
  return at == detail::wrap(count, index.device());
}

}  // namespace

Tensor detail::from_start(const Tensor& index, const Size& n) {
  const Tensor at = as_positions(index, n);
  const DType t = detail::position_dtype(n);
  if (is_unsigned(at.dtype())) return Tensor::where(at < n, at.cast(t), -1);
  return Tensor::where((at >= 0 - n) & (at < n), Tensor::where(at < 0, at + n, at), -1).cast(t);
}

detail::Places detail::places_of(const Tensor& x, const std::vector<Tensor>& at, int64_t first) {
  const Sizes own = x.sizes();
  Sizes out = at[0].sizes();
  for (const Tensor& i : at) out = broadcast_sizes("index", out, i.sizes());
  const auto k = size_t(at.size()), from = size_t(first);
  Places p;
  Tensor valid;
  const std::span<const Size> extents(own);
  const DType t = position_dtype(product(extents.subspan(from, k)));
  for (size_t i = 0; i < k; i++) {
    const Size n = own[from + i];
    const Tensor here = from_start(at[i], n).cast(t), inside = here >= 0;
    p.linear = p.linear.defined() ? p.linear * n + here : here;
    valid = valid.defined() ? valid & inside : inside;
    p.extent *= n;
  }
  if (k > 1) p.linear = Tensor::where(valid, p.linear, -1);
  p.linear = p.linear.expand(out);
  p.count = p.linear.numel();
  p.before = product(extents.first(from));
  p.after = product(extents.subspan(from + k));
  p.sizes.assign(own.begin(), own.begin() + first);
  p.sizes.insert(p.sizes.end(), out.begin(), out.end());
  p.sizes.insert(p.sizes.end(), own.begin() + first + int64_t(k), own.end());
  return p;
}

namespace {

// Source axes `first`, `first`+1, ... replaced by the axes of the broadcast indices.
Tensor picked(const Tensor& x, const std::vector<Tensor>& at, int64_t first) {
  const detail::Places p = detail::places_of(x, at, first);
  const Tensor hit = hits(p.linear.reshape({p.count}), p.extent).reshape({1, p.count, p.extent, 1});
  Tensor flat = detail::pick(hit, x.reshape({p.before, 1, p.extent, p.after}), {2});
  if (detail::same(p.before, 1))
    flat = detail::picked_rows(flat, x.reshape({p.extent, p.after}), p.linear.reshape({p.count}));
  return flat.reshape(p.sizes);
}

// How many axes of the source a piece stands for.
int64_t axes_of(const Index& index) {
  const Tensor* t = std::get_if<Tensor>(&index.value());
  return t && t->dtype() == DType::Bool ? t->dim() : 1;
}

}  // namespace

int64_t detail::consumed_axes(const std::vector<Index>& indices) {
  int64_t n = 0;
  bool open = false;
  for (const Index& i : indices) {
    if (std::holds_alternative<indexing::EllipsisType>(i.value())) {
      if (open) fail<InvalidArgument>("index: more than one ellipsis");
      open = true;
    } else if (!std::holds_alternative<indexing::NoneType>(i.value())) {
      n += axes_of(i);
    }
  }
  return n;
}

namespace {

// Axes from `d` on of what is indexed: one per integer tensor, those of a mask in its place.
void add_index_tensor(const char* what, const Tensor& at, int64_t& d, detail::Indexed& r) {
  detail::require_same_device(what, r.x, at);
  if (at.dtype() != DType::Bool) {
    detail::require_integers(what, at);
    detail::require_inside(detail::on_axis(what, r.x.size(d), true), at);
    r.at.push_back(at);
    r.axes.push_back(d++);
    return;
  }
  detail::require_mask(what, r.x, d, at);
  const Tensor positions = at.nonzero();
  for (int64_t i = 0; i < at.dim(); i++) {
    r.at.push_back(positions.select(1, i));
    r.axes.push_back(d++);
  }
}

}  // namespace

bool detail::positions_apart(const std::vector<Index>& indices) {
  const auto position = [](const Index& i) {
    return std::holds_alternative<int64_t>(i.value()) || std::holds_alternative<Tensor>(i.value());
  };
  const auto first = std::ranges::find_if(indices, position);
  const auto last = std::find_if(indices.rbegin(), indices.rend(), position).base();
  return first < last && !std::all_of(first, last, position);
}

detail::Indexed detail::apply_basic(const char* what, const Tensor& source,
                                    const std::vector<Index>& indices) {
  const int64_t consumed = consumed_axes(indices);
  if (consumed > source.dim())
    fail<IndexError>("index: {} indices for a tensor {} of {} axes", consumed, text(source.sizes()),
                     source.dim());
  Indexed r{source, {}, {}, positions_apart(indices)};
  int64_t d = 0;
  for (const Index& index : indices) {
    const Index::Value& v = index.value();
    if (const int64_t* i = std::get_if<int64_t>(&v)) {
      const Size n = r.x.size(d);
      if ((n + *i).min() < 0 || (n - *i).min() < 1)
        fail<IndexError>("index: {} is outside axis {} of {}", *i, d, text(r.x.sizes()));
      r.x = r.x.select(d, *i);
    } else if (const auto* s = std::get_if<indexing::Slice>(&v)) {
      r.x = r.x.slice(d++, s->start, s->stop, s->step);
    } else if (std::holds_alternative<indexing::NoneType>(v)) {
      r.x = r.x.unsqueeze(d++);
    } else if (std::holds_alternative<indexing::EllipsisType>(v)) {
      d += source.dim() - consumed;
    } else {
      add_index_tensor(what, std::get<Tensor>(v), d, r);
    }
  }
  return r;
}

detail::Neighbours detail::side_by_side(const Indexed& r) {
  Neighbours n;
  if (!r.in_front) {
    n.order.resize(size_t(r.x.dim()));
    std::iota(n.order.begin(), n.order.end(), 0);
    n.first = r.axes.front();
    return n;
  }
  n.order = r.axes;
  for (int64_t i = 0; i < r.x.dim(); i++) {
    if (!std::binary_search(r.axes.begin(), r.axes.end(), i)) n.order.push_back(i);
  }
  return n;
}

Tensor Tensor::index(const std::vector<Index>& indices) const {
  const detail::Indexed r = detail::apply_basic("index", *this, indices);
  if (r.at.empty()) return r.x;
  const detail::Neighbours n = detail::side_by_side(r);
  return picked(std::ranges::is_sorted(n.order) ? r.x : r.x.permute(n.order), r.at, n.first);
}

Tensor Tensor::take(const Tensor& index) const {
  detail::require_integers("take", index);
  detail::require_same_device("take", *this, index);
  detail::require_inside(detail::on_axis("take", numel(), true), index);
  return picked(reshape({numel()}), {index}, 0);
}

Tensor Tensor::index_select(int64_t d, const Tensor& index) const {
  d = detail::wrap_dim("index_select", d, dim());
  detail::require_integers("index_select", index);
  detail::require_same_device("index_select", *this, index);
  if (index.dim() > 1)
    fail<ShapeError>("index_select: index {} has more than one axis", text(index.sizes()));
  detail::require_inside(detail::on_axis("index_select", size(d), true), index);
  return detail::rows_at(*this, d, detail::from_start(index, size(d)));
}

Tensor detail::rows_at(const Tensor& x, int64_t d, const Tensor& index) {
  const Tensor at = index.reshape({index.numel()});
  Sizes along(size_t(x.dim() + 1), 1);
  along[size_t(d)] = index.numel();
  along[size_t(d) + 1] = x.size(d);
  const Tensor rows = pick(hits(at, x.size(d)).reshape(along), x.unsqueeze(d), {d + 1});
  return d == 0 ? picked_rows(rows, x, at) : rows;
}

Tensor Tensor::one_hot(int64_t classes) const {
  detail::require_integers("one_hot", *this);
  if (classes < 1) fail<InvalidArgument>("one_hot: {} classes", classes);
  detail::require_inside({"one_hot", 0, classes, "class"}, *this);
  return hits(*this, classes).cast(DType::I32);
}

Tensor Tensor::gather(int64_t d, const Tensor& index) const {
  d = detail::wrap_dim("gather", d, dim());
  detail::require_integers("gather", index);
  detail::require_same_device("gather", *this, index);
  if (index.dim() != dim())
    fail<ShapeError>("gather: index {} and input {} differ in rank", text(index.sizes()),
                     text(sizes()));
  std::vector<std::pair<Size, Size>> parts;
  for (int64_t i = 0; i < dim(); i++) {
    if (i != d && (size(i) - index.size(i)).min() < 0)
      fail<ShapeError>("gather: index {} is larger than input {} on axis {}", text(index.sizes()),
                       text(sizes()), i);
    parts.emplace_back(0, i == d ? size(i) : index.size(i));
  }
  detail::require_inside(detail::on_axis("gather", size(d), true), index);
  if (dim() == 1) return detail::rows_at(*this, 0, detail::from_start(index, size(0)));
  // (..., index axis, ..., source axis): the source axis is chosen by comparison and summed away.
  const Tensor moved = shrink(parts).unsqueeze(-1).transpose(d, -1);
  return detail::pick(hits(detail::from_start(index, size(d)), size(d)), moved, {-1});
}

Tensor Tensor::embedding(const Tensor& weight, const Tensor& index) {
  if (weight.dim() != 2)
    fail<ShapeError>("embedding: weight {} must have 2 axes", text(weight.sizes()));
  detail::require_integers("embedding", index);
  detail::require_same_device("embedding", weight, index);
  detail::require_inside(detail::on_axis("embedding", weight.size(0)), index);
  const detail::NoViews computing;
  const Tensor hit = hits(index, weight.size(0));                     // (..., V)
  const Tensor rows = detail::pick(hit.unsqueeze(-1), weight, {-2});  // (..., V, C) -> (..., C)
  return detail::picked_rows(rows, weight, index.reshape({index.numel()}));
}

namespace {

// Column minus row of the last two axes.
Tensor diagonal_number(const char* what, const Tensor& x) {
  if (x.dim() < 2) fail<ShapeError>("{}: {} has fewer than 2 axes", what, text(x.sizes()));
  return counter(x.size(-1), 1, 2, x.device()) - counter(x.size(-2), 0, 2, x.device());
}

}  // namespace

Tensor Tensor::tril(int64_t diagonal) const {
  return where(diagonal_number("tril", *this) <= diagonal, *this, full_like(0));
}
Tensor Tensor::triu(int64_t diagonal) const {
  return where(diagonal_number("triu", *this) >= diagonal, *this, full_like(0));
}

}  // namespace tuff

// index_put(): what indices pick, replaced. The value goes the way back that index() came: to the
// places of integer tensors, then through slices, numbers and new axes to the range of each axis
// that is stored.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "engine/realize/capture.h"
#include "tensor/impl.h"
#include "tensor/indexed.h"
#include "tensor/scatter.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::counter;
using detail::PutPart;
using detail::text;
using detail::uop;

namespace {

// What a number or a slice takes of an axis: `count` elements from `low`, `step` > 0 apart.
struct AxisSlice {
  Size low = 0, count = 0;
  int64_t step = 1;
  bool reversed = false;
  bool spread() const { return step > 1 && count.max() > 1; }
  // From the first of them to the last.
  Size extent() const { return spread() ? (count - 1) * step + 1 : count; }
};

AxisSlice slice_of(const indexing::Slice& s, int64_t n) {
  const int64_t low = s.step > 0 ? 0 : -1, high = s.step > 0 ? n : n - 1;
  const auto bound = [&](const Size& v) {
    return detail::clamped(v.max() < 0 ? v + n : v, low, high);
  };
  const Size from = s.start      ? bound(*s.start)
                    : s.step > 0 ? Size(0)
                                 : Size(n - 1),
             to = s.stop       ? bound(*s.stop)
                  : s.step > 0 ? Size(n)
                               : Size(-1);
  AxisSlice p;
  // One that leads out of the axis takes one element, however long it is.
  p.step = std::min(std::abs(std::max(s.step, -INT64_MAX)), std::max<int64_t>(n, 1));
  p.reversed = s.step < 0;
  const Size span = p.reversed ? from - to : to - from;
  p.count = !span.is_number() ? span : span > 0 ? (span + p.step - 1) / p.step : Size(0);
  p.low = p.reversed ? from - (p.count - 1) * p.step : from;
  return p;
}

// Axis by axis of x what numbers and slices take of it; all of the axes of tensors.
std::vector<AxisSlice> slices_of(const Tensor& x, const std::vector<Index>& indices,
                                 int64_t consumed) {
  std::vector<AxisSlice> parts;
  const auto extent = [&] { return int64_t(x.size(int64_t(parts.size()))); };
  const auto add_whole = [&](int64_t axes) {
    for (int64_t i = 0; i < axes; i++) parts.push_back({.count = extent()});
  };
  for (const Index& index : indices) {
    const Index::Value& v = index.value();
    if (const int64_t* i = std::get_if<int64_t>(&v))
      parts.push_back({.low = *i < 0 ? *i + extent() : *i, .count = 1});
    else if (const auto* s = std::get_if<indexing::Slice>(&v))
      parts.push_back(slice_of(*s, extent()));
    else if (std::holds_alternative<indexing::EllipsisType>(v))
      add_whole(x.dim() - consumed);
    else if (const Tensor* t = std::get_if<Tensor>(&v))
      add_whole(t->dtype() == DType::Bool ? t->dim() : 1);
  }
  add_whole(x.dim() - int64_t(parts.size()));
  return parts;
}

// The region, which has an axis for each of x, as it lies in x: between elements that a step leaves
// out, those of x.
PutPart put_back(const Tensor& x, Tensor region, const std::vector<AxisSlice>& parts) {
  PutPart out;
  Tensor inside;
  for (const AxisSlice& p : parts) out.ranges.emplace_back(p.low, p.low + p.extent());
  for (int64_t d = x.dim(); d-- > 0;) {
    const AxisSlice& p = parts[size_t(d)];
    if (p.reversed) region = region.flip({d});
    if (!p.spread()) continue;
    region = detail::spread(region, d, p.step);
    const Tensor here = counter(p.extent(), d, x.dim(), x.device()) % p.step == 0;
    inside = inside.defined() ? inside & here : here;
  }
  out.value = inside.defined() ? Tensor::where(inside, region, x.shrink(out.ranges)) : region;
  return out;
}

Tensor fitted(const Tensor& value, const Sizes& sizes) {
  const Sizes own = value.sizes();
  // Axes of one element in front are dropped, as in NumPy.
  const size_t extra = own.size() > sizes.size() ? own.size() - sizes.size() : 0;
  for (size_t i = 0; i < own.size(); i++) {
    const bool is_one = detail::same(own[i], 1);
    if (!is_one && (i < extra || !detail::same(own[i], sizes[sizes.size() + i - own.size()])))
      fail<ShapeError>("index_put: a value of {} for {} picked elements", text(own), text(sizes));
  }
  return value.reshape(Sizes(own.begin() + ptrdiff_t(extra), own.end())).expand(sizes);
}

// The value at the places that integer tensors name, the last of equal ones, or all of them added
// to what is there.
Tensor put_at_places(const detail::Indexed& r, const Tensor& value, bool accumulate,
                     ir::Named named) {
  const detail::Neighbours n = detail::side_by_side(r);
  const Tensor x = r.x.permute(n.order);
  const detail::Places p = detail::places_of(x, r.at, n.first);
  const Tensor given = fitted(value, p.sizes);
  if (p.count == 0 || r.x.numel() == 0) return r.x;
  const Sizes stored{p.before, p.count, p.after};
  const Tensor place = p.linear.reshape({1, p.count, 1}).expand(stored);
  const Tensor old = x.reshape({p.before, p.extent, p.after});
  const Tensor out = detail::scattered(old, given.reshape(stored), place, 1,
                                       accumulate ? ir::Op::Add : ir::Op::Assign, named)
                         .reshape(x.sizes());
  Axes back(n.order.size());
  for (size_t i = 0; i < back.size(); i++) back[size_t(n.order[i])] = int64_t(i);
  return out.permute(back);
}

// One mask and nothing else that picks, and where it begins among the axes of what the rest picks.
struct OneMask {
  Tensor mask;
  int64_t axis = 0;
  std::vector<Index> others;  // with whole slices in its place
};
std::optional<OneMask> one_mask(const Tensor& x, const std::vector<Index>& indices,
                                int64_t consumed) {
  OneMask out;
  int64_t d = 0;
  for (const Index& i : indices) {
    const Tensor* t = std::get_if<Tensor>(&i.value());
    if (t && (out.mask.defined() || t->dtype() != DType::Bool)) return {};
    if (t) {
      out.mask = *t;
      out.axis = d;
      out.others.insert(out.others.end(), size_t(t->dim()), Index(indexing::Slice{}));
      continue;
    }
    out.others.push_back(i);
    if (std::holds_alternative<indexing::EllipsisType>(i.value()))
      d += x.dim() - consumed;
    else if (!std::holds_alternative<int64_t>(i.value()))
      d++;
  }
  if (!out.mask.defined()) return {};
  return out;
}

// Where a value is the same for all that a mask picks, their number is not needed.
std::optional<Tensor> put_under_mask(const Tensor& region, const OneMask& m, const Tensor& value,
                                     bool accumulate) {
  detail::require_mask("index_put", region, m.axis, m.mask);
  const int64_t k = m.mask.dim(), behind = region.dim() - m.axis - k;
  const int64_t along = value.dim() - behind - 1;  // the value's axis of picked elements
  Sizes sizes = value.sizes();
  if (along >= 0) {
    if (sizes[size_t(along)] != 1) return {};
    sizes.insert(sizes.begin() + along, size_t(k - 1), 1);
  }
  Sizes mask_sizes = m.mask.sizes();
  mask_sizes.insert(mask_sizes.end(), size_t(behind), 1);
  const Tensor wide = fitted(value.reshape(sizes), region.sizes());
  return Tensor::where(m.mask.reshape(mask_sizes), accumulate ? region + wide : wide, region);
}

}  // namespace

Tensor detail::spread(const Tensor& t, int64_t d, int64_t step) {
  const Tensor rows = pad_axis(t.unsqueeze(d + 1), d + 1, 0, step - 1);
  return rows.flatten(d, d + 1).slice(d, 0, (t.size(d) - 1) * step + 1);
}

void detail::require_mask(const char* what, const Tensor& x, int64_t d, const Tensor& mask) {
  if (mask.dim() == 0)
    fail<InvalidArgument>("{}: a mask without axes: use where(), or None for a new axis", what);
  require_same_device(what, x, mask);
  const Sizes own = x.sizes(), wanted = mask.sizes();
  if (!same(Sizes(own.begin() + d, own.begin() + d + mask.dim()), wanted))
    fail<ShapeError>("{}: a mask of {} on the axes from {} of {}", what, text(wanted), d,
                     text(own));
}

Tensor Tensor::nonzero() const {
  if (engine::Capture::current())
    fail<InvalidArgument>(
        "nonzero: how many elements a mask picks depends on data, which a captured graph replays "
        "as it was: use where() or masked_fill() inside a Jit");
  const std::vector<int64_t> extents = sizes();
  if (std::ranges::any_of(extents, [](int64_t n) { return n > INT32_MAX; }))
    fail<Unsupported>("nonzero: {} has an axis of more than 2^31 - 1 elements", text(sizes()));
  const std::vector<bool> hit = (*this != 0).to_vector<bool>();
  std::vector<int32_t> positions;
  int64_t count = 0;
  for (size_t i = 0; i < hit.size(); i++) {
    if (!hit[i]) continue;
    count++;
    size_t rest = i;
    const size_t begin = positions.size();
    positions.resize(begin + extents.size());
    for (size_t d = extents.size(); d-- > 0; rest /= size_t(extents[d]))
      positions[begin + d] = int32_t(rest % size_t(extents[d]));
  }
  return from(positions, {count, dim()}, {.device = device()});
}

namespace {

// Nothing where indices pick nothing, or what is put is what is there: x[0] += 1 puts x[0] back.
std::optional<PutPart> part_to_put(const Tensor& x, const std::vector<Index>& indices,
                                   const Tensor& given, bool accumulate) {
  if (accumulate && x.dtype() == DType::Bool)
    fail<InvalidArgument>("index_put: bools have no sum: cast() them");
  detail::require_numbers("index_put", x.sizes());
  detail::require_same_device("index_put", x, given);
  const Tensor value = given.cast(x.dtype());
  const int64_t consumed = detail::consumed_axes(indices);
  const std::optional<OneMask> m = one_mask(x, indices, consumed);
  const bool moved = m && m->axis > 0 && value.dim() > 0 && detail::positions_apart(indices);
  if (m && !moved) {
    const Tensor region = detail::apply_basic("index_put", x, m->others).x;
    if (const std::optional<Tensor> put = put_under_mask(region, *m, value, accumulate))
      return part_to_put(x, m->others, *put, false);
  }
  const detail::Indexed r = detail::apply_basic("index_put", x, indices);
  if (r.at.empty() && !accumulate && uop(r.x) == uop(value)) return {};
  const std::vector<AxisSlice> parts = slices_of(x, indices, consumed);
  if (r.x.numel().max() == 0) {
    if (r.at.empty())
      fitted(value, r.x.sizes());
    else
      put_at_places(r, value, accumulate, ir::Named::Any);  // refuses a value that does not fit
    return {};
  }
  // A mask alone names no element twice.
  const ir::Named named = m ? ir::Named::Once : ir::Named::Any;
  Tensor region = r.at.empty() ? fitted(value, r.x.sizes())
                               : put_at_places(r, value, accumulate, named);
  if (accumulate && r.at.empty()) region = r.x + region;
  Sizes whole;
  for (const AxisSlice& p : parts) whole.push_back(p.count);
  return put_back(x, region.reshape(whole), parts);
}

}  // namespace

ir::Pairs detail::pairs_of(const std::vector<std::pair<Size, Size>>& ranges) {
  ir::Pairs out;
  for (const auto& [begin, end] : ranges) out.push_back({dim_of(begin), dim_of(end)});
  return out;
}

Tensor Tensor::index_put(const std::vector<Index>& indices, const Tensor& value,
                         bool accumulate) const {
  const std::optional<PutPart> p = part_to_put(*this, indices, value, accumulate);
  if (!p) return detail::no_view(*this);
  return detail::derive(*this, ir::put(uop(*this), detail::pairs_of(p->ranges), uop(p->value)));
}

Tensor Tensor::index_put(const std::vector<Index>& indices, Number value, bool accumulate) const {
  return index_put(indices, full({}, value, {dtype(), device()}), accumulate);
}

namespace {

// What a Jit's function finds is state, which replays keep in memory.
bool is_in_memory(const Tensor& x) {
  const bool is_state =
      detail::function_call != 0 && x.impl()->made_in != detail::function_call;
  return is_state || detail::assign_target(x);
}

}  // namespace

void detail::replace(Tensor& x, const Tensor& changed) {
  ir::UOp before;  // goes when others may build
  const ReplaceGuard alone;
  const ir::UOp after = uop(changed);  // may be the tensor itself
  before = std::exchange(x.impl()->uop, after);
}

void detail::put_here(const char* what, Tensor& x, const PutPart& part) {
  require_numbers(what, x.sizes());
  if (!is_in_memory(x)) {
    // What it is built of is let go before it is replaced.
    const Tensor changed = derive(x, ir::put(uop(x), pairs_of(part.ranges), uop(part.value)));
    replace(x, changed);
  } else if (same(part.value.sizes(), x.sizes())) {
    store(x, part.value);
  } else {
    store_part(x, pairs_of(part.ranges), part.value);
  }
}

Tensor& detail::overwrite(const char* what, Tensor& x, const Tensor& value) {
  require_no_gradient(what, x, "compute with a new tensor, or hold a NoGradGuard to write it");
  require_same_device(what, x, value);
  if (value.dtype() != x.dtype())
    fail<InvalidArgument>("{}: {} does not hold the result, which is {}: x = x + y makes a tensor "
                          "of its own",
                          what, name(x.dtype()), name(value.dtype()));
  const Sizes sizes = x.sizes();
  if (!same(broadcast_sizes(what, value.sizes(), sizes), sizes))
    fail<ShapeError>("{}: {} does not hold the result, which is {}", what, text(sizes),
                     text(value.sizes()));
  const Tensor whole = value.expand(sizes);
  if (is_view(x))
    put_in_place(what, x, whole);
  else if (is_in_memory(x))
    store(x, whole);
  else
    replace(x, whole);
  return x;
}

Tensor& Tensor::index_put_(const std::vector<Index>& indices, const Tensor& value,
                           bool accumulate) {
  detail::require_no_gradient("index_put_", *this,
                              "use index_put(), or hold a NoGradGuard to write it");
  std::optional<PutPart> p = part_to_put(detail::current(*this), indices, value, accumulate);
  if (p) detail::put_in_place("index_put_", *this, std::move(*p));
  return *this;
}

Tensor& Tensor::index_put_(const std::vector<Index>& indices, Number value, bool accumulate) {
  return index_put_(indices, full({}, value, {dtype(), device()}), accumulate);
}

}  // namespace tuff

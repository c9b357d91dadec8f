#include "tensor/view_link.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/arith.h"
#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/shards.h"

namespace tuff::detail {
namespace {

using ir::Op;
using ir::UOp;
using Kind = Movement::Kind;
using Range = std::pair<Size, Size>;
using Ranges = std::vector<Range>;

// So many links are made before those that lead nowhere any more are looked for.
constexpr uint32_t kLinksUntilShortened = 16;

UOp expanded(const UOp& x, const ir::Shape& shape) {
  ir::Shape own(shape.size() - x->shape.size(), ir::Dim(1));
  own.insert(own.end(), x->shape.begin(), x->shape.end());
  return ir::expand(ir::reshape(x, own), shape);
}

UOp moved(const Movement& m, const UOp& x) {
  switch (m.kind) {
    case Kind::Detach: return ir::make(Op::Detach, x->dtype, {x});
    case Kind::Reshape: return ir::reshape(x, std::get<ir::Shape>(m.arg));
    case Kind::Permute: return ir::permute(x, std::get<ir::IntVec>(m.arg));
    case Kind::Flip: return ir::flip(x, std::get<ir::IntVec>(m.arg));
    case Kind::Shrink: return ir::shrink(x, std::get<ir::Pairs>(m.arg));
    case Kind::Stride: {
      const ir::IntVec& by = std::get<ir::IntVec>(m.arg);
      return stride_of(x, by[0], by[1]);
    }
    case Kind::Expand: return expanded(x, std::get<ir::Shape>(m.arg));
  }
  return x;
}

// Both as one, where that is a movement of the same kind.
std::optional<Movement> merged(const Movement& first, const Movement& second) {
  if (first.kind != second.kind) return {};
  const bool detached = first.detached || second.detached;
  switch (first.kind) {
    case Kind::Detach:
    case Kind::Reshape: return Movement{second.kind, second.arg, detached};
    case Kind::Permute: {
      ir::IntVec axes;
      for (const int64_t a : std::get<ir::IntVec>(second.arg))
        axes.push_back(std::get<ir::IntVec>(first.arg)[size_t(a)]);
      return Movement{Kind::Permute, std::move(axes), detached};
    }
    case Kind::Shrink: {
      ir::Pairs pairs = std::get<ir::Pairs>(second.arg);
      const ir::Pairs& outer = std::get<ir::Pairs>(first.arg);
      for (size_t i = 0; i < pairs.size(); i++)
        pairs[i] = {outer[i].a + pairs[i].a, outer[i].a + pairs[i].b};
      return Movement{Kind::Shrink, std::move(pairs), detached};
    }
    default: return {};
  }
}

// From the oldest tensor that is still there to a view of it.
struct Path {
  std::vector<Tensor> at;             // undefined where one has gone; the last is the view
  std::vector<const Movement*> moves;  // from each of them to the next
  bool empty() const { return moves.empty(); }
  const Tensor& root() const { return at.front(); }
};

// The links from a view on, and the tensors that they lead to.
struct Links {
  explicit Links(const ViewLink* first) {
    std::vector<Weak> tensors;
    for (const ViewLink* l = first; l != nullptr; l = l->before.get()) {
      links.push_back(l);
      tensors.push_back({l->of, l->of_number});
    }
    of = those_alive(tensors);
    while (!of.empty() && !of.back().defined()) {
      of.pop_back();
      links.pop_back();
    }
  }
  std::vector<const ViewLink*> links;
  std::vector<Tensor> of;
};

Path path_to(const Tensor& view) {
  Path path;
  if (!view.impl()->viewed) return path;
  Links l(view.impl()->viewed.get());
  // One that was moved to another device, or converted, is another tensor since.
  for (size_t i = 0; i < l.of.size(); i++) {
    const Tensor& t = l.of[i];
    if (!t.defined() || (t.device() == view.device() && t.dtype() == view.dtype())) continue;
    while (i > 0 && !l.of[i - 1].defined()) i--;
    l.of.resize(i);
    l.links.resize(i);
  }
  if (l.of.empty()) {
    view.impl()->viewed = {};
    return path;
  }
  for (size_t i = l.of.size(); i-- > 0;) {
    path.at.push_back(l.of[i]);
    path.moves.push_back(&l.links[i]->movement);
  }
  path.at.push_back(view);
  return path;
}

Tensor moved(const Movement& m, const Tensor& x) {
  return wrap(m.of(uop(x)), x.impl()->device);
}

// What the tensors of a path are now.
std::vector<Tensor> taken_again(const Path& path) {
  std::vector<Tensor> out{path.root()};
  for (const Movement* m : path.moves) out.push_back(moved(*m, out.back()));
  return out;
}

Ranges whole(const Sizes& sizes) {
  Ranges out;
  for (const Size& n : sizes) out.emplace_back(0, n);
  return out;
}
Size count(const Range& r) { return r.second - r.first; }
bool is_whole(const Range& r, const Size& extent) {
  return same(r.first, 0) && same(r.second, extent);
}

// More of the tensor: what is around the part as the tensor has it.
PutPart widened(const Tensor& x, const PutPart& part, const Ranges& wider) {
  Ranges inside;
  for (size_t i = 0; i < wider.size(); i++)
    inside.emplace_back(part.ranges[i].first - wider[i].first,
                        part.ranges[i].second - wider[i].first);
  const Tensor around = x.shrink(wider);
  return {wider, derive(x, ir::put(uop(around), pairs_of(inside), uop(part.value)))};
}

// ---- a part of a reshaped tensor. Axes side by side become others of as many elements.

struct Group {
  size_t from = 0, from_end = 0, to = 0, to_end = 0;
};

// The fewest axes that have as many elements on both sides; extents that vary are alike or, with
// all that follows, one group.
Group next_group(const Sizes& from, const Sizes& to, size_t i, size_t o) {
  Group g{i, i, o, o};
  const bool one_from = i < from.size() && same(from[i], 1);
  const bool one_to = o < to.size() && same(to[o], 1);
  const auto rest = [&] { return Group{i, from.size(), o, to.size()}; };
  if (one_from || one_to) {
    g.from_end += one_from;
    g.to_end += one_to;
    return g;
  }
  if (i == from.size() || o == to.size()) return rest();
  g.from_end++;
  g.to_end++;
  if (same(from[i], to[o])) return g;
  Size a = from[i], b = to[o];
  while (a.is_number() && b.is_number() && !same(a, b)) {
    const bool more_from = a < b;
    if (more_from ? g.from_end == from.size() : g.to_end == to.size()) return rest();
    if (more_from)
      a *= from[g.from_end++];
    else
      b *= to[g.to_end++];
  }
  return a.is_number() && b.is_number() ? g : rest();
}

std::vector<Group> groups_of(const Sizes& from, const Sizes& to) {
  std::vector<Group> out;
  for (size_t i = 0, o = 0; i < from.size() || o < to.size();) {
    out.push_back(next_group(from, to, i, o));
    i = out.back().from_end;
    o = out.back().to_end;
  }
  return out;
}

// Ranges of axes as one of the elements in row-major order, if it is one.
std::optional<Range> as_run(std::span<const Size> extents, std::span<const Range> ranges) {
  Size low = 0, n = 1;
  bool several = false;
  for (size_t i = 0; i < extents.size(); i++) {
    if (several && !is_whole(ranges[i], extents[i])) return {};
    several |= !same(count(ranges[i]), 1);
    low = low * extents[i] + ranges[i].first;
    n = n * count(ranges[i]);
  }
  return Range(low, low + n);
}

bool divides(const Size& n, const Size& by) {
  return n.min() >= 0 && same(n % by, 0);
}

// The same elements as ranges of axes, if they are.
std::optional<Ranges> as_ranges(Range run, std::span<const Size> extents) {
  Ranges out;
  for (size_t i = 0; i < extents.size(); i++) {
    const Size row = product(extents.subspan(i + 1));
    const bool all = same(run.first, 0) && same(run.second, extents[i] * row);
    const bool rows =
        !all && row.is_number() && divides(run.first, row) && divides(count(run), row);
    if (all || rows) {
      out.push_back(all ? Range(0, extents[i]) : Range(run.first / row, run.second / row));
      for (size_t k = i + 1; k < extents.size(); k++) out.emplace_back(0, extents[k]);
      return out;
    }
    if (!row.is_number() || !run.first.is_number() || !run.second.is_number()) return {};
    const Size at = run.first / row;
    if (!same(at, (run.second - 1) / row)) return {};
    out.emplace_back(at, at + 1);
    run = {run.first - at * row, run.second - at * row};
  }
  return out;
}

// Ranges that are ranges of the other axes too, around these.
Ranges wider(std::span<const Size> from, std::span<const Size> to, std::span<const Range> ranges) {
  Ranges out;
  for (const Size& n : to) out.emplace_back(0, n);
  if (to.size() != 1 || from.empty() || !count(ranges[0]).is_number()) return out;
  const Size row = product(from.subspan(1));
  if (ranges[0].first.is_number() && row.is_number())
    out[0] = {ranges[0].first / row * row, (ranges[0].second + row - 1) / row * row};
  return out;
}

PutPart before_reshape(const Sizes& from, const Tensor& view, const PutPart& part) {
  const Sizes to = view.sizes();
  const std::span<const Size> from_extents(from), to_extents(to);
  Ranges back, around = part.ranges;
  bool fits = true;
  for (const Group& g : groups_of(from, to)) {
    const auto outer = from_extents.subspan(g.from, g.from_end - g.from);
    const auto inner = to_extents.subspan(g.to, g.to_end - g.to);
    const auto ranges = std::span<const Range>(part.ranges).subspan(g.to, inner.size());
    std::optional<Ranges> mapped;
    if (const std::optional<Range> run = as_run(inner, ranges)) mapped = as_ranges(*run, outer);
    if (std::equal(ranges.begin(), ranges.end(), inner.begin(), is_whole)) {
      mapped.emplace();
      for (const Size& n : outer) mapped->emplace_back(0, n);
    }
    if (mapped) {
      back.insert(back.end(), mapped->begin(), mapped->end());
      continue;
    }
    fits = false;
    std::ranges::copy(wider(outer, inner, ranges), around.begin() + ptrdiff_t(g.to));
  }
  if (!fits) return before_reshape(from, view, widened(view, part, around));
  Sizes extents;
  for (const Range& r : back) extents.push_back(count(r));
  return {back, part.value.reshape(extents)};
}

// ---- other movements

PutPart before_stride(const ir::IntVec& by, const Tensor& source, PutPart part) {
  const int64_t d = by[0], step = by[1];
  Range& r = part.ranges[size_t(d)];
  const Size n = count(r);
  r = {r.first * step, (r.second - 1) * step + 1};
  if (step == 1 || same(n, 1)) return part;
  const Tensor inside =
      counter(count(r), d, source.dim(), source.impl()->device) % step == 0;
  part.value = Tensor::where(inside, spread(part.value, d, step), source.shrink(part.ranges));
  return part;
}

PutPart before_permute(const ir::IntVec& axes, const PutPart& part) {
  PutPart out;
  out.ranges.resize(axes.size());
  Axes back(axes.size());
  for (size_t i = 0; i < axes.size(); i++) {
    out.ranges[size_t(axes[i])] = part.ranges[i];
    back[size_t(axes[i])] = int64_t(i);
  }
  out.value = part.value.permute(back);
  return out;
}

PutPart before_flip(const ir::IntVec& axes, const Sizes& from, PutPart part) {
  for (const int64_t d : axes) {
    const Size n = from[size_t(d)];
    Range& r = part.ranges[size_t(d)];
    r = {n - r.second, n - r.first};
  }
  part.value = part.value.flip(Axes(axes.begin(), axes.end()));
  return part;
}

// One place of what was repeated is the place itself; of several none is.
PutPart before_expand(const char* what, const Sizes& from, const Tensor& view,
                      const PutPart& part) {
  const size_t fresh = size_t(view.dim()) - from.size();
  PutPart out;
  Sizes extents;
  for (size_t i = 0; i < part.ranges.size(); i++) {
    const bool repeats = i < fresh || !same(from[i - fresh], view.size(int64_t(i)));
    if (repeats && !same(count(part.ranges[i]), 1))
      fail<InvalidArgument>(
          "{}: the tensor is {} by expand() of {}, so that several of its elements are the same "
          "one: clone() it first, or write the tensor that was expanded",
          what, text(view.sizes()), text(from));
    if (i < fresh) continue;
    out.ranges.push_back(repeats ? Range(0, 1) : part.ranges[i]);
    extents.push_back(count(out.ranges.back()));
  }
  out.value = part.value.reshape(extents);
  return out;
}

// The part of `source`, of which the movement has made `view`.
PutPart before(const char* what, const Movement& m, const Tensor& source, const Tensor& view,
               PutPart part) {
  switch (m.kind) {
    case Kind::Detach: part.value = part.value.detach(); return part;
    case Kind::Reshape: return before_reshape(source.sizes(), view, part);
    case Kind::Permute: return before_permute(std::get<ir::IntVec>(m.arg), part);
    case Kind::Flip:
      return before_flip(std::get<ir::IntVec>(m.arg), source.sizes(), std::move(part));
    case Kind::Shrink: {
      const ir::Pairs& pairs = std::get<ir::Pairs>(m.arg);
      for (size_t i = 0; i < pairs.size(); i++) {
        const Size low = size_of(pairs[i].a);
        part.ranges[i] = {low + part.ranges[i].first, low + part.ranges[i].second};
      }
      return part;
    }
    case Kind::Stride: return before_stride(std::get<ir::IntVec>(m.arg), source, std::move(part));
    case Kind::Expand: return before_expand(what, source.sizes(), view, part);
  }
  return part;
}

PutPart carried_back(const char* what, const Path& path, PutPart part) {
  const std::vector<Tensor> now = taken_again(path);
  for (size_t i = path.moves.size(); i-- > 0;)
    part = before(what, *path.moves[i], now[i], now[i + 1], std::move(part));
  return part;
}

// What has been written to the root, in all that lies between it and the view.
void show(const Path& path) {
  Tensor now = path.root();
  for (size_t i = 0; i < path.moves.size(); i++) {
    now = moved(*path.moves[i], now);
    Tensor seen = path.at[i + 1];
    if (seen.defined()) replace(seen, now);
  }
}

Ref<ViewLink> shortened(const Ref<ViewLink>& first) {
  const Links l(first.get());
  Ref<ViewLink> out;
  std::optional<Movement> open;  // to a tensor that has gone, from `of`
  const ViewLink* of = nullptr;
  const auto close = [&] {
    if (open) out = make_ref<ViewLink>(std::move(*open), Weak{of->of, of->of_number}, out);
    open.reset();
  };
  for (size_t i = l.links.size(); i-- > 0;) {
    const Movement& m = l.links[i]->movement;
    std::optional<Movement> both;
    if (open && !l.of[i].defined()) both = merged(*open, m);
    if (!both) {
      close();
      both = m;
      of = l.links[i];
    }
    open = std::move(both);
  }
  close();
  return out;
}

}  // namespace

UOp Movement::of(const UOp& x) const {
  const UOp u = moved(*this, x);
  const bool ends = (detached || !is_grad_enabled()) && is_float(u->dtype) && u->op != Op::Detach;
  return ends ? ir::make(Op::Detach, u->dtype, {u}) : u;
}

ViewLink::ViewLink(Movement&& m, const Weak& tensor, const Ref<ViewLink>& earlier)
    : ViewLink(m.kind, std::move(m.arg), m.detached, tensor, earlier) {}
// Made for every view: the arg is moved once.
ViewLink::ViewLink(Kind kind, ir::Arg&& arg, bool detached, const Weak& tensor,
                   const Ref<ViewLink>& earlier)
    : movement{kind, std::move(arg), detached},
      of(tensor.at),
      of_number(tensor.number),
      before(earlier),
      depth(before ? before->depth + 1 : 1) {}

// Long chains go link by link, not one within the other.
ViewLink::~ViewLink() {
  Ref<ViewLink> next = std::move(before);
  while (next && next->ref_count() == 1) next = std::exchange(next->before, {});
}

Tensor linked(const Tensor& from, UOp u, Kind kind, ir::Arg&& arg) {
  Tensor view = derive(from, std::move(u));
  TensorImpl& source = *from.impl();
  const bool detached = kind != Kind::Detach && view.impl()->uop->op == Op::Detach;
  Ref<ViewLink> link = make_ref<ViewLink>(kind, std::move(arg), detached,
                                          Weak{&source, source.number}, source.viewed);
  if (link->depth % kLinksUntilShortened == 0) [[unlikely]]
    link = shortened(link);
  view.impl()->viewed = std::move(link);
  return view;
}

Tensor no_view(const Tensor& t) { return wrap(uop(t), t.impl()->device); }

UOp stride_of(const UOp& x, int64_t d, int64_t step) {
  const ir::Dim n = x->shape[size_t(d)];
  const ir::Dim rows = dim_of((size_of(n) + (step - 1)) / step);
  ir::Pairs pads(x->shape.size(), {ir::Dim(0), ir::Dim(0)}), first;
  pads[size_t(d)].b = rows * ir::Dim(step) - n;
  ir::Shape cut = x->shape, out = x->shape;
  cut[size_t(d)] = out[size_t(d)] = rows;
  cut.insert(cut.begin() + d + 1, ir::Dim(step));
  for (const ir::Dim& s : cut) first.push_back({ir::Dim(0), s});
  first[size_t(d) + 1].b = 1;
  return ir::reshape(ir::shrink(ir::reshape(ir::pad(x, pads), cut), first), out);
}

Tensor strided(const Tensor& x, int64_t d, int64_t step) {
  return view_of(x, stride_of(uop(x), d, step), Kind::Stride, ir::IntVec{d, step});
}
Tensor flipped(const Tensor& x, int64_t d) {
  return view_of(x, ir::flip(uop(x), {d}), Kind::Flip, ir::IntVec{d});
}

bool is_view(const Tensor& x) { return x.impl()->viewed && !path_to(x).empty(); }

Tensor current(const Tensor& x) {
  uop(x);
  if (!x.impl()->viewed) return x;
  const Path path = path_to(x);
  if (path.empty()) return x;
  const Tensor now = taken_again(path).back();
  return uop(now) == uop(x) ? x : now;
}

void require_no_gradient_of_viewed(const char* what, const Tensor& x, const char* instead) {
  if (!x.impl()->viewed) return;
  const Path path = path_to(x);
  for (size_t i = path.moves.size(); i-- > 0;) {
    if (path.moves[i]->kind == Kind::Detach) return;
    if (path.at[i].defined() && path.at[i].requires_grad())
      fail<InvalidArgument>(
          "{}: the tensor is a view of one that has requires_grad, whose gradient would be that of "
          "what it no longer holds: {}",
          what, instead);
  }
}

void put_in_place(const char* what, Tensor& x, PutPart part) {
  const Path path = path_to(x);
  if (path.empty()) return put_here(what, x, part);
  Tensor root = path.root();
  put_here(what, root, carried_back(what, path, std::move(part)));
  show(path);
}

void put_in_place(const char* what, Tensor& x, const Tensor& value) {
  if (x.numel().max() == 0) return;
  put_in_place(what, x, PutPart{whole(x.sizes()), value});
}

void copy_into_view(Tensor& x, const void* src, size_t size_bytes) {
  const Path path = path_to(x);
  Tensor root = path.root();
  root.realize();
  require_host_write("copy_from", root);
  const auto keeps_order = [](const Movement* m) {
    return m->kind == Kind::Reshape || m->kind == Kind::Detach;
  };
  if (std::ranges::all_of(path.moves, keeps_order)) {
    root.copy_from(src, size_bytes);
    return show(path);
  }
  const Tensor value = Tensor::from_bytes(src, x.sizes(), {x.dtype(), x.device()});
  put_in_place("copy_from", x, on_devices_of(value, x));
  root.realize();
}

}  // namespace tuff::detail

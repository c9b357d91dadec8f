#include "sched/bounds_inference.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/contains.h"
#include "ir/walk.h"

namespace tuff::sched {

using namespace ir;

namespace {

using Box = Pairs;  // [a, b) of each axis; of a symbolic one always all

DimPair all_of(const Dim& extent) { return {Dim(0), extent}; }
Box whole(const Shape& shape) {
  Box out;
  for (const Dim& d : shape) out.push_back(all_of(d));
  return out;
}
Shape extents(const Box& box) {
  Shape out;
  for (const DimPair& p : box) out.push_back(p.a == 0 ? p.b : p.b - p.a);
  return out;
}

// By axis of `to` the one of `from` that a reshape hands on as it is; -1: there is none.
std::vector<int> kept_axes(const Shape& from, const Shape& to) {
  std::vector<int> out(to.size(), -1);
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    if (from[i] == 1 || to[j] == 1) {
      from[i] == 1 ? i++ : j++;
      continue;
    }
    if (from[i] == to[j]) {
      out[j++] = int(i++);
      continue;
    }
    if (!from[i].is_const() || !to[j].is_const()) break;
    int64_t a = from[i].value(), b = to[j].value();
    while (a != b) {
      const Shape& shorter = a < b ? from : to;
      size_t& k = a < b ? i : j;
      if (++k == shorter.size() || !shorter[k].is_const() || shorter[k] == 0) return out;
      (a < b ? a : b) *= shorter[k].value();
    }
    i++, j++;
  }
  return out;
}

// Whether a part of it is made of parts of its sources.
bool is_local(const Node& n) {
  return is_movement(n.op) || is_alu(n.op) || n.op == Op::Reduce || n.op == Op::Cast;
}

// The axis of a source of which a part is behind any part of axis d of n; -1: all of the source.
int source_axis(const Node& n, const Node& source, size_t d) {
  int axis = int(d);
  if (n.op == Op::Permute) axis = int(n.get<IntVec>()[d]);
  if (n.op == Op::Reshape) axis = kept_axes(source.shape, n.shape)[d];
  if (n.op == Op::Pad && n.get<Pairs>()[d] != DimPair{Dim(0), Dim(0)}) axis = -1;
  if (n.op == Op::Shrink && !n.get<Pairs>()[d].a.is_const()) axis = -1;
  const bool is_number = axis >= 0 && n.shape[d].is_const() && source.shape[size_t(axis)].is_const();
  return is_number ? axis : -1;
}

class BoundsInference {
 public:
  explicit BoundsInference(std::span<const UOp> sinks) : nodes_(toposort(sinks)) {
    for (const UOp& s : sinks) read_[s.get()] = whole(s->shape);
    for (size_t k = nodes_.size(); k-- > 0;) {
      const Node& n = *nodes_[k];
      const Box& box = read_[&n] = possible(n, std::move(read_[&n]));
      for (const UOp& s : n.src()) join(*s, sources_part(n, *s, box));
    }
  }

  std::vector<UOp> run(std::span<const UOp> sinks) {
    choose();
    if (cut_.empty()) return {sinks.begin(), sinks.end()};
    for (const Node* n : nodes_) made_.emplace(n, made(*n));
    std::vector<UOp> out;
    for (const UOp& s : sinks) out.push_back(made_.at(s.get()));
    return out;
  }

 private:
  void join(const Node& n, const Box& more) {
    const auto [it, is_new] = read_.emplace(&n, more);
    if (is_new) return;
    for (size_t d = 0; d < more.size(); d++) {
      if (!n.shape[d].is_const()) continue;
      DimPair& p = it->second[d];
      p = {std::min(p.a.value(), more[d].a.value()), std::max(p.b.value(), more[d].b.value())};
    }
  }

  // The smallest box that holds this one and that n can be computed for.
  static Box possible(const Node& n, Box box) {
    for (size_t d = 0; d < box.size(); d++) {
      const auto is_whole = [&](const UOp& s) {
        return !s->shape.empty() && source_axis(n, *s, d) < 0;
      };
      if (!is_local(n) || !n.shape[d].is_const() || std::ranges::any_of(n.src(), is_whole) ||
          box[d].a == box[d].b)
        box[d] = all_of(n.shape[d]);
    }
    return box;
  }

  static Box sources_part(const Node& n, const Node& source, const Box& box) {
    Box out = whole(source.shape);
    if (!is_local(n) || out.empty()) return out;
    for (size_t d = 0; d < box.size(); d++) {
      const int axis = source_axis(n, source, d);
      if (axis < 0 || (n.op == Op::Reduce && n.shape[d] != source.shape[d])) continue;
      if (n.op == Op::Expand && source.shape[d] == 1) continue;
      const Dim& extent = n.shape[d];
      const Dim first = n.op == Op::Shrink ? n.get<Pairs>()[d].a : Dim(0);
      out[size_t(axis)] = n.op == Op::Flip && contains(n.get<IntVec>(), int64_t(d))
                              ? DimPair{extent - box[d].b, extent - box[d].a}
                              : DimPair{first + box[d].a, first + box[d].b};
    }
    return out;
  }

  bool is_part(const Node& n) const { return read_.at(&n) != whole(n.shape); }

  // Reductions, and what of a part is read beside one that is cut: what it is made of, and what is
  // made of it. The rest stays as it is: readers take their parts.
  void choose() {
    const auto is_cut = [this](const UOp& s) { return cut_.count(s.get()) > 0; };
    size_t before = 0;
    do {
      before = cut_.size();
      for (const Node* n : nodes_)
        if (is_part(*n) && (n->op == Op::Reduce || std::ranges::any_of(n->src(), is_cut)))
          cut_.insert(n);
      for (size_t k = nodes_.size(); k-- > 0;) {
        if (!cut_.count(nodes_[k])) continue;
        for (const UOp& s : nodes_[k]->src())
          if (is_part(*s)) cut_.insert(s.get());
      }
    } while (cut_.size() != before);
  }
  Box part_of(const Node& n) const { return cut_.count(&n) ? read_.at(&n) : whole(n.shape); }

  // The part of n that is read, of the parts that there are of its sources.
  UOp made(const Node& n) const {
    const Box box = part_of(n);
    std::vector<UOp> src;
    for (const UOp& s : n.src()) {
      Box part = sources_part(n, *s, box);
      const Box there = part_of(*s);
      for (size_t d = 0; d < part.size(); d++)
        if (s->shape[d].is_const()) part[d] = {part[d].a - there[d].a, part[d].b - there[d].a};
      src.push_back(shrink(made_.at(s.get()), part));
    }
    switch (n.op) {
      case Op::Reshape: return reshape(src[0], extents(box));
      case Op::Expand: return expand(src[0], extents(box));
      case Op::Shrink: return shrink(src[0], rest_of_shrink(n, src[0]->shape));
      default: return with_src(UOp(&n), src);
    }
  }
  // Of the axes that begin where only a variable says.
  static Pairs rest_of_shrink(const Node& n, const Shape& cut) {
    Pairs out = whole(cut);
    for (size_t d = 0; d < out.size(); d++)
      if (source_axis(n, *n.src(0), d) < 0) out[d] = n.get<Pairs>()[d];
    return out;
  }

  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, Box> read_;
  std::unordered_set<const Node*> cut_;
  std::unordered_map<const Node*, UOp> made_;
};

}  // namespace

std::vector<UOp> infer_bounds(std::span<const UOp> sinks) {
  return BoundsInference(sinks).run(sinks);
}

}  // namespace tuff::sched

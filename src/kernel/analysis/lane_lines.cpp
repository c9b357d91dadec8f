#include "kernel/analysis/lane_lines.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/arith.h"
#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "kernel/analysis/coalescing.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// An offset with every range at 0 but those that lanes walk and those that each lane has whole.
class OffsetAlong {
 public:
  OffsetAlong(const Access& access, RangeDeps& deps, std::span<const UOp> ranges,
              std::span<const UOp> whole = {})
      : ranges_(ranges), whole_(whole), offset_(access.index->src(1)) {
    RangeMask walked = 0;
    for (const UOp& r : ranges) {
      step_ += access.step(r);
      walked |= deps.bit(r);
    }
    for (const UOp& r : whole) {
      whole_steps_.push_back(access.step(r));
      walked |= deps.bit(r);
    }
    if (access.irregular & walked) order_ = toposort(offset_);
  }
  // `inside`: of the places in `whole`, the last range fastest.
  int64_t at(int64_t step, int64_t inside = 0) {
    if (order_.empty()) {
      int64_t offset = step_ * step;
      for (size_t w = whole_.size(); w-- > 0; inside /= whole_[w]->src(0)->max)
        offset += whole_steps_[w] * (inside % whole_[w]->src(0)->max);
      return offset;
    }
    values_.clear();
    for (const Node* n : order_) values_[n] = value(*n, step, inside);
    return values_.at(offset_.get()).as_int();
  }

 private:
  Scalar value(const Node& n, int64_t step, int64_t inside) {
    const auto integer = [&](int64_t v) { return Scalar::of_int(n.dtype, v); };
    switch (n.op) {
      case Op::Const: return n.get<Scalar>();
      case Op::Range: return integer(place_of(n, step, inside));
      case Op::Variable: return integer(n.max);
      case Op::Index: return values_.at(n.src(1).get());
      case Op::Load:
        return integer(some_number_at(values_.at(n.src(0).get()).as_int()));
      default: break;
    }
    if (!is_alu(n.op)) return integer(0);
    std::vector<Scalar> src;
    for (const UOp& s : n.src()) src.push_back(values_.at(s.get()));
    return eval_scalar(n.op, n.dtype, src, word_of(n.arg));
  }
  int64_t place_of(const Node& range, int64_t step, int64_t inside) const {
    if (contains(ranges_, &range, &UOp::get)) return step;
    for (size_t w = whole_.size(); w-- > 0; inside /= whole_[w]->src(0)->max)
      if (whole_[w].get() == &range) return inside % range.src(0)->max;
    return 0;
  }

  const std::span<const UOp> ranges_, whole_;
  const UOp offset_;
  int64_t step_ = 0;
  std::vector<int64_t> whole_steps_;
  std::vector<const Node*> order_;  // empty: affine
  std::unordered_map<const Node*, Scalar> values_;
};

bool is_packed(const Access& a, RangeDeps& deps, const UOp& range) {
  return !a.store && size_bytes(a.index->dtype) < 4 && (a.irregular & deps.bit(range));
}

// See words_of; of one load.
PackedWords words_of(const Access& a, RangeDeps& deps, const UOp& range) {
  constexpr int64_t kMost = 64;
  const size_t bytes = size_bytes(a.index->dtype);
  if (!is_packed(a, deps, range)) return {};
  OffsetAlong offset(a, deps, std::span(&range, 1));
  const int64_t first = offset.at(0);
  std::set<int64_t> elements{first};
  for (int64_t steps = 1; steps < std::min(kMost, range->src(0)->max); steps++) {
    const int64_t next = offset.at(steps), words = int64_t(elements.size());
    if (next == first + words && words < steps) return {steps, words * int64_t(bytes)};
    elements.insert(next);
  }
  return {};
}

// How many steps of a range read another element than those before; only loads of packed numbers are
// looked at.
double elements_along(const Access& a, RangeDeps& deps, const UOp& range) {
  constexpr int64_t kSeen = 256;
  const int64_t size = std::max<int64_t>(range->src(0)->max, 1), seen = std::min(size, kSeen);
  if (!is_packed(a, deps, range)) return double(size);
  OffsetAlong offset(a, deps, std::span(&range, 1));
  std::set<int64_t> elements;
  for (int64_t step = 0; step < seen; step++) elements.insert(offset.at(step));
  return double(size) * double(elements.size()) / double(seen);
}

double elements_of(const Access& a, RangeDeps& deps) {
  double n = 1;
  for (const UOp& r : deps.list(deps.of(a.index))) n *= elements_along(a, deps, r);
  return n;
}

// The lines of one access, and how many of the elements that it walks they are for.
struct TouchedLines {
  int64_t lines = 0, elements = 0;
};

class LaneLines {
 public:
  LaneLines(const Access& access, RangeDeps& deps, const LaneWalk& walk)
      : walk_(walk),
        bytes_(int64_t(size_bytes(access.index->dtype))),
        whole_(walked_whole(access, deps, walk)),
        offset_(access, deps, walk.ranges, whole_) {
    for (const UOp& r : whole_) gated_ = gated_ || (access.gate & deps.bit(r));
    for (const UOp& r : walk.ranges)
      gated_ = gated_ || (walk.each > 1 && (access.gate & deps.bit(r)));
  }
  TouchedLines count() {
    TouchedLines out;
    std::vector<Place> places;
    for (int64_t inside = 0; inside < extent(whole_); inside++) {
      std::set<int64_t> elements;
      for (int64_t step = 0; step < walk_.lanes * walk_.each; step++) {
        const int64_t at = offset_.at(step, inside);
        elements.insert(at);
        if (step < walk_.each) places.push_back({at, step, inside});
      }
      out.elements += int64_t(elements.size());
    }
    std::ranges::sort(places, {}, &Place::at);
    const auto repeated = std::ranges::unique(places, {}, &Place::at);
    places.erase(repeated.begin(), repeated.end());
    for (std::span<const Place> rest = places; !rest.empty();) {
      const int64_t n = together(rest);
      out.lines += lines_of(rest[0], n);
      rest = rest.subspan(size_t(n));
    }
    return out;
  }

 private:
  // Of the first lane.
  struct Place {
    int64_t at, step, inside;
  };
  static std::vector<UOp> walked_whole(const Access& access, RangeDeps& deps,
                                       const LaneWalk& walk) {
    std::vector<UOp> out;
    for (const UOp& r : walk.whole)
      if (deps.of(access.index) & deps.bit(r)) out.push_back(r);
    return out;
  }
  // Of these, how many one access takes: neighbours behind one gate.
  int64_t together(std::span<const Place> places) const {
    const int64_t most = gated_ ? 1 : std::max<int64_t>(walk_.vector_bytes / bytes_, 1);
    int64_t n = 1;
    while (n < std::min(most, int64_t(places.size())) && places[size_t(n)].at == places[0].at + n)
      n++;
    return n;
  }
  int64_t lines_of(const Place& first, int64_t elements) {
    std::set<int64_t> lines;
    for (int64_t lane = 0; lane < walk_.lanes; lane++) {
      const int64_t at = offset_.at(lane * walk_.each + first.step, first.inside) * bytes_;
      const int64_t last = floor_div(at + elements * bytes_ - 1, kMemoryLineBytes);
      for (int64_t l = floor_div(at, kMemoryLineBytes); l <= last; l++) lines.insert(l);
    }
    return int64_t(lines.size());
  }

  const LaneWalk& walk_;
  const int64_t bytes_;
  const std::vector<UOp> whole_;
  OffsetAlong offset_;
  bool gated_ = false;
};

}  // namespace

double lines_touched(const std::vector<Access>& all, RangeDeps& deps, const LaneWalk& walk) {
  std::vector<const Node*> summed;
  if (walk.sum) summed = toposort(walk.sum->src(0));
  const auto fetches = [&](const Access& a) {
    double n = 1;
    for (const auto& [range, outputs] : walk.outputs) {
      if (deps.of(a.index) & deps.bit(range)) continue;
      const bool is_walked = contains(walk.ranges, range);
      n *= double(ceil_div(outputs, is_walked ? walk.lanes * walk.each : 1));
    }
    return contains(summed, a.index.get()) ? n : 1;
  };
  double total = 0;
  for (const Access& a : all) {
    if (without_after(a.index->src(0).get())->op != Op::Param) continue;
    const TouchedLines touched = LaneLines(a, deps, walk).count();
    total += fetches(a) * elements_of(a, deps) * double(touched.lines) / double(touched.elements);
  }
  return total;
}

PackedWords words_of(const std::vector<Access>& all, RangeDeps& deps, const UOp& range) {
  PackedWords most;
  for (const Access& a : all) {
    const PackedWords words = words_of(a, deps, range);
    if (words.steps > most.steps) most = words;
  }
  return most;
}

}  // namespace tuff::kernel

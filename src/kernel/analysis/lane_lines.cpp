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

// An offset with every range at 0 but those that lanes walk.
class OffsetAlong {
 public:
  OffsetAlong(const Access& access, RangeDeps& deps, std::span<const UOp> ranges)
      : ranges_(ranges), offset_(access.index->src(1)) {
    RangeMask walked = 0;
    for (const UOp& r : ranges) {
      step_ += access.step(r);
      walked |= deps.bit(r);
    }
    if (access.irregular & walked) order_ = toposort(offset_);
  }
  int64_t at(int64_t lane) {
    if (order_.empty()) return step_ * lane;
    values_.clear();
    for (const Node* n : order_) values_[n] = value(*n, lane);
    return values_.at(offset_.get()).as_int();
  }

 private:
  Scalar value(const Node& n, int64_t lane) {
    const auto integer = [&](int64_t v) { return Scalar::of_int(n.dtype, v); };
    switch (n.op) {
      case Op::Const: return n.get<Scalar>();
      case Op::Range: return integer(contains(ranges_, &n, &UOp::get) ? lane : 0);
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

  const std::span<const UOp> ranges_;
  const UOp offset_;
  int64_t step_ = 0;
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

}  // namespace

double lines_touched(const std::vector<Access>& all, RangeDeps& deps, std::span<const UOp> ranges,
                     int64_t lanes) {
  double total = 0;
  for (const Access& a : all) {
    if (without_after(a.index->src(0).get())->op != Op::Param) continue;
    const auto bytes = int64_t(size_bytes(a.index->dtype));
    OffsetAlong offset(a, deps, ranges);
    std::set<int64_t> lines, elements;
    for (int64_t lane = 0; lane < lanes; lane++) {
      const int64_t at = offset.at(lane);
      elements.insert(at);
      lines.insert(floor_div(at * bytes, kMemoryLineBytes));
    }
    total += elements_of(a, deps) * double(lines.size()) / double(elements.size());
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

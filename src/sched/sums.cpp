#include "sched/sums.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "sched/call_fusion.h"
#include "sched/loops.h"
#include "sched/parts.h"
#include "sched/rows.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace ir;

namespace {

struct SumKernel : SlotKernel {
  std::vector<UOp> summed;  // what all of its reductions fold; empty: it has none
  int64_t sums = 0;         // all of them products
  int64_t vectors = 0;      // of these, at most
};

std::vector<UOp> folded(const Node* reduce) {
  const auto own = closed_ranges(reduce);
  return {own.begin(), own.end()};
}

SumKernel sum_kernel(const Call& c, uint32_t number, const Target& target) {
  if (c.kind != CallKind::Kernel || !(c.runs == 1) || !target.has_local) return {};
  SumKernel k{slot_kernel(c, number)};
  const std::vector<const Node*> nodes = toposort(k.ends);
  if (!has_fixed_loops(nodes)) return k;
  for (const Node* n : nodes) {
    if (n->op == Op::Store && n->src_count > 2) return k;
    if (n->op != Op::Reduce) continue;
    const int64_t vectors = vectors_of(n);
    if (vectors == 0 || (k.sums > 0 && !(folded(n) == k.summed))) return k;
    k.summed = folded(n);
    k.vectors = std::max(k.vectors, vectors);
    k.sums++;
  }
  k.possible = true;
  return k;
}

// Elements of a product as its reader has them: for each offset that it is read at, the product's
// loops.
struct ReadGroup {
  std::vector<UOp> ends;  // the reader's
  UOp unrolled;  // the reader's loop that goes through the group; none: it is one element
  UOpMap<UOp> at;   // of the product's loops
  UOp member;       // a range that stands for which of the group it is, in `at`
  std::vector<UOp> offsets;  // of each, in the loops that are left
};

class SumTaker : CallFusion {
 public:
  using CallFusion::CallFusion;

  // The calls in a new order, some of them one.
  std::vector<Call> run() {
    for (uint32_t c = 0; c < calls_.size(); c++)
      kernels_.push_back(sum_kernel(calls_[c], c, target(c)));
    for (uint32_t c = 0; c < calls_.size(); c++) {
      if (!kernels_[c].possible) continue;
      const std::vector<uint32_t> reads = kernels_[c].reads;
      for (const uint32_t slot : reads)
        if (const auto p = producer_of(slot, c)) take_in(*p, c, slot);
    }
    return ordered([&](uint32_t c) { return call_of(calls_[c].device, kernels_[c].ends); });
  }

 private:
  void take_in(uint32_t from, uint32_t into, uint32_t slot) {
    SumKernel &p = kernels_[from], &c = kernels_[into];
    if (!p.possible || p.sums == 0 || p.vectors > kThinProduct || p.ends.size() != 1) return;
    if (calls_[from].device != calls_[into].device || p.nodes + c.nodes > 2 * kMaxRowNodes) return;
    const UOp& value = p.ends[0]->src(0)->src(1);
    if (!(value->dtype == DType::F32) || p.ends[0]->src(0)->src(0)->src_count > 2) return;
    if (graph_.waits(from, c.calls) || graph_.separated(p.calls, into)) return;
    if (is_needed(slot, {p.calls, c.calls}) || !sums_alike(p, c) || !keep_apart(p, c)) return;
    const std::optional<ReadGroup> group = group_of(p, c, slot);
    if (group && fits(p, c, *group)) join(p, c, slot, *group);
  }
  // In one loop.
  static bool sums_alike(const SumKernel& p, const SumKernel& c) {
    return c.sums == 0 || std::ranges::equal(p.summed, c.summed, [](const UOp& x, const UOp& y) {
             return x->src(0) == y->src(0);
           });
  }
  bool fits(const SumKernel& p, const SumKernel& c, const ReadGroup& g) const {
    const int64_t made = c.sums * (g.unrolled ? g.unrolled->src(0)->max : 1) +
                         p.sums * int64_t(g.offsets.size());
    if (made * std::max(p.vectors, c.vectors) > kMostSums) return false;
    return fits_buffers(c.calls.back(), {p.reads, c.reads, c.writes});
  }
  // ---- which elements are read together ----
  // Offsets of the loads of a slot; none where one of them is gated, or stands in a reduction.
  static std::vector<UOp> offsets_of(std::span<const UOp> ends, uint32_t slot) {
    std::vector<UOp> out;
    for (const Node* n : toposort(ends)) {
      if (n->op != Op::Load || slot_of(n->src(0)) != slot) continue;
      const UOp& offset = n->src(0)->src(1);
      if (n->src(0)->src_count > 2 || !ranges_below(offset, AxisKind::Reduce).empty()) return {};
      add_once(out, offset);
    }
    return out;
  }
  std::optional<ReadGroup> group_of(const SumKernel& p, const SumKernel& c, uint32_t slot) const {
    const std::vector<UOp> offsets = offsets_of(c.ends, slot);
    if (offsets.empty()) return {};
    const auto loops = closed_ranges(c.ends[0].get());
    for (const UOp& end : c.ends)
      if (!std::ranges::equal(closed_ranges(end.get()), loops)) return {};
    if (offsets.size() == 1)
      if (const auto at = loops_at(p.ends[0], offsets[0]))
        return ReadGroup{c.ends, {}, *at, {}, offsets};
    for (const UOp& loop : loops) {
      const int64_t size = loop->src(0)->max;
      if (size > 1 && size <= kMostTogether)
        if (std::optional<ReadGroup> g = unrolled_group(p, c.ends, offsets, loop)) return g;
      for (const auto& [below, n] : digits_of(offsets, loop)) {
        const auto [ends, digit] = with_digit(c.ends, loop, below, n);
        const std::vector<UOp> read = offsets_of(ends, slot);
        if (std::optional<ReadGroup> g = unrolled_group(p, ends, read, digit)) return g;
      }
    }
    return {};
  }
  // Short digits of a loop that offsets divide it into: (loop / below) % n.
  static std::vector<std::pair<int64_t, int64_t>> digits_of(std::span<const UOp> offsets,
                                                            const UOp& loop) {
    const int64_t size = loop->src(0)->max;
    std::set<int64_t> cuts{1, size}, divisors;
    for (const Node* n : toposort(offsets)) {
      const bool divides = n->op == Op::FloorDiv || n->op == Op::FloorMod;
      if (divides && n->src(1)->is_const() && depends_on(n->src(0), loop))
        divisors.insert(n->src(1)->const_int());
    }
    for (const int64_t a : divisors)
      for (const int64_t b : divisors)
        for (const int64_t cut : {a, a * b})
          if (cut > 0 && cut < size && size % cut == 0) cuts.insert(cut);
    std::vector<std::pair<int64_t, int64_t>> out;
    for (const int64_t below : cuts)
      for (int64_t n = 2; n <= kMostTogether; n++)
        if (cuts.contains(below * n) && n < size) out.emplace_back(below, n);
    return out;
  }
  static std::pair<std::vector<UOp>, UOp> with_digit(const std::vector<UOp>& ends, const UOp& loop,
                                                     int64_t below, int64_t n) {
    int32_t next = free_range_id(ends);
    std::vector<UOp> parts;
    const UOp digit = range(index_const(n), next++, AxisKind::Loop);
    UOp at = index_const(0);
    for (const int64_t size : {loop->src(0)->max / (below * n), int64_t(0), below}) {
      const UOp part = size ? range(index_const(size), next++, AxisKind::Loop) : digit;
      at = at * part->src(0)->max;
      if (size == 1) continue;
      parts.push_back(part);
      at = at + part;
    }
    return {with_loops(ends, {{loop, at}}, loop, parts), digit};
  }
  // All that iterations of a loop read is the same few elements, which stand a step apart.
  static std::optional<ReadGroup> unrolled_group(const SumKernel& p, const std::vector<UOp>& ends,
                                             const std::vector<UOp>& offsets, const UOp& loop) {
    const int64_t n = loop->src(0)->max;
    ReadGroup g{ends, loop, {}, {}, {}};
    for (int64_t i = 0; i < n; i++)
      for (const UOp& o : offsets)
        add_once(g.offsets, simplify(substitute(o, {{loop, index_const(i)}})));
    if (int64_t(g.offsets.size()) != n) return {};
    std::ranges::sort(g.offsets, {}, [](const UOp& o) { return linear_form(o).constant; });
    const UOp& first = g.offsets[0];
    const UOp apart = simplify(g.offsets[1] - first);
    if (!apart->is_const()) return {};
    for (int64_t i = 0; i < n; i++) {
      const UOp from = simplify(g.offsets[size_t(i)] - first);
      if (!from->is_const() || from->const_int() != i * apart->const_int()) return {};
    }
    const std::vector<UOp> all = sources(p.ends[0], ends);
    g.member = range(index_const(n), free_range_id(all), AxisKind::Loop);
    const auto at = loops_at(p.ends[0], simplify(first + g.member * apart->const_int()));
    if (!at) return {};
    g.at = *at;
    return g;
  }

  // ---- the kernel ----
  void join(SumKernel& p, SumKernel& c, uint32_t slot, const ReadGroup& g) {
    UOpMap<UOp> at = g.at;
    int32_t next = free_range_id(sources(p.ends[0], g.ends)) + 1;
    for (size_t i = 0; i < p.summed.size(); i++) {
      const UOp& r = p.summed[i];
      at.emplace(r, c.sums ? c.summed[i] : range(r->src(0), next++, AxisKind::Reduce));
    }
    const UOp moved = substitute(p.ends[0]->src(0)->src(1), at);
    std::map<const Node*, UOp> values;  // by offset
    for (size_t i = 0; i < g.offsets.size(); i++) {
      const UOp own =
          g.member ? substitute(moved, {{g.member, index_const(int64_t(i))}}) : moved;
      values[g.offsets[i].get()] = simplify(own);
    }
    std::vector<UOp> ends;
    const int64_t copies = g.unrolled ? g.unrolled->src(0)->max : 1;
    for (int64_t i = 0; i < copies; i++) {
      for (const UOp& end : g.ends) ends.push_back(with_values(end, slot, g, i, values));
    }
    c.ends = with_rows_as_one(std::move(ends), p, g);
    if (c.sums == 0) c.summed.clear();
    for (const UOp& r : p.summed) {
      if (c.sums == 0) c.summed.push_back(at.at(r));
    }
    c.sums = c.sums * copies + p.sums * int64_t(g.offsets.size());
    c.vectors = std::max(c.vectors, p.vectors);
    c.nodes = toposort(c.ends).size();
    std::erase(c.reads, slot);
    unite(c, p);
  }
  // Loops that walk rows of the product's matrix together, as heads and their elements, become one.
  static std::vector<UOp> with_rows_as_one(std::vector<UOp> ends, const SumKernel& p,
                                           const ReadGroup& g) {
    for (const UOp& row : closed_ranges(p.ends[0].get())) {
      std::vector<UOp> walked;
      const auto loops = closed_ranges(ends[0].get());
      for (const UOp& r : loops)
        if (depends_on(g.at.at(row), r)) walked.push_back(r);
      const auto first = walked.empty() ? loops.end() : std::ranges::find(loops, walked[0]);
      const auto count = std::ptrdiff_t(walked.size());
      if (count > 1 && loops.end() - first >= count &&
          std::equal(walked.begin(), walked.end(), first))
        ends = with_one_loop(ends, walked);
    }
    return ends;
  }
  static std::vector<UOp> with_one_loop(const std::vector<UOp>& ends,
                                        const std::vector<UOp>& loops) {
    const UOp all = range(index_const(extent(loops)), free_range_id(ends), AxisKind::Loop);
    UOpMap<UOp> place;
    UOp left = all;
    for (size_t i = loops.size(); i-- > 0;) {
      const int64_t size = loops[i]->src(0)->max;
      place.emplace(loops[i], i == 0 ? left : floormod(left, size));
      left = floordiv(left, size);
    }
    return with_loops(ends, place, loops[0], {&all, 1});
  }
  static UOp with_values(const UOp& end, uint32_t slot, const ReadGroup& g, int64_t i,
                         const std::map<const Node*, UOp>& values) {
    UOp store = end->src(0);
    if (g.unrolled) store = simplify(substitute(store, {{g.unrolled, index_const(i)}}));
    UOpMap<UOp> read;
    for (const Node* n : toposort(store)) {
      if (n->op != Op::Load || slot_of(n->src(0)) != slot) continue;
      const UOp offset = g.unrolled ? simplify(n->src(0)->src(1)) : n->src(0)->src(1);
      read.emplace(UOp(n), values.at(offset.get()));
    }
    std::vector<UOp> loops;
    for (const UOp& r : closed_ranges(end.get()))
      if (!(r == g.unrolled)) loops.push_back(r);
    return make_end(substitute(store, read), loops);
  }

  std::vector<SumKernel> kernels_;  // by call; of several made one, at its last call
};

}  // namespace

std::vector<Call> take_sums(Schedule& s, std::span<const uint32_t> memory,
                            const TargetOf& target_of, std::span<const Call> calls) {
  return SumTaker(s, memory, target_of, calls).run();
}

}  // namespace tuff::sched

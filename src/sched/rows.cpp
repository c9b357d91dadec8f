#include "sched/rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/contains.h"
#include "base/cost.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "sched/call_fusion.h"
#include "sched/loops.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace ir;

namespace {

struct RowKernel : SlotKernel {
  bool reduces = false;
  bool streams = true;  // each reduction walks some buffer element by element, once, or none
  std::vector<UOp> loops;  // of the Ends over all elements, outermost first
  std::vector<UOp> rows;   // those of them that row values depend on; empty: none taken in yet
};

// A reduction of what is the same in each of its steps, as of a comparison with a counter: nothing
// is read again for another row.
bool walks_no_memory(const Node* reduce) {
  const auto own = closed_ranges(reduce);
  return std::ranges::none_of(toposort(reduce->src(0)), [&](const Node* n) {
    return n->op == Op::Load && std::ranges::any_of(ranges_below(UOp(n), AxisKind::Reduce),
                                                    [&](const UOp& r) { return contains(own, r); });
  });
}

RowKernel row_kernel(const Call& c, uint32_t number) {
  if (c.kind != CallKind::Kernel) return {};
  RowKernel k{slot_kernel(c, number)};
  const auto loops = k.ends[0]->src().subspan(1);
  k.loops.assign(loops.begin(), loops.end());
  for (const UOp& end : k.ends) {
    const auto own = end->src().subspan(1);
    const UOp& index = end->src(0)->src(0);
    const bool plain = std::equal(own.begin(), own.end(), loops.begin(), loops.end()) &&
                       index->src_count == 2 && end->src(0)->src_count == 2 &&
                       index->src(1) == k.ends[0]->src(0)->src(0)->src(1);
    if (!plain) return k;
  }
  for (const Node* n : toposort(k.ends)) {
    if (is_ordered(n)) return k;
    if (n->op != Op::Reduce) continue;
    k.reduces = true;
    k.streams = k.streams && (is_streamed(n, k.loops) || walks_no_memory(n));
  }
  k.possible = true;
  return k;
}

class RowFuser : CallFusion {
 public:
  using CallFusion::CallFusion;

  // The calls in a new order, some of them one.
  std::vector<Call> run() {
    for (uint32_t c = 0; c < calls_.size(); c++) kernels_.push_back(row_kernel(calls_[c], c));
    // First what has no columns: row values that need each other are one producer.
    for (const bool whole : {true, false})
      for (uint32_t c = 0; c < calls_.size(); c++) take_in_producers(c, whole);
    return ordered([&](uint32_t c) { return fused(kernels_[c]); });
  }

 private:
  void take_in_producers(uint32_t c, bool whole) {
    for (bool again = kernels_[c].possible; again;) {
      again = false;
      const std::vector<uint32_t> reads = kernels_[c].reads;
      for (uint32_t slot : reads) {
        const std::optional<uint32_t> p = again ? std::nullopt : producer_of(slot, c);
        again = again || (p && take_in(*p, c, slot, whole));
      }
    }
  }

  // The one element at which the reader's values are the producer's row values; empty where there
  // is none.
  UOp shared_offset(const RowKernel& p, const RowKernel& c) const {
    UOp offset;
    for (const Node* n : toposort(c.ends)) {
      if (n->op != Op::Load) continue;
      const UOp& index = n->src(0);
      const uint32_t slot = slot_of(index);
      if (!contains(p.writes, slot)) continue;
      if (index->src_count > 2 || (offset && !(offset == index->src(1)))) return {};
      offset = index->src(1);
    }
    return offset;
  }

  static bool reduces_rows_only(const RowKernel& c, const std::vector<UOp>& rows) {
    for (const Node* n : toposort(c.ends)) {
      if (n->op != Op::Reduce) continue;
      for (const UOp& r : ranges_below(UOp(n), AxisKind::Loop)) {
        if (!contains(rows, r)) return false;
      }
    }
    return true;
  }

  bool rows_fit(const RowKernel& p, const RowKernel& c, const std::vector<UOp>& rows) const {
    if (!c.rows.empty() && !(c.rows == rows)) return false;
    for (const UOp& r : rows) {
      if (!contains(c.loops, r)) return false;
    }
    // All that the producer stores lies alike: one that has taken in another stores its row values
    // where it read them, which may be permuted.
    for (const UOp& end : p.ends) {
      if (end->src_count - 1 != p.loops.size() || !(offset_of(end) == offset_of(p.ends[0])))
        return false;
    }
    return reduces_rows_only(c, rows);
  }

  // Rows that lie across memory: their columns are no neighbours.
  static bool lies_across(const RowKernel& c, const std::vector<UOp>& rows) {
    if (rows.size() == c.loops.size()) return false;
    for (const UOp& r : c.loops) {
      if (!contains(rows, r) && coefficient(offset_of(c.ends[0]), r) == 1) return false;
    }
    return true;
  }

  static bool reduces_symbolic(const std::vector<UOp>& ends) {
    return std::ranges::any_of(toposort(ends), [](const Node* n) {
      return n->op == Op::Reduce &&
             std::ranges::any_of(closed_ranges(n),
                                 [](const UOp& r) { return !r->src(0)->is_const(); });
    });
  }

  bool worth_it(const RowKernel& p, const RowKernel& c, const std::vector<UOp>& rows) const {
    if (lies_across(c, rows) || p.nodes + c.nodes > kMaxRowNodes) return false;
    const Target& t = target(c.calls.back());
    const int64_t cores = t.has_local ? cost::gpu_cores(t) : std::max<int64_t>(t.cores, 1);
    int64_t walked = extent(c.loops);
    for (const Node* n : toposort(p.ends)) {
      if (n->op == Op::Reduce)
        walked = std::max(walked, extent(p.loops) * extent(closed_ranges(n)));
    }
    const bool bounded = t.has_local && reduces_symbolic(p.ends);
    return cores == 1 || extent(rows) >= kRowsPerCore * cores || walked <= kLonelyElements ||
           (bounded && extent(rows) >= kFewRows);
  }

  // `whole`: rows are all that the reader has, of which as many are beside each other as before.
  bool take_in(uint32_t from, uint32_t into, uint32_t slot, bool whole) {
    const RowKernel &p = kernels_[from], &c = kernels_[into];
    if (!p.possible || !p.reduces || !p.streams || !c.streams) return false;
    if (calls_[from].device != calls_[into].device) return false;
    // What a later value needs of a kernel of several stays there: forwards need not wait.
    if (whole && !contains(std::span(calls_[from].args).first(calls_[from].output_count), slot))
      return false;
    // What overwrites the memory that a member has read is no producer of it.
    if (graph_.waits(from, c.calls)) return false;
    const UOp offset = shared_offset(p, c);
    if (!offset || !ranges_below(offset, AxisKind::Reduce).empty()) return false;
    const std::vector<UOp> rows = ranges_below(offset, AxisKind::Loop);
    if (whole && rows.size() != c.loops.size()) return false;
    const bool takes = rows_fit(p, c, rows) && (whole || worth_it(p, c, rows)) &&
                       fits_buffers(into, {p.reads, p.writes, c.reads, c.writes}) &&
                       keep_apart(p, c) && !meet(c.reads, c.writes) &&
                       !graph_.separated(p.calls, into);
    if (!takes) return false;
    const std::optional<UOpMap<UOp>> at = loops_at(p.ends[0], offset);
    return at && join(from, into, offset, *at, rows, whole);
  }

  // `wider`: a value may stay wider than what is stored of it, as within any other kernel.
  bool join(uint32_t from, uint32_t into, const UOp& offset, const UOpMap<UOp>& at,
            const std::vector<UOp>& rows, bool wider) {
    RowKernel &p = kernels_[from], &c = kernels_[into];
    const std::vector<UOp> moved = moved_ends(p, c, at);
    UOpMap<UOp> values;
    for (const Node* n : toposort(c.ends)) {
      if (n->op != Op::Load) continue;
      for (const UOp& end : moved) {
        if (slot_of(end->src(0)->src(0)) != slot_of(n->src(0))) continue;
        const UOp& v = end->src(0)->src(1);
        if (!(v->dtype == n->dtype) || !(wider || survives_in_register(n->dtype))) return false;
        values.emplace(UOp(n), v);
      }
    }
    std::vector<UOp> ends = substitute(c.ends, values);
    for (const UOp& end : moved) {
      const UOp& index = end->src(0)->src(0);
      const UOp target = make_index(index->src(0), offset);
      ends.push_back(make_end(make_store(target, end->src(0)->src(1)), rows));
    }
    c.ends = std::move(ends);
    c.rows = rows;
    c.reduces = true;
    c.nodes += p.nodes;
    for (uint32_t w : p.writes) add_once(c.writes, w);
    unite(c, p);
    std::erase_if(c.reads, [&](uint32_t r) { return contains(c.writes, r); });
    return true;
  }

  // The producer's Ends with its loops where the reader reads, reductions in ranges of their own.
  std::vector<UOp> moved_ends(const RowKernel& p, const RowKernel& c, UOpMap<UOp> at) const {
    int32_t next = free_range_id(c.ends);
    std::vector<UOp> values;
    for (const UOp& end : p.ends) values.push_back(end->src(0));
    for (const UOp& r : ranges_below(sink(values), AxisKind::Reduce))
      at.emplace(r, range(substitute(r->src(0), at), next++, AxisKind::Reduce));
    std::vector<UOp> out;
    for (const UOp& store : values) out.push_back(make_end(simplify(substitute(store, at))));
    return out;
  }

  Call fused(const RowKernel& k) const {
    std::vector<UOp> ends;
    for (const UOp& end : k.ends) {
      if (is_needed(slot_of(end->src(0)->src(0)), {k.calls})) ends.push_back(end);
    }
    return call_of(calls_[k.calls.back()].device, rows_outermost(k, ends));
  }

  // Rows first, in loops and in numbers; reductions that may run in one loop get the same ranges.
  static std::vector<UOp> rows_outermost(const RowKernel& k, const std::vector<UOp>& ends) {
    std::vector<UOp> loops = k.rows;
    for (const UOp& r : k.loops) {
      if (!contains(k.rows, r)) loops.push_back(r);
    }
    UOpMap<UOp> fresh;
    int32_t next = 0;
    for (const UOp& r : loops) fresh.emplace(r, range(r->src(0), next++, AxisKind::Loop));
    share_reduce_ranges(ends, next, fresh);
    std::vector<UOp> out;
    for (const UOp& end : ends) {
      std::vector<UOp> own;
      for (const UOp& r : loops) {
        if (contains(closed_ranges(end.get()), r)) own.push_back(fresh.at(r));
      }
      out.push_back(make_end(substitute(end->src(0), fresh), own));
    }
    return out;
  }

  // Reductions that do not need each other walk the same ranges where they are as long.
  static void share_reduce_ranges(const std::vector<UOp>& ends, int32_t next, UOpMap<UOp>& fresh) {
    std::map<std::tuple<const Node*, size_t, int>, UOp> shared;  // by size, place and depth
    std::map<const Node*, int> depth;                            // of reductions below
    for (const Node* n : toposort(ends)) {
      int below = 0;
      for (const UOp& s : n->src()) below = std::max(below, depth[s.get()]);
      depth[n] = below + (n->op == Op::Reduce);
      if (n->op != Op::Reduce) continue;
      const bool alone = stands_alone(n);
      std::map<const Node*, size_t> place;
      for (const UOp& r : n->src().subspan(1)) {
        const Node* size = r->src(0).get();
        const auto key = std::tuple(size, place[size]++, below);
        if (fresh.count(r)) continue;
        const auto it = shared.find(key);
        const bool share = alone && it != shared.end();
        const UOp own = share ? it->second : range(r->src(0), next++, AxisKind::Reduce);
        if (alone) shared.emplace(key, own);
        fresh.emplace(r, own);
      }
    }
  }

  // No range of another reduction is open in it.
  static bool stands_alone(const Node* reduce) {
    std::set<const Node*> closed;
    for (const Node* n : toposort(UOp(reduce))) {
      if (n->op != Op::Reduce) continue;
      for (const UOp& r : n->src().subspan(1)) closed.insert(r.get());
    }
    for (const UOp& r : ranges_below(UOp(reduce), AxisKind::Reduce)) {
      if (!closed.count(r.get())) return false;
    }
    return true;
  }

  std::vector<RowKernel> kernels_;  // by call; of several made one, at its last call
};

}  // namespace

std::vector<Call> fuse_rows(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of,
                            std::span<const Call> calls) {
  return RowFuser(s, memory, target_of, calls).run();
}

}  // namespace tuff::sched

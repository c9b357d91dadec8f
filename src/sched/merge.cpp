#include "sched/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "sched/call_fusion.h"
#include "sched/loops.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace ir;

namespace {

constexpr size_t kOpenGroups = 8;     // groups that a kernel may still join
constexpr int64_t kMaxColumn = 4096;  // elements that one invocation adds up
constexpr size_t kMaxStreams = 24;    // buffers that one loop walks

// A kernel as merging sees it, or why it stays alone.
struct Candidate : SlotKernel {
  bool sums = false;        // over columns
  bool apart = false;       // reduces otherwise: only its readers join it
  std::vector<UOp> ranges;  // of all its Ends
  size_t loops = 0;         // as kMaxLoops counts them
  int64_t elements = 1;     // walked
};

struct Stored {
  UOp offset, value;
};

// Loops over the same elements.
struct Nest {
  std::vector<UOp> ranges;
  UOp offset;  // of its stores
  std::vector<UOp> ends;
  std::set<uint32_t> reads;
  std::map<uint32_t, Stored> stored;
  size_t nodes = 0;
};

struct Group : CallGroup {
  std::vector<Nest> nests;
  int64_t elements = 0;
  size_t loops = 0;
  bool apart = false;
};

// One loop list for all Ends, of constant sizes, no store gated, no row kept.
bool has_plain_loops(const UOp& ast, const std::vector<const Node*>& nodes) {
  const auto loops = ast->src(0)->src().subspan(1);
  for (const UOp& end : ast->src()) {
    const auto own = end->src().subspan(1);
    if (!std::equal(own.begin(), own.end(), loops.begin(), loops.end())) return false;
    if (end->src(0)->src(0)->src_count > 2) return false;
    if (!(end->src(0)->src(0)->src(1) == ast->src(0)->src(0)->src(0)->src(1))) return false;
  }
  return has_fixed_loops(nodes);
}

// How many elements a kernel's reductions walk per output; 0 where one is no sum over columns.
int64_t summed_per_output(const UOp& column, const std::vector<const Node*>& nodes) {
  int64_t walked = 0;
  for (const Node* n : nodes) {
    if (n->op == Op::Reduce) {
      int64_t own = 1;
      for (const UOp& r : n->src().subspan(1)) own *= r->src(0)->const_int();
      if (n->get<ReduceArg>().op != Op::Add) return 0;
      walked += own;
    } else if (n->op == Op::Load) {
      const auto step = coefficient(n->src(0)->src(1), column);
      if (n->src(0)->src_count > 2 || !step || *step < 0 || *step > 1) return 0;
    }
  }
  return walked;
}

Candidate candidate(const Call& c, uint32_t number) {
  if (c.kind != CallKind::Kernel) return {};
  const std::vector<const Node*> nodes = toposort(c.ast);
  if (!has_plain_loops(c.ast, nodes)) return {};
  Candidate out{slot_kernel(c, number)};
  out.possible = true;
  const auto loops = out.ends[0]->src().subspan(1);
  out.ranges.assign(loops.begin(), loops.end());
  for (const UOp& r : out.ranges) out.elements *= r->src(0)->const_int();
  out.sums =
      std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return n->op == Op::Reduce; });
  if (out.sums) {
    const int64_t walked =
        out.ranges.size() == 1 ? summed_per_output(out.ranges[0], toposort(out.ends)) : 0;
    out.apart = walked == 0 || walked > kMaxColumn || out.elements * walked > kMaxSummedElements;
    out.elements *= std::max<int64_t>(walked, 1);
  }
  for (const Node* n : toposort(out.ends))
    if (n->op == Op::Range) out.loops += contains(out.ranges, UOp(n)) ? 1 : 3;
  return out;
}

class Merger : CallFusion {
 public:
  using CallFusion::CallFusion;

  // The calls in a new order, merged.
  std::vector<Call> run() {
    for (uint32_t c = 0; c < calls_.size(); c++) candidates_.push_back(candidate(calls_[c], c));
    for (const Candidate& k : candidates_)
      if (k.possible) place(k);
    return ordered([&](uint32_t c) { return merged(group_of(c)); });
  }

 private:
  // ---- which kernel joins which group ----
  void place(const Candidate& k) {
    // A CPU's products are slower with more to store, and its launches cost little.
    if (k.apart && !target(k.calls[0]).has_local) return;
    for (const size_t i : groups_for(k))
      if (join(groups_[i], k)) return add(groups_[i], k);
    Group& g = groups_.emplace_back();
    g.device = calls_[k.calls[0]].device;
    g.apart = k.apart;
    add_nest(g, k);
    add(g, k);
  }

  // Those that a kernel may join: first what it reads the results of, from registers.
  std::vector<size_t> groups_for(const Candidate& k) const {
    std::vector<size_t> read, open;
    for (size_t i = groups_.size(); !k.apart && i-- > 0;) {
      const Group& g = groups_[i];
      if (g.device != calls_[k.calls[0]].device) continue;
      if (!g.apart && open.size() < kOpenGroups) open.push_back(i);
      if (g.apart && reads_from(g.nests[0], k)) read.push_back(i);
    }
    read.insert(read.end(), open.begin(), open.end());
    return read;
  }

  bool join(Group& g, const Candidate& k) {
    if (g.nodes + k.nodes > kMaxMergedNodes || !fits_buffers(g, k) ||
        graph_.separated(g.calls, k.calls[0]))
      return false;
    int32_t nest = -1;
    for (size_t i = 0; i < g.nests.size(); i++) {
      if (!conflicts(g.nests[i], k)) continue;
      if (nest >= 0) return false;
      nest = int32_t(i);
    }
    if (nest >= 0) {
      if (g.apart && overwrites(g.nests[0], k)) return false;
      return !k.sums && join_reader(g.nests[size_t(nest)], k);
    }
    for (size_t i = 0; !k.sums && nest < 0 && i < g.nests.size(); i++) {
      if (shares_input(g.nests[i], k) && walks_alike(g.nests[i], k)) nest = int32_t(i);
    }
    if (nest >= 0 && join_nest(g.nests[size_t(nest)], k)) return true;
    if (!stands_beside(g, k)) return false;
    add_nest(g, k);
    return true;
  }

  // Flat loops only: the launch is shared out along one axis per nest.
  bool stands_beside(const Group& g, const Candidate& k) const {
    auto small = [](const std::vector<UOp>& ranges) {
      return ranges.empty() ||
             (ranges.size() == 1 && ranges[0]->src(0)->const_int() <= kMaxNestElements);
    };
    return g.nests.size() < kMaxNests && g.loops + k.loops <= kMaxLoops && small(k.ranges) &&
           small(g.nests[0].ranges) &&
           g.elements + k.elements <= kMaxMergedElements;
  }

  bool touches(const Nest& n, uint32_t slot, bool stores_only) const {
    auto same = [&](uint32_t s) { return memory_[s] == memory_[slot]; };
    const bool stored =
        std::any_of(n.stored.begin(), n.stored.end(), [&](const auto& s) { return same(s.first); });
    return stored || (!stores_only && std::any_of(n.reads.begin(), n.reads.end(), same));
  }
  bool reads_from(const Nest& n, const Candidate& k) const {
    return std::any_of(k.reads.begin(), k.reads.end(),
                       [&](uint32_t s) { return touches(n, s, true); });
  }
  bool conflicts(const Nest& n, const Candidate& k) const {
    return reads_from(n, k) ||
           std::any_of(k.writes.begin(), k.writes.end(),
                       [&](uint32_t s) { return touches(n, s, false); });
  }
  // Tiles of a reduction may overlap where they do not divide an axis: what is stored twice must
  // not be read in between.
  bool overwrites(const Nest& n, const Candidate& k) const {
    return std::ranges::any_of(k.writes, [&](uint32_t w) {
      return touches(n, w, false) || std::ranges::any_of(k.reads, [&](uint32_t r) {
               return memory_[r] == memory_[w];
             });
    });
  }
  static bool shares_input(const Nest& n, const Candidate& k) {
    return std::any_of(k.reads.begin(), k.reads.end(),
                       [&](uint32_t s) { return n.reads.count(s) > 0; });
  }

  static UOpMap<UOp> onto(const std::vector<UOp>& from, const std::vector<UOp>& to) {
    UOpMap<UOp> map;
    for (size_t i = 0; i < from.size(); i++) map.emplace(from[i], to[i]);
    return map;
  }
  static bool walks_alike(const Nest& n, const Candidate& k) {
    if (n.ranges.size() != k.ranges.size()) return false;
    for (size_t i = 0; i < n.ranges.size(); i++) {
      if (!(n.ranges[i]->src(0) == k.ranges[i]->src(0))) return false;
    }
    return substitute(offset_of(k.ends[0]), onto(k.ranges, n.ranges)) == n.offset;
  }

  // Every access of a slot below root is at this offset.
  static bool accessed_at(std::span<const UOp> roots, uint32_t slot, const UOp& offset) {
    for (const Node* n : toposort(roots)) {
      if (n->op != Op::Index || slot_of(UOp(n)) != slot) continue;
      if (n->src_count > 2 || !(n->src(1) == offset)) return false;
    }
    return true;
  }

  // Into the loops of a nest: what it stored is taken from there.
  bool join_nest(Nest& n, const Candidate& k) const {
    std::set<uint32_t> all = n.reads;
    all.insert(k.reads.begin(), k.reads.end());
    all.insert(k.writes.begin(), k.writes.end());
    for (const auto& [slot, s] : n.stored) all.insert(slot);
    // What the fuser cut because it was too long for one loop stays cut.
    if (n.nodes + k.nodes > kMaxNestNodes || all.size() > kMaxStreams || !walks_alike(n, k))
      return false;
    std::vector<UOp> moved = substitute(k.ends, onto(k.ranges, n.ranges));
    if (!may_share_loops(n, k, moved)) return false;
    UOpMap<UOp> values;
    for (const Node* node : toposort(moved)) {
      if (node->op != Op::Load) continue;
      const auto it = n.stored.find(slot_of(node->src(0)));
      if (it == n.stored.end()) continue;
      const UOp& value = it->second.value;
      if (!(value->dtype == node->dtype) || !is_rounded(target(k.calls[0]), value)) return false;
      values.emplace(UOp(node), value);
    }
    add_ends(n, values.empty() ? moved : substitute(moved, values));
    return true;
  }

  // Whether a register has it as memory does.
  static bool is_rounded(const Target& t, const UOp& value) {
    return survives_in_register(value->dtype) || value->op == Op::Cast ||
           (value->dtype == DType::F16 && t.features.f16 && is_alu(value->op));
  }
  bool may_share_loops(const Nest& n, const Candidate& k, std::span<const UOp> moved) const {
    auto other_slot = [&](const Nest& nest, uint32_t slot) {  // the same memory by another name
      auto alias = [&](uint32_t s) { return s != slot && memory_[s] == memory_[slot]; };
      return std::any_of(nest.reads.begin(), nest.reads.end(), alias) ||
             std::any_of(nest.stored.begin(), nest.stored.end(),
                         [&](const auto& s) { return alias(s.first); });
    };
    for (uint32_t w : k.writes) {
      if (n.stored.count(w) || other_slot(n, w)) return false;
      if (n.reads.count(w) && !accessed_at(n.ends, w, n.offset)) return false;
    }
    for (uint32_t r : k.reads) {
      if (touches(n, r, true) && other_slot(n, r)) return false;
      if (n.stored.count(r) && !accessed_at(moved, r, n.offset)) return false;
    }
    return true;
  }

  // What has one loop over all elements walks them in the other's loops.
  bool join_reader(Nest& n, const Candidate& k) {
    if (n.ranges.size() == k.ranges.size()) return join_nest(n, k);
    const auto is_reduce = [](const Node* node) { return node->op == Op::Reduce; };
    Nest nest = n;
    Candidate reader = k;
    if (n.ranges.size() == 1) {
      std::vector<UOp> ends = n.ends;
      if (std::ranges::any_of(toposort(ends), is_reduce)) return false;
      nest = {};
      nest.ranges = n.ranges;
      if (!cut_loop(nest.ranges, ends, k.ranges)) return false;
      add_ends(nest, ends);
      nest.offset = offset_of(ends[0]);
    } else if (k.ranges.size() == 1) {
      if (!cut_loop(reader.ranges, reader.ends, n.ranges)) return false;
    }
    if (!join_nest(nest, reader)) return false;
    n = std::move(nest);
    return true;
  }

  // One loop as several of these extents, if they walk as many elements.
  bool cut_loop(std::vector<UOp>& ranges, std::vector<UOp>& ends, const std::vector<UOp>& like) {
    const UOp one = ranges[0];
    UOp at = index_const(0);
    std::vector<UOp> loops;
    for (const UOp& r : like) {
      loops.push_back(range(r->src(0), next_range_++, AxisKind::Loop));
      at = at * r->src(0)->const_int() + loops.back();
    }
    if (extent(loops) != one->src(0)->const_int()) return false;
    ends = with_loops(ends, {{one, simplify(at)}}, one, loops);
    ranges = std::move(loops);
    return true;
  }

  void add_nest(Group& g, const Candidate& k) {
    Nest n;
    for (const UOp& r : k.ranges)
      n.ranges.push_back(range(r->src(0), next_range_++, AxisKind::Loop));
    const std::vector<UOp> moved = substitute(k.ends, onto(k.ranges, n.ranges));
    n.offset = offset_of(moved[0]);
    add_ends(n, moved);
    g.nests.push_back(std::move(n));
    g.elements += k.elements;
    g.loops += k.loops;
  }
  static void add_ends(Nest& n, std::span<const UOp> moved) {
    for (const UOp& end : moved) {
      const UOp& index = end->src(0)->src(0);
      n.stored[slot_of(index)] = {index->src(1), end->src(0)->src(1)};
      n.ends.push_back(end);
    }
    n.nodes = toposort(n.ends).size();
    for (const Node* node : toposort(moved)) {
      if (node->op == Op::Load) n.reads.insert(slot_of(node->src(0)));
    }
  }

  const Group& group_of(uint32_t last) const {
    return *std::ranges::find_if(groups_, [&](const Group& g) { return g.calls.back() == last; });
  }
  // A temporary that only its own group reads is never stored.
  Call merged(const Group& g) const {
    std::vector<UOp> ends;
    for (const Nest& n : g.nests) {
      for (const UOp& end : n.ends) {
        if (is_needed(slot_of(end->src(0)->src(0)), {g.calls})) ends.push_back(end);
      }
    }
    return call_of(g.device, ends);
  }

  std::vector<Candidate> candidates_;
  std::vector<Group> groups_;
  int32_t next_range_ = 0;
};

}  // namespace

std::vector<Call> merge_kernels(Schedule& s, std::span<const uint32_t> memory,
                                const TargetOf& target_of, std::span<const Call> calls) {
  return Merger(s, memory, target_of, calls).run();
}

}  // namespace tuff::sched

#include "kernel/analysis/ranges.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "ir/kernel_floor.h"

namespace tuff::kernel {

using namespace ir;

RangeDeps::RangeDeps(const UOp& root) {
  for (const Node* n : toposort(root)) {
    const UOp u(n);
    memo_.emplace(u, compute(u));
  }
}

RangeMask RangeDeps::bit(const UOp& range) {
  for (size_t i = 0; i < ranges_.size(); i++) {
    if (ranges_[i] == range) return RangeMask(1) << i;
  }
  TUFF_CHECK(ranges_.size() < 64, "a kernel has more than 64 ranges");
  ranges_.push_back(range);
  return RangeMask(1) << (ranges_.size() - 1);
}

RangeMask RangeDeps::kinds(bool (*test)(AxisKind)) const {
  RangeMask m = 0;
  for (size_t i = 0; i < ranges_.size(); i++) {
    if (test(kind_of(ranges_[i].get()))) m |= RangeMask(1) << i;
  }
  return m;
}

RangeMask RangeDeps::kinds(AxisKind k) const {
  RangeMask m = 0;
  for (size_t i = 0; i < ranges_.size(); i++)
    m |= RangeMask(kind_of(ranges_[i].get()) == k) << i;
  return m;
}

int32_t RangeDeps::free_id() const {
  int32_t next = 0;
  for (const UOp& r : ranges_) next = std::max(next, r->get<RangeArg>().id + 1);
  return next;
}

RangeMask RangeDeps::of(const UOp& u) {
  if (auto it = memo_.find(u); it != memo_.end()) return it->second;
  const RangeMask m = compute(u);
  memo_.emplace(u, m);
  return m;
}

RangeMask RangeDeps::compute(const UOp& u) {
  if (u->op == Op::Range) return bit(u) | of(u->src(0));
  RangeMask m = 0;
  if (u->op == Op::Reduce || u->op == Op::End) {
    // A loop with as many iterations as another one says stays inside of that.
    m = of(u->src(0));
    RangeMask closed = 0;
    for (const UOp& s : u->src().subspan(1)) {
      if (s->op == Op::Range) closed |= bit(s), m |= of(s->src(0));
    }
    return m & ~closed;
  }
  if (u->op == Op::Dot) {
    m = of(u->src(0)) | of(u->src(1));
    for (const UOp& r : dot_lanes(u.get())) m &= ~of(r);
    return m | of(u->src(2));
  }
  for (const UOp& s : u->src()) m |= of(s);
  if (u->op == Op::Barrier) {
    m &= ~kinds([](AxisKind k) {
      return is_lane(k) || k == AxisKind::Local || k == AxisKind::GroupReduce ||
             k == AxisKind::Subgroup;
    });
  }
  return m;
}

std::vector<UOp> RangeDeps::list(RangeMask m) const {
  std::vector<UOp> out;
  for (size_t i = 0; i < ranges_.size(); i++) {
    if (m >> i & 1) out.push_back(ranges_[i]);
  }
  std::ranges::sort(out, {}, [](const UOp& r) { return r->get<RangeArg>().id; });
  return out;
}

int64_t extent(std::span<const UOp> ranges) {
  int64_t n = 1;
  for (const UOp& r : ranges) n *= r->src(0)->max;
  return n;
}

UOp flat_index(std::span<const UOp> ranges, UOp outer) {
  for (const UOp& r : ranges) outer = outer * r->src(0) + r;
  return outer;
}

UOp fold_lanes(RangeDeps& deps, Op op, const UOp& value, std::span<const UOp> lanes) {
  std::vector<UOp> src{value};
  int64_t copies = 1;
  for (const UOp& r : lanes) {
    if (deps.of(value) & deps.bit(r)) {
      src.push_back(r);
    } else {
      copies *= r->src(0)->max;
    }
  }
  UOp y = src.size() > 1 ? make(Op::Reduce, value->dtype, src, ReduceArg{op, {}}) : value;
  if (copies == 1 || op == Op::Max || y->dtype == DType::Bool) return y;
  if (op == Op::Add) return alu(Op::Mul, {y, constant(Scalar::of_int(y->dtype, copies))});
  const UOp once = y;
  for (int64_t i = 1; i < copies; i++) y = alu(Op::Mul, {y, once});
  return y;
}

UOp rebuild(const UOp& root, const RebuildFn& fn) {
  const std::vector<const Node*> order = toposort(root);
  std::unordered_map<const Node*, UOp> mapped;  // keys live: root holds them
  mapped.reserve(order.size() * 2);
  std::vector<UOp> src;
  for (const Node* n : order) {
    src.clear();
    for (const UOp& s : n->src()) src.push_back(mapped.at(s.get()));
    const UOp old(n);
    UOp made = fn(old, src);
    mapped.emplace(n, made ? std::move(made) : with_src(old, src));
  }
  return mapped.at(root.get());
}

std::vector<int64_t> digit_cuts(const UOp& r, std::span<const Node* const> order) {
  std::unordered_map<const Node*, int64_t> unit{{r.get(), 1}};
  std::vector<int64_t> cuts;
  for (const Node* n : order) {
    if ((n->op != Op::FloorDiv && n->op != Op::FloorMod) || !n->src(1)->is_const()) continue;
    if (n->src(1)->const_int() < 1) continue;
    const auto of = unit.find(n->src(0).get());
    if (of == unit.end()) continue;
    const int64_t cut = of->second * n->src(1)->const_int();
    unit.emplace(n, n->op == Op::FloorDiv ? cut : of->second);
    if (cut > 1 && cut < r->src(0)->const_int()) cuts.push_back(cut);
  }
  cuts.push_back(r->src(0)->const_int());
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (size_t i = 1; i < cuts.size(); i++)
    if (cuts[i] % cuts[i - 1] != 0) return {};
  return cuts;
}

bool is_made_besides(const Node* reduce, std::span<const Node* const> order, RangeDeps& deps) {
  const RangeMask own = deps.of(UOp(reduce));
  return std::ranges::any_of(order, [&](const Node* n) {
    if (n->op != Op::Reduce || !std::ranges::equal(closed_ranges(n), closed_ranges(reduce)))
      return false;
    const RangeMask all = deps.of(UOp(n));
    return own != all && (own & ~all) == 0;
  });
}

namespace {

// What two reductions must agree on to run in one loop.
using LoopKey =
    std::tuple<RangeMask /*own*/, RangeMask /*outer*/, int /*depth of reductions below*/>;

struct LoopKeys {
  std::unordered_map<const Node*, LoopKey> of_reduce;
  std::map<RangeMask, LoopKey> holder;  // by single range bit: who keeps the range
  bool conflict = false;
};

// Of every node the ranges that are open at all its users: where it may stand.
std::unordered_map<const Node*, RangeMask> open_at_users(std::span<const Node* const> order,
                                                         RangeDeps& deps) {
  std::unordered_map<const Node*, RangeMask> open;
  for (size_t i = order.size(); i-- > 0;) {
    const Node* n = order[i];
    RangeMask own = 0;
    if (n->op == Op::Reduce || n->op == Op::End)
      for (const UOp& r : closed_ranges(n)) own |= deps.bit(r);
    const RangeMask inside = open[n] | own;
    for (const UOp& s : n->src()) {
      const auto [it, fresh] = open.emplace(s.get(), inside);
      if (!fresh) it->second &= inside;
    }
  }
  return open;
}

// As those of a reduction of the same ranges whose outputs are more: its loop makes both, where all
// that need this one stand in that loop's.
void join_besides(LoopKeys& keys, std::span<const Node* const> order, RangeDeps& deps) {
  std::vector<std::pair<const Node*, LoopKey>> most_first;
  for (const Node* n : order)
    if (n->op == Op::Reduce) most_first.emplace_back(n, keys.of_reduce.at(n));
  std::ranges::stable_sort(most_first, std::greater(), [](const auto& reduction) {
    return std::popcount(std::get<1>(reduction.second));
  });
  const std::unordered_map<const Node*, RangeMask> open = open_at_users(order, deps);
  std::set<LoopKey> stay;
  for (const auto& [n, key] : most_first) {
    const auto& [own, outer, depth] = key;
    const LoopKey* best = nullptr;
    RangeMask all = 0;  // around one of those that may make it
    for (const LoopKey& other : stay) {
      const auto& [its_own, around, its_depth] = other;
      if (own != its_own || depth != its_depth) continue;
      if ((outer & ~around) || (around & ~open.at(n))) continue;
      if (!best || std::popcount(around) > std::popcount(std::get<1>(*best))) best = &other;
      all |= around;
    }
    if (best && std::get<1>(*best) == all) {
      keys.of_reduce[n] = *best;
    } else {
      stay.insert(key);
    }
  }
}

LoopKeys loop_keys(const UOp& ast, RangeDeps& deps, bool joins) {
  LoopKeys keys;
  std::unordered_map<const Node*, int> depth;
  const std::vector<const Node*> order = toposort(ast);
  for (const Node* n : order) {
    int d = 0;
    for (const UOp& s : n->src()) d = std::max(d, depth.at(s.get()));
    if (n->op == Op::Reduce) {
      RangeMask own = 0;
      for (const UOp& r : n->src().subspan(1)) own |= deps.bit(r);
      keys.of_reduce[n] = {own, deps.of(UOp(n)), d};
      d++;
    }
    depth[n] = d;
  }
  // Rows that are kept have loops of their own (lower/kept_rows.cpp).
  const auto keeps = [](const Node* n) { return n->op == Op::Shared; };
  if (joins && std::ranges::none_of(order, keeps)) join_besides(keys, order, deps);
  for (const Node* n : order) {
    if (n->op != Op::Reduce) continue;
    const LoopKey& key = keys.of_reduce.at(n);
    for (const UOp& r : n->src().subspan(1)) {
      const auto [it, fresh] = keys.holder.emplace(deps.bit(r), key);
      if (!fresh && it->second != key) keys.conflict = true;
    }
  }
  return keys;
}

// A reduction over fresh ranges; reductions below that bind the old ones keep them.
UOp with_fresh_ranges(const UOp& reduce, UOpMap<UOp> renamed) {
  const UOpMap<UOp> fresh = renamed;
  for (const Node* n : toposort(reduce->src(0))) {
    if (n->op != Op::Reduce) continue;
    for (const UOp& r : n->src().subspan(1)) {
      if (fresh.count(r)) renamed.emplace(UOp(n), UOp(n));
    }
  }
  std::vector<UOp> src{substitute(reduce->src(0), renamed)};
  for (const UOp& r : reduce->src().subspan(1)) src.push_back(fresh.at(r));
  return with_src(reduce, src);
}

}  // namespace

UOp separate_loops(const UOp& ast, bool joins) {
  RangeDeps deps(ast);
  LoopKeys keys = loop_keys(ast, deps, joins);
  if (!keys.conflict) return ast;
  int32_t next_id = deps.free_id();
  std::map<LoopKey, UOpMap<UOp>> renames;
  const UOp separated = rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op != Op::Reduce) return {};
    const LoopKey& key = keys.of_reduce.at(old.get());
    const bool keeps = std::all_of(old->src().begin() + 1, old->src().end(), [&](const UOp& r) {
      return keys.holder.at(deps.bit(r)) == key;
    });
    if (keeps) return {};
    UOpMap<UOp>& renamed = renames[key];
    for (const UOp& r : old->src().subspan(1)) {
      if (!renamed.count(r)) renamed.emplace(r, range(r->src(0), next_id++, kind_of(r.get())));
    }
    return with_fresh_ranges(with_src(old, src), renamed);
  });
  // What stood inside of both of two reductions now stands in loops of each.
  return separate_loops(separated, joins);
}

}  // namespace tuff::kernel

#include "kernel/lower/access.h"

#include <algorithm>
#include <bit>
#include <set>

#include "graph/symbolic.h"
#include "graph/walk.h"

namespace tuff::kernel {

using namespace graph;

int64_t Access::run(const UOp& range) const {
  for (const auto& [r, n] : runs) {
    if (r == range) return n;
  }
  return 0;
}

int64_t Access::step(const UOp& range) const {
  for (const auto& [r, s] : steps) {
    if (r == range) return s;
  }
  return 0;
}

std::vector<Access> accesses(const UOp& ast, RangeDeps& deps) {
  std::vector<Access> out;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Load && n->op != Op::Store) continue;
    if (n->src(0)->op != Op::Index) continue;
    Access a;
    a.index = n->src(0);
    a.store = n->op == Op::Store;
    RangeMask otherwise = 0;  // than in runs of a power of two, one after the other
    for (const auto& [term, factor] : linear_form(a.index->src(1)).terms) {
      if (term->op == Op::Range) {
        a.steps.emplace_back(term, factor);
        otherwise |= deps.bit(term);
        continue;
      }
      a.irregular |= deps.of(term);
      const bool in_runs =
          term->op == Op::FloorDiv && term->src(0)->op == Op::Range && term->src(1)->is_const();
      if (in_runs) a.runs.emplace_back(term->src(0), term->src(1)->const_int());
      if (in_runs && factor == 1 && std::has_single_bit(uint64_t(a.runs.back().second))) {
        a.repeated |= deps.bit(term->src(0));
      } else {
        otherwise |= deps.of(term);
      }
    }
    a.repeated &= ~otherwise;
    std::erase_if(a.steps, [&](const auto& s) { return (deps.bit(s.first) & a.irregular) != 0; });
    if (a.index->src_count > 2) a.gate = deps.of(a.index->src(2));
    out.push_back(std::move(a));
  }
  return out;
}

std::optional<int64_t> longest_step(const std::vector<Access>& all, RangeDeps& deps, const UOp& r) {
  int64_t longest = 0;
  for (const Access& a : all) {
    if ((a.irregular | a.gate) & deps.bit(r)) return {};
    longest = std::max(longest, std::abs(a.step(r)));
  }
  return longest;
}

int64_t typical_step(const std::vector<Access>& all, RangeDeps& deps, const UOp& r) {
  int64_t longest = 0;
  for (const Access& a : all) {
    int64_t step = std::abs(a.step(r));
    if (a.irregular & deps.bit(r)) {
      UOpMap<UOp> others;
      for (const UOp& o : deps.ranges()) {
        if (o != r) others.emplace(o, index_const(0));
      }
      const UOp along = simplify(substitute(a.index->src(1), others));
      step = (along->max - along->min) / std::max<int64_t>(r->src(0)->max - 1, 1);
    }
    longest = std::max(longest, step);
  }
  return longest;
}

namespace {

// Ranges used other than in an offset, in gates or irregularly, or whose size is no number: they
// stay.
RangeMask pinned_ranges(const UOp& ast, RangeDeps& deps, const std::vector<Access>& all) {
  RangeMask pinned = 0;
  for (const Access& a : all) pinned |= a.irregular | a.gate;
  for (const UOp& r : deps.ranges()) {
    if (!r->src(0)->is_const()) pinned |= deps.bit(r);
  }
  std::set<const Node*> seen;
  std::vector<const Node*> stack{ast.get()};
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!seen.insert(n).second) continue;
    if (n->op == Op::Range) pinned |= deps.bit(UOp(n));
    if (n->op == Op::Index) continue;  // its offset is what may change; its gate is counted above
    const size_t values = n->op == Op::End || n->op == Op::Reduce ? 1 : n->src_count;
    for (const UOp& s : n->src().subspan(0, values)) stack.push_back(s.get());
    // What an offset loads (a gather) is a value like any other.
    if (n->op != Op::Load && n->op != Op::Store) continue;
    if (n->src(0)->op != Op::Index) continue;
    for (const Node* o : toposort(n->src(0)->src(1))) {
      if (o->op == Op::Load) stack.push_back(o);
    }
  }
  return pinned;
}

using RangeList = std::vector<UOp>;

struct Merger {
  RangeDeps& deps;
  std::vector<Access>& all;
  RangeMask pinned;
  UOpMap<UOp> map;       // old range -> 0 or the merged range
  UOpMap<int64_t> size;  // of a surviving range, merged ones included

  // Every list that has one of them has both, in this order and side by side.
  static bool adjacent(const std::vector<RangeList>& lists, const UOp& a, const UOp& b) {
    for (const RangeList& l : lists) {
      const auto at = std::find(l.begin(), l.end(), a);
      const bool has_b = std::find(l.begin(), l.end(), b) != l.end();
      if ((at != l.end()) != has_b) return false;
      if (has_b && (at + 1 == l.end() || !(at[1] == b))) return false;
    }
    return true;
  }
  bool walks_as_one(const UOp& a, const UOp& b) const {
    return std::all_of(all.begin(), all.end(),
                       [&](const Access& x) { return x.step(a) == x.step(b) * size.at(b); });
  }
  // a (outside) and b become one range that stands in b's place.
  void merge(std::vector<RangeList>& lists, const UOp& a, const UOp& b) {
    size[b] *= size.at(a);
    map[a] = index_const(0);
    for (RangeList& l : lists) std::erase(l, a);
    for (Access& x : all) std::erase_if(x.steps, [&](const auto& s) { return s.first == a; });
  }
};

}  // namespace

UOp merge_axes(const UOp& ast) {
  RangeDeps deps(ast);
  std::vector<RangeList> lists;
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::End || n->op == Op::Reduce)
      lists.emplace_back(n->src().begin() + 1, n->src().end());
  }
  if (std::none_of(lists.begin(), lists.end(), [](const RangeList& l) { return l.size() > 1; }))
    return ast;
  std::vector<Access> all = accesses(ast, deps);
  Merger m{deps, all, pinned_ranges(ast, deps, all), {}, {}};
  for (const UOp& r : deps.ranges()) m.size[r] = r->src(0)->max;
  for (size_t l = 0; l < lists.size(); l++) {
    for (size_t i = lists[l].size(); i-- > 1;) {
      const UOp a = lists[l][i - 1], b = lists[l][i];
      if (((deps.bit(a) | deps.bit(b)) & m.pinned) || kind_of(a.get()) != kind_of(b.get()))
        continue;
      if (!Merger::adjacent(lists, a, b) || !m.walks_as_one(a, b)) continue;
      m.merge(lists, a, b);
    }
  }
  if (m.map.empty()) return ast;
  for (const UOp& r : deps.ranges()) {
    if (m.map.count(r) || m.size.at(r) == r->src(0)->max) continue;
    m.map[r] = range(index_const(m.size.at(r)), r->get<RangeArg>().id, kind_of(r.get()));
  }
  const UOp merged = substitute(ast, m.map);
  return rebuild(merged, [](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op != Op::End && old->op != Op::Reduce) return {};
    std::vector<UOp> kept{src[0]};
    for (const UOp& s : src.subspan(1)) {
      if (!s->is_const()) kept.push_back(s);
    }
    return with_src(old, kept);
  });
}

}  // namespace tuff::kernel

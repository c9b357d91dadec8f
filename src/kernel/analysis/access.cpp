#include "kernel/analysis/access.h"

#include <algorithm>
#include <bit>
#include <set>

#include "ir/symbolic.h"
#include "ir/walk.h"

namespace tuff::kernel {

using namespace ir;

namespace {

int64_t value_of(const UOp& range, const std::vector<std::pair<UOp, int64_t>>& values) {
  for (const auto& [r, v] : values) {
    if (r == range) return v;
  }
  return 0;
}

// A range taken apart: digits of it, as its blocks (r / n) and what is in them (r % n).
struct Digit {
  const Node* range = nullptr;  // null: the term is none
  int64_t below = 1, size = 0;  // (range / below) % size; 0: all that is above
};

Digit digit_of(const Node* term) {
  Digit d;
  if (term->op == Op::FloorMod && term->src(1)->is_const()) {
    d.size = term->src(1)->const_int();
    term = term->src(0).get();
  }
  if (term->op == Op::FloorDiv && term->src(1)->is_const()) {
    d.below = term->src(1)->const_int();
    term = term->src(0).get();
  }
  if (term->op == Op::Range) d.range = term;
  return d;
}

int64_t power_of_two_in(int64_t n) { return n & -n; }

// The offset's terms are digits of ranges: neighbours within all of them are a piece.
std::vector<Access::Piece> pieces_of(const LinearForm& offset, RangeDeps& deps) {
  struct Walk {
    const Node* range;
    int64_t piece, factor;
  };
  std::vector<Walk> walks;
  RangeMask other = 0;
  for (const auto& [term, factor] : offset.terms) {
    const Digit d = digit_of(term.get());
    if (!d.range) {
      other |= deps.of(term);
      continue;
    }
    auto w = std::ranges::find(walks, d.range, &Walk::range);
    if (w == walks.end()) w = walks.insert(w, {d.range, int64_t(1) << 20, 0});
    if (d.below > 1)
      w->piece = std::min(w->piece, power_of_two_in(d.below));
    else if (d.size > 0)
      w->piece = std::min(w->piece, power_of_two_in(d.size));
    if (d.below == 1) w->factor += factor;
  }
  std::vector<Access::Piece> out;
  for (const Walk& w : walks) {
    const bool near = w.factor == 0 || w.factor == 1;
    if (near && !(other & deps.bit(UOp(w.range))))
      out.push_back({UOp(w.range), w.piece, w.factor == 1});
  }
  return out;
}

}  // namespace

int64_t Access::run(const UOp& range) const { return value_of(range, runs); }

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
    const LinearForm offset = linear_form(a.index->src(1));
    a.pieces = pieces_of(offset, deps);
    for (const auto& [term, factor] : offset.terms) {
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
    std::erase_if(a.pieces, [&](const auto& p) { return !(deps.bit(p.range) & a.irregular); });
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

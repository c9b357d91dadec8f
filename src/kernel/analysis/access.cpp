#include "kernel/analysis/access.h"

#include <algorithm>
#include <bit>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"

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

int64_t Access::step(const UOp& range) const { return value_of(range, steps); }

std::set<const Node*> stored_params(const UOp& ast) {
  std::set<const Node*> out;
  for (const Node* n : toposort(ast)) {
    const Node* memory = n->op == Op::Store ? accessed_memory(n) : nullptr;
    if (memory && memory->op == Op::Param) out.insert(memory);
  }
  return out;
}

bool reads_any(const UOp& value, const std::set<const Node*>& memory) {
  return std::ranges::any_of(toposort(value), [&](const Node* n) {
    return n->op == Op::Load && memory.contains(accessed_memory(n));
  });
}

std::vector<Access> accesses(const UOp& ast, RangeDeps& deps) {
  std::vector<Access> out;
  for (const Node* n : toposort(ast)) {
    if (!accessed_memory(n)) continue;
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
      if (in_runs && factor == 1 && std::has_single_bit(uint64_t(term->src(1)->const_int()))) {
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

}  // namespace tuff::kernel

// reorder_reductions, join_gathered_axes: see ranges.h.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "ir/walk.h"
#include "kernel/analysis/gathered_dot.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// A digit of a range in mixed radix: (range / below) % size.
struct Digit {
  int64_t below, size;
  UOp walk;
};

// The fastest first.
std::vector<Digit> digits_of(const UOp& r, std::span<const Node* const> order, int32_t next_id) {
  std::vector<Digit> digits;
  int64_t below = 1;
  for (const int64_t cut : digit_cuts(r, order)) {
    const int64_t size = cut / below;
    digits.push_back({below, size, range(index_const(size), next_id++, AxisKind::Reduce)});
    below = cut;
  }
  return digits;
}

UOp joined(std::span<const Digit> digits) {
  UOp at = index_const(0);
  for (const Digit& d : digits) at = at + d.walk * d.below;
  return at;
}

// How a load of narrow numbers walks the digits.
struct PackedLoad {
  std::vector<bool> repeats;  // by digit: the same element again
  int64_t elements = 0;       // that it walks
  int64_t together = 1;       // the most neighbours that begin a word
};

std::optional<PackedLoad> packed_load(const Node& index, const UOp& r,
                                      std::span<const Digit> digits) {
  constexpr int64_t kWord = 4;
  const auto bytes = int64_t(size_bytes(index.dtype));
  if (bytes >= kWord || without_after(index.src(0).get())->op != Op::Param) return {};
  const LinearForm f = linear_form(simplify(substitute(index.src(1), {{r, joined(digits)}})));
  PackedLoad load{{}, 1, 1};
  int64_t others = f.constant;  // the greatest common divisor of all steps but the first digit's
  for (const auto& [term, factor] : f.terms) {
    if (term != digits[0].walk) others = std::gcd(others, factor);
    if (term->op == Op::Range) continue;
    for (const Digit& d : digits)
      if (contains(toposort(term), d.walk.get())) return {};
  }
  const auto step = [&](const Digit& d) {
    const auto it = std::ranges::find(f.terms, d.walk, &std::pair<UOp, int64_t>::first);
    return it == f.terms.end() ? 0 : it->second;
  };
  if (step(digits[0]) != 1) return {};
  for (const Digit& d : digits) {
    load.repeats.push_back(step(d) == 0);
    load.elements *= step(d) == 0 ? 1 : d.size;
  }
  if (std::ranges::find(load.repeats, true) == load.repeats.end()) return {};
  const auto begins_word = [&](int64_t n) { return digits[0].size % n == 0 && others % n == 0; };
  while (2 * load.together * bytes <= kWord && begins_word(2 * load.together)) load.together *= 2;
  return load;
}

// The range's value where its digits are walked in this order, the fastest first.
UOp in_order(const UOp& r, std::span<const Digit> digits) {
  UOp at = index_const(0);
  int64_t below = 1;
  for (const Digit& d : digits) {
    at = at + floormod(floordiv(r, below), d.size) * d.below;
    below *= d.size;
  }
  return simplify(at);
}

// Neighbours in a word, then what reads that word again, then the words.
UOp reordered(const UOp& r, std::span<const Digit> digits, const PackedLoad& load) {
  std::vector<Digit> order;
  const Digit& first = digits[0];
  if (load.together > 1) order.push_back({1, load.together, {}});
  for (const bool repeats : {true, false}) {
    for (size_t i = 0; i < digits.size(); i++) {
      if (load.repeats[i] != repeats) continue;
      if (i > 0)
        order.push_back(digits[i]);
      else if (first.size > load.together)
        order.push_back({load.together, first.size / load.together, {}});
    }
  }
  return in_order(r, order);
}

// The ranges of sums whose other reductions, if any, fold the same ones.
std::vector<std::vector<UOp>> gathered_sums(std::span<const Node* const> order, RangeDeps& deps,
                                            int64_t lanes) {
  const auto folds = [](const Node* n) {
    return std::vector<UOp>(closed_ranges(n).begin(), closed_ranges(n).end());
  };
  std::vector<std::vector<UOp>> out;
  for (const Node* n : order) {
    if (n->op != Op::Reduce || n->src_count < 3 || !gathered_factor(n, deps, lanes)) continue;
    const std::vector<UOp> ranges = folds(n);
    const bool alone = std::ranges::all_of(order, [&](const Node* other) {
      return other->op != Op::Reduce || folds(other) == ranges ||
             std::ranges::none_of(ranges, [&](const UOp& r) { return contains(folds(other), r); });
    });
    if (alone) add_once(out, ranges);
  }
  return out;
}

}  // namespace

UOp join_gathered_axes(const UOp& ast, int64_t lanes) {
  const std::vector<const Node*> order = toposort(ast);
  RangeDeps deps(ast);
  int32_t next_id = deps.free_id();
  UOpMap<UOp> places, joined;  // of each range, and of the first one of each sum
  for (const std::vector<UOp>& ranges : gathered_sums(order, deps, lanes)) {
    const UOp all = range(index_const(extent(ranges)), next_id++, AxisKind::Reduce);
    int64_t below = 1;
    for (size_t i = ranges.size(); i-- > 0; below *= ranges[i]->src(0)->max)
      places.emplace(ranges[i], floormod(floordiv(all, below), ranges[i]->src(0)->max));
    joined.emplace(ranges[0], all);
  }
  if (places.empty()) return ast;
  return simplify(rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (const auto it = places.find(old); it != places.end()) return it->second;
    if (old->op != Op::Reduce) return {};
    const auto it = joined.find(old->src(1));
    return it == joined.end() ? UOp() : with_src(old, sources(src[0], std::array{it->second}));
  }));
}

UOp reorder_reductions(const UOp& ast) {
  const std::vector<const Node*> order = toposort(ast);
  const int32_t next_id = RangeDeps(ast).free_id();
  UOpMap<UOp> places;
  for (const Node* n : order) {
    if (n->op != Op::Range || kind_of(n) != AxisKind::Reduce || !n->src(0)->is_const()) continue;
    const UOp r(n);
    const std::vector<Digit> digits = digits_of(r, order, next_id);
    if (digits.size() < 2) continue;
    std::optional<PackedLoad> main;
    for (const Node* x : order) {
      if (x->op != Op::Load) continue;
      const std::optional<PackedLoad> load = packed_load(*x->src(0), r, digits);
      if (load && (!main || load->elements > main->elements)) main = load;
    }
    if (main) places.emplace(r, reordered(r, digits, *main));
  }
  if (places.empty()) return ast;
  return simplify(rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (const auto it = places.find(old); it != places.end()) return it->second;
    if (old->op != Op::Reduce && old->op != Op::End) return {};
    std::vector<UOp> closed(old->src().begin(), old->src().end());
    closed[0] = src[0];
    return with_src(old, closed);
  }));
}

}  // namespace tuff::kernel

// Symbolic integers: bounds, and the div/mod simplifier that is the heart of the compiler.
// Called by sched (index arithmetic of movement ops) and kernel. Works on Index and Bool nodes.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

class RuleSet;
const RuleSet& symbolic_rules();  // constant folding, identities, div/mod, comparisons
// Rewrite with symbolic_rules(). Range and Special nodes stay as they are, their sizes too. Results
// are remembered across calls in a bounded cache that keeps their nodes alive;
// drop_simplify_cache() empties it (leak tests).
UOp simplify(const UOp& x);
void drop_simplify_cache();
// Simplifies x knowing that `condition` holds (bounds of variables tightened by its conjuncts). The
// result agrees with x wherever the condition is true, and may be anything elsewhere. x is an Index
// or Bool expression; it must not bind the ranges that the condition speaks of (Reduce, End).
UOp simplify_given(const UOp& x, const UOp& condition);
// Whether x is proven to lie in 0 .. count-1 wherever the condition holds.
bool is_inside_given(const UOp& x, int64_t count, const UOp& condition);
// An equal condition: conjuncts that divide, each simplified where the others hold.
UOp simplify_conjunction(const UOp& condition);
std::vector<UOp> conjuncts(const UOp& condition);
// Bounds of an Index expression that also know what its own bounds do not: that a Range is below its
// symbolic size, and how far a quotient of extents is from its dividend.
std::pair<int64_t, int64_t> tight_bounds(const UOp& x);

// x as a sum of terms coefficient*term plus a constant; terms are no Adds and no constants.
struct LinearForm {
  std::vector<std::pair<UOp, int64_t>> terms;
  int64_t constant = 0;
};
LinearForm linear_form(const UOp& x);
UOp from_linear_form(const LinearForm& f);
// The constant step of x in `leaf`: x(leaf+1)-x(leaf), where x is affine in it; nullopt if it is
// not.
std::optional<int64_t> coefficient(const UOp& x, const UOp& leaf);

}  // namespace tuff::ir

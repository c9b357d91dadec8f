// Symbolic integers: bounds, and the div/mod simplifier that is the heart of the compiler.
// Called by sched (index arithmetic of movement ops) and kernel. Works on Index and Bool nodes.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "graph/pattern.h"
#include "graph/uop.h"

namespace tuff::graph {

const RuleSet& symbolic_rules();        // constant folding, identities, div/mod, comparisons
UOp simplify(const UOp& x);             // rewrite with symbolic_rules()
// Simplifies x knowing that `condition` holds (bounds of variables tightened by its conjuncts).
UOp simplify_given(const UOp& x, const UOp& condition);
std::vector<UOp> conjuncts(const UOp& condition);

// x as a sum of terms coefficient*term plus a constant; terms are no Adds and no constants.
struct LinearForm { std::vector<std::pair<UOp, int64_t>> terms; int64_t constant = 0; };
LinearForm linear_form(const UOp& x);
UOp from_linear_form(const LinearForm& f);
// The constant step of x in `leaf`: x(leaf+1)-x(leaf), where x is affine in it; nullopt if it is not.
std::optional<int64_t> coefficient(const UOp& x, const UOp& leaf);
// Largest known power-of-two-or-other constant that divides x for all values.
int64_t known_divisor(const UOp& x);

}  // namespace tuff::graph

// Arithmetic on linear forms: sums of coefficient*term plus a constant, kept in canonical order.
// Called by the symbolic rules. Must never know which rule asks.
#pragma once

#include <optional>

#include "base/arith.h"
#include "ir/symbolic.h"

namespace tuff::ir {

using Wide = __int128;
struct Interval {
  Wide lo, hi;
};

// The canonical order of terms: structural, so that equal graphs built in another order agree.
// Variables by name, then ranges by number, then launch coordinates, then everything else.
int compare_structure(const UOp& a, const UOp& b);

// into += scale * x, looking through Add, Sub, Neg and products with constants; false on overflow
// of a coefficient (into is then of no use).
bool add_scaled(LinearForm& into, const UOp& x, int64_t scale);
bool add_scaled(LinearForm& into, const LinearForm& f, int64_t scale);
bool add_term(LinearForm& into, const UOp& term, int64_t coefficient);
// The form of x; nullopt on overflow.
std::optional<LinearForm> form_of(const UOp& x);
std::optional<LinearForm> difference(const UOp& x, const UOp& y);
// f*g, with products of terms as sorted chains of factors.
std::optional<LinearForm> multiply(const LinearForm& f, const LinearForm& g);
std::vector<UOp> factors(const UOp& term);
UOp product(std::vector<UOp> factors);

// Whether x is already spelled the way from_linear_form would spell f.
bool is_spelled(const UOp& x, const LinearForm& f);
bool same_terms(const LinearForm& a, const LinearForm& b);
bool opposite_terms(const LinearForm& a, const LinearForm& b);

// Bounds by interval arithmetic.
Interval interval(const LinearForm& f);
// Bounds that also know that a Range is below its symbolic size.
Interval tight_interval(const LinearForm& f);
// Far enough inside 64 bits that adding or subtracting a divisor cannot overflow.
inline bool is_finite(const Interval& i) { return i.lo > INT64_MIN / 2 && i.hi < INT64_MAX / 2; }


}  // namespace tuff::ir

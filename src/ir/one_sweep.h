// Reductions over rows that are kept in fast memory, in a form that one sweep over a row can make:
// block after block of it, so that no row need be there as a whole. A sum of exponentials of what a
// maximum is subtracted from (softmax) does not have to wait for that maximum: with a larger one
// all that was summed so far is scaled. (Online softmax: Milakov and Gimelshein, arXiv:1805.02867.)
// Called by sched, which asks whether rows need be whole, and by kernel. Knows nothing of targets.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// Factors that reductions give and that are the same for all elements of a kept row leave the row
// and the sums that read it, as a softmax's quotient does; sums of what a row is filled with read
// the row. The same value but for rounding.
UOp with_factors_outside(const UOp& ast);

// The ranges that walk kept rows; nothing where rows are read or filled in another way, or where
// one reduction closes two of them.
std::optional<std::vector<UOp>> columns_of_rows(const UOp& ast);

// Reductions that have a loop in common, in the order in which they need each other.
struct OneSweep {
  UOp max;                  // which all of `scaled` need, and none else; empty: none needs another
  std::vector<UOp> scaled;  // each is proportional to 2**(-max * the exponent's factor)
  std::vector<UOp> others;  // which need none
  UOp exponential;          // one of the Exp2 that the maximum is subtracted in
  // By what a sum changes where the maximum does, from `before` to `after`.
  UOp scale(const UOp& before, const UOp& after) const;
};
// All reductions that close one of these ranges; nothing where one of them has to wait for another.
std::optional<OneSweep> one_sweep(const UOp& ast, std::span<const UOp> ranges);

}  // namespace tuff::ir

// What comes to each place, combined in sorted order: for GPUs, whose invocations would each go
// through all of a long index. Called by functions that store by index. docs/design/scatter.md.
#pragma once

#include <tuff/tensor.h>
#include "base/target.h"
#include "ir/uop.h"

namespace tuff::detail {

// Whether that is faster on a device than an index of n elements into so many places walked by their
// owners, each of which has `beside` elements.
bool is_faster_sorted(const Target& target, int64_t n, int64_t places, int64_t beside = 1);

// As scattered() along axis 1 of (1, places, beside), for values (1, n, beside) and an index (1, n)
// of all that is beside each other: Add, Mul or Max, equal places combined in the order of the index
// as a tree, the same for every run of a program.
Tensor scattered_sorted(const Tensor& target, const Tensor& value, const Tensor& index, ir::Op op);

// Whether a device had better sort an index before what it names is combined in rows of x (axis 0),
// of its own dtype; where any order will do, atomics are faster.
bool is_sorted_first(const Tensor& x, const Size& n);

// Rows of x (axis 0) that an index (n), from the start, has picked, -1 nothing: with a gradient that
// is summed in sorted order where that is faster.
Tensor picked_rows(const Tensor& picked, const Tensor& x, const Tensor& index);

}  // namespace tuff::detail

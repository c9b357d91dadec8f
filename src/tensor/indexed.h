// How lists of indices are taken apart, for reading and for writing what they pick. Called by
// indexing, index_assignment and view_link. Must never know of devices.
#pragma once

#include <utility>
#include <vector>

#include <tuff/tensor.h>
#include "ir/uop.h"

namespace tuff::detail {

// How many axes of the source the indices stand for; InvalidArgument for a second ellipsis.
int64_t consumed_axes(const std::vector<Index>& indices);

// What is left once numbers, slices, new axes and the ellipsis have been applied.
struct Indexed {
  Tensor x;
  std::vector<Tensor> at;  // integer tensors and the axes they stand on
  Axes axes;
  bool in_front = false;  // something that is no position stands between positions
};
Indexed apply_basic(const char* what, const Tensor& source, const std::vector<Index>& indices);

// NumPy's rule for the axes of tensors: a number beside them is a position as well, and where
// slices, new axes or an ellipsis stand between positions their axes go in front.
bool positions_apart(const std::vector<Index>& indices);

// The order of axes in which indexed ones are neighbours, from `first` on.
struct Neighbours {
  Axes order;
  int64_t first = 0;
};
Neighbours side_by_side(const Indexed& r);

// Index tensors on the axes `first`, `first`+1, ... as one index on all of them.
struct Places {
  Tensor linear;                       // in their common shape, I32; -1: outside
  Size count;                          // of its elements
  Size before, extent = 1, after = 1;  // elements off the indexed axes and on them
  Sizes sizes;                         // of what is picked
};
Places places_of(const Tensor& x, const std::vector<Tensor>& at, int64_t first);

// Positions on an axis of n elements, those from its end as well, from its start; -1: outside.
Tensor from_start(const Tensor& index, const Size& n);

// Rows of one axis; what is outside of it picks zeros.
Tensor rows_at(const Tensor& x, int64_t d, const Tensor& index);

// A part of a tensor, a range for each of its axes, and what is put there.
struct PutPart {
  std::vector<std::pair<Size, Size>> ranges;
  Tensor value;
};
ir::Pairs pairs_of(const std::vector<std::pair<Size, Size>>& ranges);
// The elements of one axis `step` apart, zeros between them.
Tensor spread(const Tensor& t, int64_t d, int64_t step);
// Puts it into a tensor that is no view: memory is written, what is still to be computed is
// replaced.
void put_here(const char* what, Tensor& x, const PutPart& part);

// ShapeError unless the mask has the extents of the axes from `d` on.
void require_mask(const char* what, const Tensor& x, int64_t d, const Tensor& mask);

}  // namespace tuff::detail

// The loops of a kernel's Ends: what they walk, and which element of one kernel another one reads.
// Called by the passes that put kernels together. Knows ASTs, nothing of memory or targets.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "graph/uop.h"

namespace tuff::sched {

// Stored and loaded again it is what it was; narrower floats may be kept wider in registers.
bool survives_in_register(DType t);
template <class T>
bool contains(const std::vector<T>& v, const std::type_identity_t<T>& x) {
  return std::find(v.begin(), v.end(), x) != v.end();
}
// By number.
std::vector<graph::UOp> ranges_below(const graph::UOp& u, graph::AxisKind kind);
int64_t extent(std::span<const graph::UOp> ranges);
graph::UOp offset_of(const graph::UOp& end);
// A reduction that walks some buffer element by element, once; one of what is repeated, as a
// product of matrices is, is none.
bool is_streamed(const graph::Node* reduce, std::span<const graph::UOp> loops);
// Which element of the producer's loops an offset of the reader is; empty where one of them does
// not walk each element once, in mixed radix.
std::optional<graph::UOpMap<graph::UOp>> loops_at(const graph::UOp& producer_end,
                                                  const graph::UOp& offset);

}  // namespace tuff::sched

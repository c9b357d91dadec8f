// The loops of a kernel's Ends: what they walk, and which element of one kernel another one reads.
// Called by the passes that put kernels together. Knows ASTs, nothing of memory or targets.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

// Stored and loaded again it is what it was; narrower floats may be kept wider in registers.
bool survives_in_register(DType t);
// Whether a node is a loop whose iterations have an order: its kernel takes part in no fusion.
bool is_ordered(const ir::Node* n);
// Whether all of a kernel's loops are of sizes known here and without an order, and no row is kept.
bool has_fixed_loops(std::span<const ir::Node* const> kernel);
// Ends in which some loops are expressions of others, which stand where `first` of these stood.
std::vector<ir::UOp> with_loops(std::span<const ir::UOp> ends, const ir::UOpMap<ir::UOp>& at,
                                const ir::UOp& first, std::span<const ir::UOp> loops);
// By number.
std::vector<ir::UOp> ranges_below(const ir::UOp& u, ir::AxisKind kind);
int64_t extent(std::span<const ir::UOp> ranges);
ir::UOp offset_of(const ir::UOp& end);
// A reduction that walks some buffer element by element, once; one of what is repeated, as a
// product of matrices is, is none.
bool is_streamed(const ir::Node* reduce, std::span<const ir::UOp> loops);
// How many vectors a sum of products multiplies a matrix by; 0: it is none of a matrix.
int64_t vectors_of(const ir::Node* reduce);
// Which element of the producer's loops an offset of the reader is; empty where one of them does
// not walk each element once, in mixed radix.
std::optional<ir::UOpMap<ir::UOp>> loops_at(const ir::UOp& producer_end, const ir::UOp& offset);

}  // namespace tuff::sched

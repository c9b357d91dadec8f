// Builders of the kernel floor, and what several passes ask of it. Called by sched, which makes
// kernels' ASTs, and by kernel, which rewrites them.
#pragma once

#include <algorithm>
#include <array>

#include "ir/walk.h"

namespace tuff::ir {

inline UOp int_const(DType t, int64_t v) { return constant(Scalar::of_int(t, v)); }

// An element of a Param, a Shared or what stands After one; an empty gate is true.
inline UOp make_index(const UOp& memory, const UOp& offset, const UOp& gate = {}) {
  return gate ? make(Op::Index, memory->dtype, {memory, offset, gate})
              : make(Op::Index, memory->dtype, {memory, offset});
}
inline UOp make_load(const UOp& place) { return make(Op::Load, place->dtype, {place}); }
inline UOp make_store(const UOp& place, const UOp& value) {
  return make(Op::Store, DType::Void, {place, value});
}

// The sources of an End, a Reduce or an After: what it is of, then what it closes or waits for.
template <class... Lists>
std::vector<UOp> sources(const UOp& first, const Lists&... lists) {
  std::vector<UOp> out{first};
  (out.insert(out.end(), lists.begin(), lists.end()), ...);
  return out;
}
template <class... Lists>
UOp make_end(const UOp& store, const Lists&... ranges) {
  return make(Op::End, DType::Void, sources(store, ranges...));
}
inline UOp make_barrier(std::span<const UOp> after) {
  return make(Op::Barrier, DType::Void, after);
}
inline UOp make_barrier(std::initializer_list<UOp> after) {
  return make(Op::Barrier, DType::Void, after);
}
// x itself if there is nothing to wait for.
template <class... Lists>
UOp make_after(const UOp& x, const Lists&... lists) {
  const std::vector<UOp> src = sources(x, lists...);
  return src.size() == 1 ? x : make(Op::After, x->dtype, src);
}
inline UOp make_after(const UOp& x, std::initializer_list<UOp> before) {
  return make_after(x, std::span<const UOp>(before.begin(), before.size()));
}

// The Index where both its own gate and this one are true.
inline UOp with_gate(const UOp& index, const UOp& gate) {
  return make_index(index->src(0), index->src(1),
                    index->src_count > 2 ? logical_and(index->src(2), gate) : gate);
}
// The Param or Shared that a Load or Store accesses; null: it is of a register, or another op.
inline const Node* accessed_memory(const Node* n) {
  const bool accesses = (n->op == Op::Load || n->op == Op::Store) && n->src(0)->op == Op::Index;
  return accesses ? without_after(n->src(0)->src(0).get()) : nullptr;
}
// Of a Register: of a number, or of a matrix.
inline int64_t register_number(const Node* reg) {
  const auto* matrix = std::get_if<MatrixArg>(&reg->arg);
  return matrix ? matrix->number : reg->get<int64_t>();
}
// The sum and the products in all lanes, one after the other.
inline UOp make_dot(const UOp& product, const UOp& sum, std::span<const UOp> lanes) {
  const std::array<UOp, 3> first{product->src(0), product->src(1), sum};
  std::vector<UOp> src(first.begin(), first.end());
  src.insert(src.end(), lanes.begin(), lanes.end());
  return make(Op::Dot, sum->dtype, src);
}
// The ranges that an End or a Reduce closes.
inline std::span<const UOp> closed_ranges(const Node* n) { return n->src().subspan(1); }
// The lanes whose products a Dot adds up.
inline std::span<const UOp> dot_lanes(const Node* n) { return n->src().subspan(3); }
// A number that no Range below has.
inline int32_t free_range_id(std::span<const UOp> roots) {
  int32_t next = 0;
  for (const Node* n : toposort(roots)) {
    if (n->op == Op::Range) next = std::max(next, n->get<RangeArg>().id + 1);
  }
  return next;
}

}  // namespace tuff::ir

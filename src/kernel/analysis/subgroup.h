// When lanes of a subgroup may hand values to each other, and when that pays. Called by the passes
// that make Shuffles and by the heuristics that count on them. Must never know a device's name.
//
// Which invocation is which lane is the device's business: kernels number their invocations by
// subgroup and lane where lanes are told apart, and count on all lanes being there.
#pragma once

#include <bit>

#include "base/target.h"

namespace tuff::kernel {

inline bool workgroup_holds_subgroup(const Target& t) {
  return t.subgroup_size <= t.max_invocations && t.subgroup_size <= t.max_local[0];
}
// 32-bit values: others need shaderSubgroupExtendedTypes.
inline bool shuffles(const Target& t, DType d) {
  return t.features.subgroup_shuffle && t.subgroup_size >= 2 && workgroup_holds_subgroup(t) &&
         size_bytes(d) == 4;
}
// A reduction shared by `width` of `invocations` that are neighbours: whether they are lanes of one
// subgroup, or whole subgroups, which hand each other their parts without memory.
inline bool folds_in_subgroups(const Target& t, int64_t width, int64_t invocations) {
  const int64_t lanes = t.subgroup_size;
  return shuffles(t, DType::F32) && t.features.full_subgroups &&
         std::has_single_bit(uint64_t(width)) && (lanes % width == 0 || width % lanes == 0) &&
         invocations % lanes == 0 && invocations <= int64_t(t.max_local[0]);
}

}  // namespace tuff::kernel

// When lanes of a subgroup may hand values to each other, and when that pays. Called by the passes
// that make Shuffles and by the heuristics that count on them. Must never know a device's name.
//
// A Shuffle exists where the workgroup is one subgroup: then which invocation is which lane does
// not matter, and all of them are there.
#pragma once

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
// A reduction shared by `width` invocations takes all their parts in each lane. Beyond 16 lanes a
// tree in workgroup memory does less.
inline bool folds_by_shuffles(const Target& t, int64_t width, DType d) {
  constexpr uint32_t kMostLanes = 16;
  return shuffles(t, d) && width == int64_t(t.subgroup_size) && t.subgroup_size <= kMostLanes;
}
// A load that all lanes would do alike costs more than a shuffle for each.
inline bool shares_loads(const Target& t, DType d) { return shuffles(t, d) && t.loads_are_expensive(); }

}  // namespace tuff::kernel

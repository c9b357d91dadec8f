// How long a dispatch would take on a chip: a function of what was counted, of the caches' counts
// and of the grid, and of nothing else. Each formula stands in docs/design/gpu-model.md. Called by
// profiler.cpp.
#pragma once

#include "emu/profile/cache_model.h"
#include "emu/profile/chip.h"

namespace tuff::emu::profile {

struct Grid {
  Residency residency;
  uint64_t groups = 1;
};

// Microseconds of each part, as if it were alone.
struct TimeParts {
  double issue = 0, lds = 0, l0 = 0, l2 = 0, mall = 0, dram = 0, latency = 0, launch = 0;
  // What the waves of a core keep busy in turn, instructions, workgroup memory and the caches on
  // the way to it, overlaps in part.
  double shared() const;
  double total() const;
  const char* limit() const;  // the name of the largest
};

TimeParts time_of(const Chip& chip, const Grid& grid, const DispatchCounts& counts,
                  const CacheCounts& caches);
// What no kernel that computes and touches as much could undercut; what caches kept for it, or keep
// of it, does not count as touched.
double roofline_us(const Chip& chip, const DispatchCounts& counts,
                   const CacheCounts& caches);

}  // namespace tuff::emu::profile

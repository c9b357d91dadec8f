// Runs: the instances of a load or store at neighbouring addresses, which one access takes. Called
// by SpirvMemory.
#pragma once

#include <optional>
#include <vector>

#include "render/spirv_body.h"

namespace tuff::render {

struct SpirvAccess {
  int instance;
  SpirvValue offset;
  std::optional<Id> gate;
  std::vector<int> also;  // other instances that load the same element
  int64_t least = 0;      // the offset's base and this are together 0 or more
};
struct SpirvRun {
  std::vector<SpirvAccess> items;  // neighbours, lowest address first
  uint32_t per_word = 1;           // so many of them are a word of the access, aligned to that
  // Of the first element's address, in bytes: a power of two up to the size of the run.
  uint32_t alignment(DType t) const;
};

// All instances of an op whose lanes are `mask`.
std::vector<SpirvAccess> accesses_of(SpirvBody& b, const ir::Node& index, kernel::LaneMask mask);
// Neighbours with one base and one gate together, as far as the Target's widest access; the rest
// singly. What loads may load an element once for several instances.
std::vector<SpirvRun> runs_of(const Target& t, std::vector<SpirvAccess> all, const ir::Node& index,
                              bool loads);

}  // namespace tuff::render

// The bytes that the lanes of an instruction access, with every check of an access: bounds,
// alignment, races, values that were never written. Called by memory_ops.cpp, atomics.cpp and
// matrix.cpp.
#pragma once

#include "emu/memory/lane_runs.h"
#include "emu/ptx/machine.h"

namespace tuff::emu::ptx {

struct LaneBytes {
  std::array<uint8_t*, kWarpLanes> at;
  uint32_t lanes = 0;      // that may go on
  uint32_t undefined = 0;  // lanes that load bytes which were never written
};

// What the lanes of an instruction have in common.
struct AccessShape {
  uint32_t bytes = 0;      // of a lane
  uint32_t alignment = 0;  // of its address
  AccessKind kind = AccessKind::Load;
  bool strong = false;    // volatile, relaxed and on (PTX ISA, 8.3)
  bool acquires = false;  // an atomic whose old value comes back
  Scope scope = Scope::Device;
};

// Addresses of the lanes by an address operand: within its space, or generic.
Addresses addresses_of(Warp& w, const MemoryForm& m, uint32_t lanes);
LaneBytes reach_lanes(Warp& w, const MemoryForm& m, const Addresses& at, uint32_t lanes,
                      const AccessShape& shape);
// What the stored bytes are worth: which lanes store values that were written. Local and parameter
// memory keep it; elsewhere such values are findings of Machine::require.
void mark_stored(Warp& w, const MemoryForm& m, const Addresses& at, uint32_t lanes,
                 uint32_t defined, uint32_t bytes);

}  // namespace tuff::emu::ptx

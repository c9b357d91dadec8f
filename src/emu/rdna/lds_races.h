// Races between the waves of a workgroup in LDS, byte by byte: two waves, one of them writing, with
// no barrier between. Told of accesses by memory_ops.cpp, of barriers by dispatch.cpp.
#pragma once

#include <memory>
#include <span>

#include "emu/memory/memory.h"
#include "emu/rdna/wave.h"

namespace tuff::emu::rdna {

// LDS as the hardware starts a workgroup with it.
void start_lds(Workgroup& group, uint32_t bytes);
// Notes a load or store and returns true, or returns false with nothing noted: it races with what
// another wave did since the last barrier.
bool note_lds(Wave& w, uint32_t at, uint32_t bytes, AccessKind kind);
// Notes any access. True if it races.
bool touch_lds(Wave& w, uint32_t at, uint32_t bytes, AccessKind kind);
// All waves of the group have come to a barrier. What a wave has not waited for goes on behind it:
// s_barrier orders waves, not their LDS operations.
void pass_barrier(Workgroup& group, std::span<const std::unique_ptr<Wave>> waves);

}  // namespace tuff::emu::rdna

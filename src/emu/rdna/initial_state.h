// The registers that the hardware starts a wave of gfx11 with. Called by dispatch.cpp for each
// wave.
// Source: LLVM, "User Guide for AMDGPU Backend", Initial Kernel Execution State; COMPUTE_PGM_RSRC1
// and 2 as there.
#pragma once

#include "base/split_mix.h"
#include "emu/rdna/dispatch.h"
#include "emu/rdna/machine.h"

namespace tuff::emu::rdna {

// The wave's number, group and machine are set. `random` fills what is undefined.
void set_initial_state(Wave& w, const Launch& launch, SplitMix64& random);

}  // namespace tuff::emu::rdna

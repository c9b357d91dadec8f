// Which bits of a register hold a value: compilers pack what has none beside what has one, shift and
// mask, and use that part alone. Looked at only where a register is not defined as a whole. Called
// by Control and by selections.
#pragma once

#include "emu/ptx/warp.h"

namespace tuff::emu::ptx {

// Executes an instruction with `bit_sources`, of which one that is not defined in all `lanes` may be
// known in part: finds out which bits of the results depend on bits that nobody wrote.
void execute_by_bits(Warp& w, const Instruction& i, uint32_t lanes);

// The same of an instruction `by_halves`; all sources are defined in `known` lanes.
void execute_by_halves(Warp& w, const Instruction& i, uint32_t lanes, uint32_t known);

// The bits of a lane of a register that hold a value.
uint64_t known_bits(const Frame& frame, uint32_t reg, uint32_t lane);
void set_known_bits(Frame& frame, uint32_t reg, uint32_t lane, uint64_t bits);

}  // namespace tuff::emu::ptx

// What an instruction of PTX costs on an NVIDIA GPU: its pipeline, machine instructions, cycles,
// floats. PTX is no machine code: this is what ptxas makes of an instruction where nothing around
// it changes that. Called by counters.cpp, once per instruction.
// Cycles: results per clock and SM of NVIDIA, "CUDA C++ Programming Guide" 12, 8.4.1, of the four
// partitions of an SM.
#pragma once

#include <string>

#include "emu/profile/counts.h"

namespace tuff::emu::ptx {

// `spelling` as the module has it; `target`: "sm_86".
profile::StepCost cost_of(const std::string& spelling, const std::string& target);

}  // namespace tuff::emu::ptx

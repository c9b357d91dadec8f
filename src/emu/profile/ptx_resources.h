// The registers of a thread and what is spilled: by NVIDIA's assembler where one is found, else by
// how much of the text's values live at once. Called by the profiler.
#pragma once

#include <string>

#include "emu/ptx/module.h"

namespace tuff::emu::profile {

struct Resources {
  uint32_t registers = 0;
  uint32_t spill_bytes = 0;  // of a thread: stores to memory that stands in for registers
  bool estimated = false;
};

// For a GPU: "sm_86".
Resources resources_of(const ptx::Module& module, const ptx::Function& kernel, const std::string& target);
// The most registers of 32 bits that hold values at once, those of called functions with it.
uint32_t live_registers(const ptx::Module& module, const ptx::Function& function);

}  // namespace tuff::emu::profile

// What NVIDIA's assembler of PTX says of kernels. Called by tests and by the emulator, which count
// registers and spills; nothing that it makes is kept, executed or shipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuff {

struct PtxasKernel {
  std::string name;
  uint32_t registers = 0;  // of a thread
  uint32_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
};

// For "sm_86". CompileError with what it says if it refuses the text; Unsupported without it.
std::vector<PtxasKernel> run_ptxas(const std::string& ptx, const std::string& architecture);
// The same, and nothing where there is none or where it refuses the text.
std::vector<PtxasKernel> ask_ptxas(const std::string& ptx, const std::string& architecture);

}  // namespace tuff

// Runs a gfx1100 kernel on the host: all workgroups of a launch, with the state that the hardware
// starts waves in. Called by the emulated GPU's command processors and by `tuff emu`.
// Source: LLVM, "User Guide for AMDGPU Backend", Kernel Descriptor and Initial Kernel Execution
// State.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "emu/rdna/finding.h"
#include "emu/rdna/memory.h"

namespace tuff::emu::rdna {

// The fields of a kernel descriptor that a launch needs.
struct Descriptor {
  uint32_t lds_bytes = 0;
  uint32_t scratch_bytes = 0;  // of a lane
  uint32_t kernarg_bytes = 0;
  int64_t entry_offset = 0;  // from the descriptor
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;
};

// The 64 bytes of a descriptor; throws InvalidArgument on fewer.
Descriptor parse_descriptor(std::span<const uint8_t> bytes);

struct Kernel {
  std::string name;
  std::span<const uint8_t> code;
  uint64_t code_address = 0;  // of the first byte of `code`
  uint64_t entry_address = 0;
  Descriptor descriptor;
};

struct Launch {
  uint64_t kernarg_address = 0;
  uint64_t packet_address = 0;  // of the dispatch packet, for kernels that ask for it
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::array<uint32_t, 3> group_size{32, 1, 1};
  uint32_t dynamic_lds_bytes = 0;
  uint64_t seed = 0;                            // of the order in which waves run
  uint64_t instruction_budget = 1'000'000'000;  // of all waves
};

struct Outcome {
  std::vector<Finding> findings;
  bool finished = false;  // false after a fault or a hang
  uint64_t instructions = 0;
  std::map<std::string, uint64_t> counts;  // of executed instructions by mnemonic
};

Outcome run(const Kernel& kernel, const Launch& launch, Memory& memory);

}  // namespace tuff::emu::rdna

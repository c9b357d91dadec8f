// Kernels as code objects and AQL packets name them: by descriptors. PM4 launches come in registers
// and need none of it.
// Source: LLVM, "User Guide for AMDGPU Backend", Kernel Descriptor and Initial Kernel Execution
// State.
#pragma once

#include <cstdint>
#include <string>

#include "emu/rdna/dispatch.h"

namespace tuff::emu::rdna {

// A kernel descriptor as it lies in memory.
struct Descriptor {
  uint32_t lds_bytes = 0;
  uint32_t scratch_bytes = 0;  // of a lane
  uint32_t kernarg_bytes = 0, reserved0 = 0;
  int64_t entry_offset = 0;  // from the descriptor
  uint32_t reserved1[5] = {};
  uint32_t rsrc3 = 0, rsrc1 = 0, rsrc2 = 0;
  uint16_t properties = 0, reserved2[3] = {};
};
static_assert(sizeof(Descriptor) == 64);

struct Kernel {
  std::string name;
  uint64_t entry_address = 0;
  Descriptor descriptor;
};

// One workgroup of one wave, with user registers in the order of the descriptor's properties; the
// packet is read by kernels that ask for it. The caller sets groups and sizes.
Launch launch_of(const Kernel& kernel, uint64_t kernarg_address, uint64_t packet_address = 0);

}  // namespace tuff::emu::rdna

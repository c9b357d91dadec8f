// Psp: the security processor of a GPU of RDNA3 (PSP 13.0.0), which checks and loads all firmware:
// its bootloader's mailbox, until its own system (sOS) runs, then a ring of commands with fences.
// Used by the start by PCI. Knows what is sent and in which order, not where files are.
// Sources: Linux, drivers/gpu/drm/amd/amdgpu/psp_v13_0.c (mailboxes), amdgpu_psp.c (psp_hw_start,
// psp_load_fw: the order; psp_cmd_submit_buf), psp_gfx_if.h (commands, frames, answers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "devices/amd/pci/firmware.h"
#include "devices/amd/pci/registers.h"

namespace tuff::devices::amd {

// Memory of the GPU that the host reaches through BAR 0. `address` is its processors' name for it.
struct VramWindow {
  std::byte* host = nullptr;
  uint64_t address = 0;
  uint64_t physical = 0;  // its offset in memory, as entries of page tables have it
  size_t size_bytes = 0;
};

inline constexpr uint64_t kPspAlignment = 1u << 20;  // of messages and of protected memory

struct PspMemory {
  VramWindow message;               // aligned; at least as large as the largest part
  VramWindow ring, command, fence;  // a page each
  VramWindow protected_memory;      // aligned (TMR); the host needs no part of it
};

class Psp {
 public:
  // InvalidArgument where memory is not as it has to be.
  Psp(const GpuRegisters& registers, const PspMemory& memory);
  // Whether its system runs: a driver has been here.
  bool is_alive() const { return registers_.read(reg::PspSignOfLife) != 0; }
  // Everything from the bootloader to RLC's start. What is wrong is DeviceLost, by a step's name.
  void start(const AmdFirmware& firmware);
  // Nothing is taken from the ring any more. Does nothing without a ring.
  void destroy_ring();

 private:
  struct Command;
  void load_by_bootloader(const SosComponent& component, uint32_t command);
  void load_sos(const AmdFirmware& firmware);
  void create_ring();
  uint32_t load_toc(const SosComponent& toc);
  void set_up_protected_memory(uint32_t size_bytes);
  void load(const FirmwarePart& part);
  void put_message(std::span<const uint8_t> bytes, const char* what);
  // What the answer says of protected memory's size.
  uint32_t submit(const Command& command, const char* what);

  const GpuRegisters& registers_;
  const PspMemory memory_;
  uint32_t fence_ = 0;
};

}  // namespace tuff::devices::amd

// BootRegisters: what registers of a GPU of Ampere or Ada say to who starts its system processor
// (GSP): how far its own start has come, what memory it has and what of that is protected (WPR2),
// which signatures it takes, and its ROM. Used by the boot by PCI. Starts nothing.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/common/inc/swref/published: nv_ref.h,
// ampere/ga102/dev_gc6_island.h, ampere/ga100/{dev_fuse,dev_fb}.h, turing/tu102/{dev_bus,dev_fb}.h,
// disp/v04_00/dev_disp.h (registers); kernel_gsp_ga100.c, kernel_sec2_ga100.c (fuses),
// kernel_gsp_tu102.c and mem_mgr_ga100.c (the screen's memory), kern_gpu_tu102.c (the start).
#pragma once

#include <cstdint>
#include <utility>

#include "devices/nv/pci/chip.h"
#include "devices/nv/pci/gsp_arguments.h"
#include "devices/pci_device.h"

namespace tuff::devices::nv {

class BootRegisters {
 public:
  // Waits end after `timeout_ms` with DeviceLost.
  BootRegisters(const PciDevice& device, uint64_t timeout_ms)
      : device_(device), timeout_ms_(timeout_ms) {}
  const Chip& chip() const;
  PciIdentity identity() const;
  // Until what the GPU does by itself after a reset has ended.
  void wait_for_own_start() const;
  // Whether the GPU takes programs that are signed for development alone.
  bool is_for_development() const;
  uint64_t memory_bytes() const;
  // Of the end of that memory, what the VBIOS has reserved. DeviceLost where it may not be read.
  uint64_t screen_bytes() const;
  // WPR2: begin and last page; {0, 0}: there is none.
  std::pair<uint64_t, uint64_t> protected_memory() const;
  bool has_protected_memory() const { return protected_memory().second != 0; }
  // Of a program of a falcon, by the id in its header: which version's signature is asked for.
  uint32_t fuse_version(uint64_t falcon, uint32_t ucode_id) const;
  // The VBIOS, with what is behind it.
  Bytes rom() const;
  // What FWSEC says that has gone wrong; 0: nothing.
  uint32_t frts_error() const;
  uint32_t sb_error() const;
  void wait_for_handoff() const;  // by a booter that was started again
  void ring_gsp() const;          // there are commands

 private:
  void wait_for(const char* what, uint64_t offset, uint32_t mask, uint32_t value) const;
  uint32_t read(uint64_t offset) const { return device_.read(0, offset); }
  const PciDevice& device_;
  const uint64_t timeout_ms_;
};

}  // namespace tuff::devices::nv

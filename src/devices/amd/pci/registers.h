// GpuRegisters: registers of a GPU's blocks by where the discovery table says that these begin, in
// BAR 5 or, beyond it, by index and data; and the flush of what the host has written to memory
// through BAR 0. Used by the start by PCI. Knows no sequence.
// Sources: Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_device.c (amdgpu_device_rreg and
// amdgpu_device_indirect_rreg), nbio_v4_3.c @00df051 (by which registers, remap of the flush),
// soc21.c (where to).
#pragma once

#include <cstdint>

#include "devices/amd/pci/discovery.h"
#include "devices/pci_device.h"

namespace tuff::devices::amd {

struct GpuRegister {
  const char* name;
  Hwid block;
  uint8_t segment;
  uint32_t offset;
};

namespace reg {
#define AMD_PCI_REGISTER(name, block, segment, offset) \
  inline constexpr GpuRegister name{#name, Hwid::block, segment, offset};
#include "devices/amd/pci/registers.def"
}  // namespace reg

class GpuRegisters {
 public:
  // Waits end after `timeout_ms` with DeviceLost.
  GpuRegisters(const PciDevice& device, const Discovery& discovery, uint64_t timeout_ms)
      : device_(device), discovery_(discovery), timeout_ms_(timeout_ms) {}
  // DeviceLost if the kernel refuses; Unsupported where the GPU has not the block or segment.
  uint32_t read(const GpuRegister& r) const;
  void write(const GpuRegister& r, uint32_t value) const;
  // Until its bits of `mask` are `value`, which is what `what` says has not happened.
  void wait_for(const char* what, const GpuRegister& r, uint32_t mask, uint32_t value) const;
  // Until it is not 0: what it is then.
  uint32_t wait_for_any(const char* what, const GpuRegister& r) const;

  // Once, before anything is flushed.
  void place_flush() const;
  // What the host has written through BAR 0 is in the GPU's memory.
  void flush_writes() const;
  [[noreturn]] void fail_wait(const char* what) const;
  uint64_t timeout_ms() const { return timeout_ms_; }
  const PciDevice& device() const { return device_; }

 private:
  uint64_t place(const GpuRegister& r) const;  // in bytes
  bool is_mapped(uint64_t at) const { return at + sizeof(uint32_t) <= device_.bar_bytes(kBar); }
  static constexpr size_t kBar = 5;
  const PciDevice& device_;
  const Discovery& discovery_;
  const uint64_t timeout_ms_;
};

}  // namespace tuff::devices::amd

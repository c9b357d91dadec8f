// GpuFunction: an emulated Navi 31 on the PCI bus, before any driver: its memory (BAR 0), doorbells
// (BAR 2) and registers (BAR 5), security processor, management unit and memory hubs, as far as a
// host sees them. What a driver must not do is told. No queue runs: registers of engines keep what
// is written to them, and the packets of a ring are not read.
// Sources: Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_device.c (memory by index), nbio_v4_3.c
// (flushes, registers by index), gfx_v11_0.c (HQD). Never compared with hardware.
#pragma once

#include <cstdint>
#include <map>

#include "emu/amd/pci/hub_model.h"
#include "emu/amd/pci/psp_model.h"
#include "emu/amd/pci/smu_model.h"
#include "emu/pci/bus.h"

namespace tuff::emu::amd {

struct PciGpuOptions {
  uint64_t memory_bytes = 1ull << 30;
  samples::SampleTable blocks;
  Told told;
};

class GpuFunction final : public pci::Function {
 public:
  static constexpr uint64_t kRegisterBytes = 1u << 20, kDoorbellBytes = 1u << 21;
  explicit GpuFunction(const PciGpuOptions& options);
  uint32_t read(size_t bar, uint64_t offset) override;
  void write(size_t bar, uint64_t offset, uint32_t value) override;
  // Of memory's and of doorbells' begin.
  intptr_t map(size_t bar, uint64_t offset, size_t size_bytes, int protection) override;
  void reset() override;

  DeviceMemory& memory() { return memory_; }
  PspModel& psp() { return psp_; }
  SmuModel& smu() { return smu_; }
  HubModel& graphics() { return graphics_; }
  HubModel& multimedia() { return multimedia_; }
  uint32_t resets() const { return resets_; }

 private:
  void power_on();
  std::byte* indexed_memory();
  uint32_t read_register(uint64_t place);
  void write_register(uint64_t place, uint32_t value);

  const PciGpuOptions options_;
  DeviceMemory memory_;
  const Pages doorbells_;
  PspModel psp_;
  SmuModel smu_;
  HubModel graphics_, multimedia_;
  std::map<uint64_t, uint32_t> registers_;  // by place, which have no meaning of their own
  uint32_t resets_ = 0;
};

}  // namespace tuff::emu::amd

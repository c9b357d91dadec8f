// Smu: the system management unit of a GPU of RDNA3 (SMU 13.0.0), which has clocks, power and
// reset: messages with an argument and an answer. Used by the start by PCI. Raises nothing beyond
// what the GPU does by itself. Sources: Linux, drivers/gpu/drm/amd/pm/swsmu/smu_cmn.c @00dedab
// (protocol, answers), smu13/smu_v13_0_0_ppt.c (registers, the reset),
// inc/pmfw_if/smu_v13_0_0_ppsmc.h (numbers).
#pragma once

#include <cstdint>

#include "devices/amd/pci/registers.h"

namespace tuff::devices::amd {

class Smu {
 public:
  explicit Smu(const GpuRegisters& registers) : registers_(registers) {}
  // After its firmware has been loaded: that it has a version, where its tables are, all features
  // on. DeviceLost, by the message's name and the answer.
  void start(uint64_t table_address);
  // Whether it answers at all: a GPU whose firmware has been loaded.
  bool is_alive() const;
  // The whole GPU by mode 1, as after power on; no register is to be read for that long.
  void reset() const;
  static constexpr uint64_t kResetMs = 500;

 private:
  uint32_t send(const char* name, uint32_t message, uint32_t argument) const;
  const GpuRegisters& registers_;
};

}  // namespace tuff::devices::amd

// SmuModel: how the management unit of an emulated Navi 31 answers messages, and the reset that it
// makes by mode 1. Part of the GPU's function. Knows no clocks.
// Sources: Linux, drivers/gpu/drm/amd/pm/swsmu/smu_cmn.c (the mailbox and its answers),
// inc/pmfw_if/smu_v13_0_0_ppsmc.h (messages), smu13/smu_v13_0.c (mode 1). Never compared with
// hardware.
#pragma once

#include <cstdint>
#include <map>

#include "emu/amd/pci/device_memory.h"

namespace tuff::emu::amd {

class SmuModel {
 public:
  explicit SmuModel(Told told) : told_(std::move(told)) {}
  void power_on() { words_.clear(), has_features_ = false; }
  static bool has(uint64_t place);
  uint32_t read(uint64_t place, bool has_firmware);
  // True where the GPU is to be reset.
  bool write(uint64_t place, uint32_t value, bool has_firmware);
  bool has_features() const { return has_features_; }
  void hang() { hung_ = true; }

 private:
  void take(uint32_t message, bool has_firmware);
  const Told told_;
  std::map<uint64_t, uint32_t> words_;
  bool has_features_ = false, hung_ = false;
};

}  // namespace tuff::emu::amd

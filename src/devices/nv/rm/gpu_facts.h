// GpuFacts: what a GPU is, as its resource manager says, whoever asks that: NVIDIA's kernel driver
// (gpu.h) or the firmware of its system processor (pci/gsp_facts.h). Knows no calls.
#pragma once

#include <string>

#include "base/os_nvrm.h"
#include "devices/nv/encode/generation.h"

namespace tuff::devices::nv {

namespace nvrm = os::nvrm;

struct GpuFacts {
  std::string name;
  nvrm::Uuid uuid{};
  uint32_t sm = 0;  // 86 for sm_86
  uint32_t gpcs = 0, tpcs_per_gpc = 0, sms_per_tpc = 0, warps_per_sm = 0;
  uint64_t memory_bytes = 0, l2_bytes = 0;
  uint64_t aperture_bytes = 0;  // of video memory that the host can map
  const Generation* generation = nullptr;  // null: not supported
  uint32_t gpfifo_class = 0, usermode_class = 0;
  std::string missing;  // why it cannot be used; empty if it can
  uint32_t sms() const { return gpcs * tpcs_per_gpc * sms_per_tpc; }
  bool host_maps_all() const { return aperture_bytes >= memory_bytes; }
};

// SM_VERSION of GR_GET_INFO as a compute capability: 0x806 is 8.6, so 86.
uint32_t capability_of(uint32_t sm_version);

}  // namespace tuff::devices::nv

// What a GPU's system processor (GSP) says of the GPU: the facts that the kernel driver gives where
// there is one, and which video memory the host may use. For what opens a GPU by PCI.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/interface/gsp_abi_check.c
// (GspStaticConfigInfo), src/common/sdk/nvidia/inc/ctrl/ctrl2080/{ctrl2080fb,ctrl2080internal}.h;
// Linux, drivers/gpu/drm/nouveau/nvkm/subdev/gsp/rm/r535/gsp.c @44f93b2 (which regions are usable).
#pragma once

#include <vector>

#include "devices/nv/pci/chip.h"
#include "devices/nv/pci/gsp_calls.h"
#include "devices/nv/rm/gpu_facts.h"

namespace tuff::devices::nv {

struct MemoryRegion {
  uint64_t begin = 0, end = 0;
  uint64_t size_bytes() const { return end - begin; }
};

struct GspFacts {
  GpuFacts gpu;
  std::vector<MemoryRegion> usable;  // by address: neither the firmware's nor protected
};
// `subdevice` is an object of `calls`. DeviceLost for facts that cannot be.
GspFacts read_gsp_facts(const GspCalls& calls, nvrm::Handle subdevice, const Chip& chip,
                        uint64_t aperture_bytes);

}  // namespace tuff::devices::nv

// A GPU on the PCI bus with all that a driver needs to start it: firmware files and a VBIOS written
// by the layouts that are public, and the GPU that knows these by code, hash and signature. Made
// for TUFF_MOCK=pci:1. None of NVIDIA's files is in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "emu/nv/pci/gpu_function.h"

namespace tuff::emu::nv {

struct SampleGpu {
  GpuOptions options;
  uint16_t device = 0;                       // its number on the bus
  std::map<std::string, std::string> files;  // by path
};
// `sm`: 86 is a GA102, 90 a GH100, 120 a GB202.
SampleGpu sample_gpu(uint32_t sm, uint64_t video_bytes);

}  // namespace tuff::emu::nv

// The machine's GPUs as the kernel lists them under /sys/devices/virtual/kfd/kfd/topology.
// Read before anything is opened: by the device's probe, and by the process for what it opens.
// Source: Linux amdkfd/kfd_topology.c (node_show, mem_show, iolink_show).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/os_kernel.h"
#include "devices/amd/gpu_facts.h"

namespace tuff::devices::amd {

struct GpuNode : GpuFacts {
  uint32_t node = 0;            // its number, which links name
  uint32_t gpu_id = 0;          // what ioctls take
  uint32_t render_minor = 0;    // /dev/dri/renderD<it>
  std::vector<uint32_t> links;  // nodes that it reaches directly

  bool reaches(const GpuNode& other) const {
    return std::find(links.begin(), links.end(), other.node) != links.end();
  }
};

// In the order of their numbers. Nodes that this user may not see are left out; a damaged text
// throws IoError naming the file and the property.
std::vector<GpuNode> read_topology(os::Kernel& kernel);

}  // namespace tuff::devices::amd

// Topology: the files of sysfs that tell a driver of the emulated GPUs, in the kernel's own format,
// and the numbers in them. Read by a driver through machine.h; the numbers by the checks of calls.
// Sources: Linux amdkfd/kfd_topology.c (node_show, mem_show, iolink_show), kfd_crat.c (what links
// and banks there are), amdgpu_discovery.c (ip_discovery).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/amd/mock.h"

namespace tuff::emu::amd {

// A Navi 31, as Linux 6.x tells of it; its units are those of the chip that times its kernels, a
// Radeon RX 7900 XTX where none is named (profile/chip.h).
struct Navi31 {
  static constexpr uint32_t kTargetVersion = 110000;
  static constexpr uint32_t kSdmaEngines = 2, kSdmaQueuesPerEngine = 6;
  static constexpr uint32_t kEopBytes = 4096;
};

inline uint32_t gpu_id_of(uint32_t index) { return 51110 + index * 1013; }
inline uint32_t render_minor_of(uint32_t index) { return 128 + index; }

class Topology {
 public:
  explicit Topology(const MockOptions& options);
  // Paths that are the emulated machine's to answer, there or not.
  static bool owns(const std::string& path);
  int read_text(const std::string& path, std::string& text) const;
  int list_directory(const std::string& path, std::vector<std::string>& names) const;

 private:
  void add_cpu_node(uint32_t gpus);
  void add_gpu_node(uint32_t index, const MockOptions& options);
  void add_discovery(uint32_t index);
  std::map<std::string, std::string> files_;
};

}  // namespace tuff::emu::amd

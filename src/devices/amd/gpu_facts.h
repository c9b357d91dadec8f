// GpuFacts: what one of AMD's GPUs is, whoever says it: the kernel's topology, or its discovery
// table. Read by everything above the seam (space.h). Knows no driver.
#pragma once

#include <cstdint>
#include <string>

#include "devices/amd/generation.h"

namespace tuff::devices::amd {

struct GpuFacts {
  uint32_t target_version = 0;
  uint32_t lds_kib = 0;
  uint64_t unique_id = 0;  // 0: it has none
  uint64_t vram_bytes = 0;
  bool large_bar = false;   // the host can map all of the VRAM
  bool integrated = false;  // shares its memory with the CPU
  bool has_peers = false;   // there is another GPU that reaches this one
  std::string name;         // "navi31", "ip discovery"
  Topology shape;

  // Null: not supported.
  const Generation* generation() const { return find_generation(target_version); }
  std::string arch() const;  // "gfx1100", of unsupported ones too
};

}  // namespace tuff::devices::amd

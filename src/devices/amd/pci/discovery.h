// Discovery: the table in a GPU's memory that says which blocks it is made of, which version each
// has and where its registers begin, and how many shaders there are. Called by the start by PCI.
// Reads no registers; bytes may be damaged. Source: Linux, drivers/gpu/drm/amd/include/discovery.h
// @02e778f (layouts), amdgpu/amdgpu_discovery.c (checks, what harvested blocks are, place in
// memory), include/soc15_hw_ip.h (numbers of blocks).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tuff::devices::amd {

// Where it lies: that far before the end of memory, and how much is read.
inline constexpr uint64_t kDiscoveryBeforeEnd = 64u << 10, kDiscoveryBytes = 10u << 10;

enum class Hwid : uint16_t {
  Mp1 = 1,
  Smuio = 4,
  Gc = 11,
  Mmhub = 34,
  Osssys = 40,
  Hdp = 41,
  Sdma0 = 42,
  Nbif = 108,
  Mp0 = 255,
};
const char* name(Hwid id);

struct IpVersion {
  uint8_t major = 0, minor = 0, revision = 0;
  bool operator==(const IpVersion&) const = default;
};
std::string to_text(const IpVersion& version);  // "11.0.0"

struct IpBlock {
  uint16_t hw_id = 0;  // a Hwid, or one that is not known here
  uint8_t instance = 0;
  IpVersion version;
  bool harvested = false;       // fused off
  std::vector<uint64_t> bases;  // of its segments of registers, in dwords
};

// The graphics block, before what is fused off.
struct GcShape {
  uint32_t engines = 0, arrays_per_engine = 0, wgps_per_array = 0;
  uint32_t wave_size = 0, max_waves_per_simd = 0, scratch_slots_per_cu = 0, lds_kib = 0;
};

struct Discovery {
  std::vector<IpBlock> blocks;
  GcShape gc;
  // Unsupported where the GPU has none, or it is fused off.
  const IpBlock& block(Hwid id, uint8_t instance = 0) const;
};

// IoError, naming what is wrong.
Discovery read_discovery(std::span<const uint8_t> bytes);

}  // namespace tuff::devices::amd

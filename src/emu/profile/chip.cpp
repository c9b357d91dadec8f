#include "emu/profile/chip.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::emu::profile {
namespace {

std::span<const Chip> all_chips() {
#define TUFF_CHIP(name, text, core, cus, engines, arrays, mhz, vgprs, granule, l1, l2, mall,       \
                  l2_rate, mall_rate, dram, v0, v1, v2, v3, v4, s0, s1, s2, s3, s4)                \
  Chip{name, text, core,    cus,       engines, arrays, mhz, vgprs, granule, l1, l2, mall,         \
       l2_rate, mall_rate, dram, MemoryNs{v0, v1, v2, v3, v4}, MemoryNs{s0, s1, s2, s3, s4}},
  static const Chip chips[] = {
#include "emu/profile/chips.def"
  };
#undef TUFF_CHIP
  return chips;
}

auto cycles_of(const MemoryNs& ns, double mhz) {
  std::array<uint32_t, size_t(MemoryLevel::Count)> out{};
  const double levels[] = {ns.l0, ns.l1, ns.l2, ns.mall, ns.dram};
  for (size_t k = 0; k < out.size(); ++k) out[k] = uint32_t(std::lround(levels[k] * mhz / 1000));
  return out;
}

bool is_of(const Chip& c, std::optional<Vendor> vendor) {
  return !vendor || c.core.vendor == *vendor;
}

}  // namespace

const Chip& chip(const std::string& name, std::optional<Vendor> vendor) {
  const auto chips = all_chips();
  const auto found = std::ranges::find_if(chips, [&](const Chip& c) {
    return is_of(c, vendor) && (name.empty() || name == c.name);
  });
  if (found == chips.end()) {
    const char* whose = !vendor ? "" : *vendor == Vendor::Amd ? " of AMD's" : " of NVIDIA's";
    fail<InvalidArgument>("no chip{} is called '{}'; known are {}", whose, name,
                          fmt::join(chip_names(vendor), ", "));
  }
  return *found;
}

std::vector<std::string> chip_names(std::optional<Vendor> vendor) {
  std::vector<std::string> names;
  for (const Chip& c : all_chips())
    if (is_of(c, vendor)) names.push_back(c.name);
  return names;
}

MemoryLatencies Chip::latencies() const {
  return {cycles_of(vector_ns, mhz), cycles_of(scalar_ns, mhz), core.lds_latency};
}

double Chip::peak_flops_per_us(FloatKind kind) const {
  const double simds = double(cus) * core.simds_per_cu;
  switch (kind) {
    case FloatKind::Half: return simds * mhz * core.half_flops;
    case FloatKind::Matrix: return simds * mhz * core.matrix_flops;
    case FloatKind::Double: return simds * mhz * core.double_flops;
    default: return simds * mhz * core.vector_flops;
  }
}

uint32_t Residency::cus_per_unit(const Chip& chip) const {
  return wgp_mode ? chip.core.cus_per_wgp : 1;
}

uint32_t Residency::simds_per_unit(const Chip& chip) const {
  return chip.core.simds_per_cu * cus_per_unit(chip);
}

uint32_t Residency::groups_per_unit(const Chip& chip) const {
  const Architecture& core = chip.core;
  const uint32_t allocated = std::max(align_up(vgprs, chip.vgpr_granule), chip.vgpr_granule);
  const uint32_t by_vgprs = std::min(core.waves_per_simd, chip.vgprs_per_simd / allocated);
  uint32_t groups = by_vgprs * simds_per_unit(chip) / std::max(waves_per_group, 1u);
  groups = std::min(groups, core.groups_per_cu * cus_per_unit(chip));
  if (lds_bytes + core.lds_taken > 0) {
    const uint32_t lds = core.lds_kb * kKb * cus_per_unit(chip);
    groups = std::min(groups, lds / align_up(lds_bytes + core.lds_taken, core.lds_granule));
  }
  return std::max(groups, 1u);
}

double Residency::waves_per_simd(const Chip& chip) const {
  const double waves =
      double(groups_per_unit(chip)) * waves_per_group / simds_per_unit(chip);
  return std::clamp(waves, 1.0, double(chip.core.waves_per_simd));
}

// The driver takes the least of the sizes of shared memory that holds what may be there at once
// (CUDA C++ Programming Guide, 16.4.3, 16.6.3, 16.7.3).
uint64_t Residency::l0_bytes(const Chip& chip) const {
  const Architecture& core = chip.core;
  if (!core.l0_has_lds) return core.l0_kb * kKb;
  constexpr uint32_t kSizes[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
  const uint32_t wanted =
      lds_bytes ? align_up(lds_bytes + core.lds_taken, core.lds_granule) * groups_per_unit(chip)
                : 0;
  const auto* size = std::ranges::find_if(kSizes, [&](uint32_t kb) { return kb * kKb >= wanted; });
  const uint32_t taken = size == std::end(kSizes) ? core.lds_kb : *size;
  return uint64_t(core.l0_kb - std::min(taken, core.lds_kb)) * kKb;
}

}  // namespace tuff::emu::profile

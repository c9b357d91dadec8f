#include "emu/profile/chip.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::emu::profile {
namespace {

// Chips and Cheese, "AMD's RDNA 2" (2021): about 20 ns. An estimate for its successor.
constexpr uint32_t kLdsLatency = 50;

std::span<const Chip> all_chips() {
#define TUFF_CHIP(name, text, cus, engines, arrays, mhz, vgprs, granule, l1, l2, mall, l2_rate,    \
                  mall_rate, dram, v0, v1, v2, v3, v4, s0, s1, s2, s3, s4)                         \
  Chip{name, text, cus,     engines,   arrays, mhz, vgprs, granule, l1, l2, mall,                  \
       l2_rate, mall_rate, dram, MemoryNs{v0, v1, v2, v3, v4}, MemoryNs{s0, s1, s2, s3, s4}},
  static const Chip chips[] = {
#include "emu/profile/chips.def"
  };
#undef TUFF_CHIP
  return chips;
}

auto cycles_of(const MemoryNs& ns, double mhz) {
  std::array<uint32_t, size_t(rdna::MemoryLevel::Count)> out{};
  const double levels[] = {ns.l0, ns.l1, ns.l2, ns.mall, ns.dram};
  for (size_t k = 0; k < out.size(); ++k) out[k] = uint32_t(std::lround(levels[k] * mhz / 1000));
  return out;
}

}  // namespace

const Chip& chip(const std::string& name) {
  const auto chips = all_chips();
  if (name.empty()) return chips.front();
  const auto found = std::ranges::find_if(chips, [&](const Chip& c) { return name == c.name; });
  if (found == chips.end()) {
    fail<InvalidArgument>("no chip is called '{}'; known are {}", name,
                          fmt::join(chip_names(), ", "));
  }
  return *found;
}

std::vector<std::string> chip_names() {
  std::vector<std::string> names;
  for (const Chip& c : all_chips()) names.push_back(c.name);
  return names;
}

rdna::MemoryLatencies Chip::latencies() const {
  return {cycles_of(vector_ns, mhz), cycles_of(scalar_ns, mhz), kLdsLatency};
}

double Chip::peak_flops_per_us(rdna::FloatKind kind) const {
  const double simds = double(cus) * kSimdsPerCu, lanes = 32;
  switch (kind) {
    case rdna::FloatKind::Matrix: return simds * mhz * (2 * 16 * 16 * 16 / 32.0);  // 32 cycles
    case rdna::FloatKind::Double: return simds * mhz * lanes * 2 / 16;
    default: return simds * mhz * lanes * 2 * 2;
  }
}

uint32_t Residency::units(const Chip& chip) const {
  return wgp_mode ? chip.cus / kCusPerWgp : chip.cus;
}

uint32_t Residency::groups_per_unit(const Chip& chip) const {
  const uint32_t allocated = std::max(align_up(vgprs, chip.vgpr_granule), chip.vgpr_granule);
  const uint32_t by_vgprs = std::min(kWavesPerSimd, chip.vgprs_per_simd / allocated);
  uint32_t groups = by_vgprs * simds_per_unit() / std::max(waves_per_group, 1u);
  if (lds_bytes > 0) {
    const uint32_t lds = wgp_mode ? kLdsBytesPerWgp : kLdsBytesPerWgp / kCusPerWgp;
    groups = std::min(groups, lds / align_up(lds_bytes, kLdsGranule));
  }
  return std::max(groups, 1u);
}

double Residency::waves_per_simd(const Chip& chip) const {
  const double waves = double(groups_per_unit(chip)) * waves_per_group / simds_per_unit();
  return std::clamp(waves, 1.0, double(kWavesPerSimd));
}

}  // namespace tuff::emu::profile

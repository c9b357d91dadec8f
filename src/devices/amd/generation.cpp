#include "devices/amd/generation.h"

#include <algorithm>
#include <array>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::devices::amd {
namespace {

constexpr uint32_t kKiB = 1024;
constexpr uint32_t kSavePageBytes = 4096;
constexpr uint32_t kScratchLanes = 64;  // that a wave's scratch is laid out for, even of wave32

// What the members of a family have in common.
constexpr Generation family_row(Family family) {
  Generation g{};
  g.family = family;
  g.wave_size = 32;
  g.can_wave32 = true;
  g.caches = CacheControl::GcrCntl;
  g.rsrc3 = 0x28;
  g.ids = WorkgroupIds::Sgpr;
  g.lds_granularity_bytes = 512;
  g.architected_scratch = true;
  g.scratch_unit_bytes = 256;
  g.scratch_waves_per_engine = true;
  g.control_stack_bytes_per_wave = 12;
  switch (family) {
    case Family::CDNA3:
      g.wave_size = 64;
      g.can_wave32 = false;
      g.can_be_several = true;
      g.caches = CacheControl::CoherCntl;
      g.rsrc3 = 0x2d;
      g.scratch_unit_bytes = kKiB;
      g.scratch_wavesize_bits = 13;
      g.scratch_waves_per_engine = false;
      g.control_stack_bytes_per_wave = 8;
      break;
    case Family::RDNA2:
      g.architected_scratch = false;
      g.scratch_unit_bytes = kKiB;
      g.scratch_wavesize_bits = 13;
      g.scratch_waves_per_engine = false;
      g.control_stack_cap_bytes = 0x7000;
      break;
    case Family::RDNA3:
      g.ids = WorkgroupIds::PaddedSgpr;
      g.rsrc1_priv = true;
      g.scratch_wavesize_bits = 15;
      break;
    case Family::RDNA4:
      g.ids = WorkgroupIds::Ttmp;
      g.scratch_wavesize_bits = 18;
      break;
  }
  return g;
}

constexpr Generation row(std::string_view name, uint32_t version, uint32_t elf_machine,
                         Family family, SdmaVersion sdma, uint32_t vgpr_kib) {
  Generation g = family_row(family);
  g.name = name;
  g.target_version = version;
  g.elf_machine = elf_machine;
  g.sdma = sdma;
  // 30 bits of COUNT from 5.2 on; 22 before (Linux amdgpu/sdma_v*.c: copy_max_bytes).
  g.copy_max_bytes = sdma >= SdmaVersion::SDMA_5_2 ? 1u << 30 : 1u << 22;
  g.sdma_caches = sdma >= SdmaVersion::SDMA_5_2;
  g.vgpr_bytes_per_cu = vgpr_kib * kKiB;
  return g;
}

constexpr Generation kGenerations[] = {
#define AMD_GENERATION(name, version, elf_machine, family, sdma, vgpr_kib) \
  row(#name, version, elf_machine, Family::family, SdmaVersion::sdma, vgpr_kib),
#include "devices/amd/generations.def"
};

}  // namespace

std::span<const Generation> generations() { return kGenerations; }

const Generation* find_generation(uint32_t target_version) {
  const auto* found = std::ranges::find(kGenerations, target_version, &Generation::target_version);
  return found == std::end(kGenerations) ? nullptr : found;
}

const Generation* find_generation(std::string_view name) {
  const auto* found = std::ranges::find(kGenerations, name, &Generation::name);
  return found == std::end(kGenerations) ? nullptr : found;
}

QueueSizes queue_sizes(const Generation& g, const Topology& t) {
  constexpr uint32_t kSgprBytes = 16 * kKiB, kLdsBytes = 64 * kKiB, kHwregBytes = 4 * kKiB;
  constexpr uint32_t kHeaderBytes = 40, kDebugBytesPerWave = 32, kDebugAlignment = 64;
  const uint32_t cus = t.cus() / t.xccs;
  const uint32_t waves =
      g.family == Family::CDNA3 ? std::min(cus * 40, t.engines() * 512) : cus * 32;
  const uint64_t workgroups = align_up(
      uint64_t(cus) * (g.vgpr_bytes_per_cu + kSgprBytes + kLdsBytes + kHwregBytes), kSavePageBytes);
  uint64_t stack =
      align_up(kHeaderBytes + uint64_t(waves) * g.control_stack_bytes_per_wave + 8, kSavePageBytes);
  if (g.control_stack_cap_bytes) stack = std::min<uint64_t>(stack, g.control_stack_cap_bytes);
  QueueSizes sizes{};
  sizes.eop_bytes = 4096;
  sizes.control_stack_bytes = uint32_t(stack);
  sizes.save_area_bytes = uint32_t(stack + workgroups);
  sizes.debug_bytes = uint32_t(align_up(waves * kDebugBytesPerWave, kDebugAlignment));
  sizes.mapping_bytes =
      align_up(uint64_t(sizes.save_area_bytes + sizes.debug_bytes) * t.xccs, kSavePageBytes);
  return sizes;
}

ScratchSize scratch_size(const Generation& g, const Topology& t, uint32_t bytes_per_lane) {
  if (bytes_per_lane == 0) return {};
  const uint64_t units =
      ceil_div(uint64_t(bytes_per_lane) * kScratchLanes, g.scratch_unit_bytes);
  if (units >> g.scratch_wavesize_bits) {
    fail<Unsupported>(
        "{}: {} bytes of scratch per work-item; at most {}", g.name, bytes_per_lane,
        ((1ull << g.scratch_wavesize_bits) - 1) * g.scratch_unit_bytes / kScratchLanes);
  }
  const uint32_t engines = t.engines() / t.xccs;
  uint32_t waves = t.cus() / t.xccs * t.max_slots_scratch_cu;  // of one XCC
  waves = waves / engines * engines;
  constexpr uint32_t kMaxWaves = (1u << 12) - 1;  // of the register's field
  waves = std::min(
      waves, g.scratch_waves_per_engine ? kMaxWaves * engines : kMaxWaves / engines * engines);
  ScratchSize s;
  s.size_bytes = units * g.scratch_unit_bytes * waves * t.xccs;
  s.bytes_per_lane = uint32_t(units * g.scratch_unit_bytes / kScratchLanes);
  s.tmpring = (g.scratch_waves_per_engine ? waves / engines : waves) | uint32_t(units) << 12;
  return s;
}

}  // namespace tuff::devices::amd

#include "emu/profile/cache_model.h"

#include <algorithm>
#include <bit>

namespace tuff::emu::profile {
namespace {

constexpr uint32_t kNearWays = 4, kFarWays = 16;

void count_sectors(uint8_t used, uint8_t missing, uint64_t& hits, uint64_t& misses) {
  misses += uint64_t(std::popcount(missing));
  hits += uint64_t(std::popcount(uint8_t(used & ~missing)));
}

}  // namespace

Cache::Cache(uint64_t bytes, uint32_t ways)
    : ways_(ways), sets_(bytes / kLineBytes / ways), all_(sets_ * ways) {}

// How addresses choose sets is not documented: digits are added up, so that neither neighbours nor
// strides of a power of two meet in few of them.
std::span<Cache::Way> Cache::set_of(uint64_t line) {
  uint64_t sum = 0;
  for (uint64_t rest = line; rest > 0; rest /= sets_) sum += rest % sets_;
  return std::span(all_).subspan(sum % sets_ * ways_, ways_);
}

Cache::Result Cache::use(const Place& place, bool dirties) {
  const uint8_t dirty = dirties ? place.sectors : uint8_t(0);
  if (sets_ == 0) return {place.sectors, dirties ? std::optional(place) : std::nullopt};
  const auto set = set_of(place.line);
  ++clock_;
  if (const auto way = std::ranges::find(set, place.line, &Way::line); way != set.end()) {
    const auto missing = uint8_t(place.sectors & ~way->present);
    way->used = clock_;
    way->present |= place.sectors;
    way->dirty |= dirty;
    return {missing, std::nullopt};
  }
  Way& oldest = *std::ranges::min_element(set, {}, &Way::used);
  Result out{place.sectors, std::nullopt};
  if (oldest.dirty) out.written_back = {oldest.line, oldest.dirty};
  oldest = {place.line, clock_, place.sectors, dirty};
  return out;
}

void Cache::drop(uint64_t line) {
  if (sets_ == 0) return;
  const auto set = set_of(line);
  if (const auto way = std::ranges::find(set, line, &Way::line); way != set.end()) *way = {};
}

SharedCaches::SharedCaches(const Chip& chip)
    : l2(uint64_t(chip.l2_kb) * kKb, kFarWays), mall(uint64_t(chip.mall_kb) * kKb, kFarWays) {}

CacheModel::CacheModel(const Chip& chip, SharedCaches& shared, const Residency& residency)
    : chip_(chip), shared_(shared), wgp_mode_(residency.wgp_mode) {
  l0_.assign(chip.cus, Cache(residency.l0_bytes(chip), kNearWays));
  scalar_.assign(chip.cus / chip.core.cus_per_wgp, Cache(chip.core.scalar_kb * kKb, kNearWays));
  l1_.assign(chip.arrays, Cache(chip.l1_kb * kKb, kFarWays));
}

// Workgroups go round; the waves of one on a WGP fill its four SIMDs in turn, two of them a CU's.
uint32_t CacheModel::cu_of(const LineAccess& a) const {
  const Architecture& core = chip_.core;
  if (!wgp_mode_) return a.workgroup % chip_.cus;
  const uint32_t wgp = a.workgroup % (chip_.cus / core.cus_per_wgp);
  return wgp * core.cus_per_wgp + a.wave / core.simds_per_cu % core.cus_per_wgp;
}

uint64_t CacheModel::bytes_of(uint8_t sectors) const {
  return uint64_t(std::popcount(sectors)) * chip_.core.sector_bytes;
}

MemoryLevel CacheModel::access(const LineAccess& a) {
  const uint32_t cu = cu_of(a), wgp = cu / chip_.core.cus_per_wgp, array = wgp % chip_.arrays;
  const bool scalar = a.kind == AccessKind::ScalarLoad;
  const Cache::Place place{a.line, chip_.core.sector_bytes < kLineBytes ? a.sectors : uint8_t(1)};
  if (!scalar) ++counts_.l0_lookups;
  if (a.kind == AccessKind::Store || a.kind == AccessKind::Atomic) {
    // Written through both; the L1 keeps nothing that was written.
    if (a.kind == AccessKind::Atomic) l0_[cu].drop(a.line);
    l1_[array].drop(a.line);
    return reach_l2(place, true);
  }
  uint8_t missing = place.sectors;
  if (!a.device_scope) missing = (scalar ? scalar_[wgp] : l0_[cu]).use(place).missing;
  if (!scalar) {
    count_sectors(place.sectors, missing, counts_.l0_hits, counts_.l0_misses);
    counts_.l0_fill_bytes += bytes_of(missing);
  }
  if (!missing) return MemoryLevel::L0;
  if (!a.device_scope) return reach_l1({a.line, missing}, array);
  if (!scalar && chip_.l1_kb) ++counts_.l1_misses;
  return reach_l2(place, false);
}

MemoryLevel CacheModel::reach_l1(const Cache::Place& place, uint32_t array) {
  if (!chip_.l1_kb) return reach_l2(place, false);
  const uint8_t missing = l1_[array].use(place).missing;
  count_sectors(place.sectors, missing, counts_.l1_hits, counts_.l1_misses);
  return missing ? reach_l2({place.line, missing}, false) : MemoryLevel::L1;
}

// The L2 knows which bytes of a line were written: a store fetches nothing.
MemoryLevel CacheModel::reach_l2(const Cache::Place& place, bool writes) {
  counts_.l2_bytes += bytes_of(place.sectors);
  const Cache::Result result = shared_.l2.use(place, writes);
  count_sectors(place.sectors, result.missing, counts_.l2_hits, counts_.l2_misses);
  if (result.written_back) reach_mall(*result.written_back, true);
  if (!result.missing || writes) return MemoryLevel::L2;
  return reach_mall({place.line, result.missing}, false) ? MemoryLevel::Mall : MemoryLevel::Dram;
}

bool CacheModel::reach_mall(const Cache::Place& place, bool writes) {
  const Cache::Result result = shared_.mall.use(place, writes);
  if (chip_.mall_kb) {
    counts_.mall_bytes += bytes_of(place.sectors);
    count_sectors(place.sectors, result.missing, counts_.mall_hits, counts_.mall_misses);
  }
  if (result.written_back) counts_.dram_bytes_written += bytes_of(result.written_back->sectors);
  if (!writes) counts_.dram_bytes_read += bytes_of(result.missing);
  return !result.missing;
}

}  // namespace tuff::emu::profile

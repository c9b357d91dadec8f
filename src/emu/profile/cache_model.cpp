#include "emu/profile/cache_model.h"

#include <algorithm>

namespace tuff::emu::profile {

using rdna::MemoryLevel;

constexpr uint64_t kKb = 1024;
constexpr uint32_t kNearWays = 4, kFarWays = 16;

Cache::Cache(uint64_t bytes, uint32_t ways)
    : ways_(ways), sets_(bytes / rdna::kLineBytes / ways), all_(sets_ * ways) {}

// How addresses choose sets is not documented: digits are added up, so that neither neighbours nor
// strides of a power of two meet in few of them.
std::span<Cache::Way> Cache::set_of(uint64_t line) {
  uint64_t sum = 0;
  for (uint64_t rest = line; rest > 0; rest /= sets_) sum += rest % sets_;
  return std::span(all_).subspan(sum % sets_ * ways_, ways_);
}

Cache::Result Cache::use(uint64_t line, bool dirties) {
  if (sets_ == 0) return {false, dirties ? std::optional(line) : std::nullopt};
  const auto set = set_of(line);
  ++clock_;
  if (const auto way = std::ranges::find(set, line, &Way::line); way != set.end()) {
    way->used = clock_;
    way->dirty |= dirties;
    return {true, std::nullopt};
  }
  Way& oldest = *std::ranges::min_element(set, {}, &Way::used);
  Result out;
  if (oldest.dirty) out.written_back = oldest.line;
  oldest = {line, clock_, dirties};
  return out;
}

void Cache::drop(uint64_t line) {
  if (sets_ == 0) return;
  const auto set = set_of(line);
  if (const auto way = std::ranges::find(set, line, &Way::line); way != set.end()) *way = {};
}

SharedCaches::SharedCaches(const Chip& chip)
    : l2(chip.l2_kb * kKb, kFarWays), mall(chip.mall_kb * kKb, kFarWays) {}

CacheModel::CacheModel(const Chip& chip, SharedCaches& shared, bool wgp_mode)
    : chip_(chip), shared_(shared), wgp_mode_(wgp_mode) {
  l0_.assign(chip.cus, Cache(kL0Kb * kKb, kNearWays));
  scalar_.assign(chip.cus / kCusPerWgp, Cache(kScalarKb * kKb, kNearWays));
  l1_.assign(chip.arrays, Cache(chip.l1_kb * kKb, kFarWays));
}

// Workgroups go round; the waves of one on a WGP fill its four SIMDs in turn, two of them a CU's.
uint32_t CacheModel::cu_of(const rdna::LineAccess& a) const {
  if (!wgp_mode_) return a.workgroup % chip_.cus;
  const uint32_t wgp = a.workgroup % (chip_.cus / kCusPerWgp);
  return wgp * kCusPerWgp + a.wave / kSimdsPerCu % kCusPerWgp;
}

MemoryLevel CacheModel::access(const rdna::LineAccess& a) {
  const uint32_t cu = cu_of(a), wgp = cu / kCusPerWgp, array = wgp % chip_.arrays;
  const bool scalar = a.kind == AccessKind::ScalarLoad;
  if (!scalar) ++counts_.l0_lookups;
  if (a.kind == AccessKind::Store || a.kind == AccessKind::Atomic) {
    // Written through both; the L1 keeps nothing that was written.
    if (a.kind == AccessKind::Atomic) l0_[cu].drop(a.line);
    l1_[array].drop(a.line);
    return reach_l2(a.line, true);
  }
  if (a.device_scope) {
    if (!scalar) ++counts_.l0_misses, ++counts_.l1_misses;
    return reach_l2(a.line, false);
  }
  const bool hit = (scalar ? scalar_[wgp] : l0_[cu]).use(a.line).hit;
  if (!scalar) ++(hit ? counts_.l0_hits : counts_.l0_misses);
  return hit ? MemoryLevel::L0 : reach_l1(a.line, array);
}

MemoryLevel CacheModel::reach_l1(uint64_t line, uint32_t array) {
  const bool hit = l1_[array].use(line).hit;
  ++(hit ? counts_.l1_hits : counts_.l1_misses);
  return hit ? MemoryLevel::L1 : reach_l2(line, false);
}

// The L2 knows which bytes of a line were written: a store fetches nothing.
MemoryLevel CacheModel::reach_l2(uint64_t line, bool writes) {
  ++counts_.l2_requests;
  const Cache::Result result = shared_.l2.use(line, writes);
  ++(result.hit ? counts_.l2_hits : counts_.l2_misses);
  if (result.written_back) reach_mall(*result.written_back, true);
  if (result.hit || writes) return MemoryLevel::L2;
  return reach_mall(line, false) ? MemoryLevel::Mall : MemoryLevel::Dram;
}

bool CacheModel::reach_mall(uint64_t line, bool writes) {
  const Cache::Result result = shared_.mall.use(line, writes);
  if (chip_.mall_kb) {
    ++counts_.mall_requests;
    ++(result.hit ? counts_.mall_hits : counts_.mall_misses);
  }
  if (result.written_back) ++counts_.dram_lines_written;
  if (!result.hit && !writes) ++counts_.dram_lines_read;
  return result.hit;
}

}  // namespace tuff::emu::profile

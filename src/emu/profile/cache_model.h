// Which cache has a line: LRU sets of lines without their contents. A GPU's L2 and infinity cache
// live as long as it does; the caches before them begin empty with each dispatch, whose packets
// invalidate them. All lines have 128 bytes, of which NVIDIA's caches fetch sectors of 32. Fed by
// launch_counts.h in the order of the run.
// Sets: L0 4-way and scalar cache 4-way, L1, L2 and infinity cache 16-way (AMD, "RDNA
// Architecture" whitepaper, 2019; Chips and Cheese, "Microbenchmarking AMD's RDNA 3").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emu/profile/chip.h"

namespace tuff::emu::profile {

class Cache {
 public:
  Cache(uint64_t bytes, uint32_t ways);
  struct Place {
    uint64_t line = 0;
    uint8_t sectors = 0;
  };
  struct Result {
    uint8_t missing = 0;                // of the sectors that are used
    std::optional<Place> written_back;  // what of it was dirty of a line that made place
  };
  // The sectors are there afterwards, but in a cache of no bytes.
  Result use(const Place& place, bool dirties = false);
  void drop(uint64_t line);

 private:
  struct Way {
    uint64_t line = ~0ull, used = 0;
    uint8_t present = 0, dirty = 0;  // sectors
  };
  std::span<Way> set_of(uint64_t line);

  uint32_t ways_;
  uint64_t sets_, clock_ = 0;
  std::vector<Way> all_;
};

// What all dispatches of a GPU share.
struct SharedCaches {
  explicit SharedCaches(const Chip& chip);
  Cache l2, mall;
};

// Hits and misses are of sectors: of lines, where a line has one.
struct CacheCounts {
  uint64_t l0_hits = 0, l0_misses = 0, l1_hits = 0, l1_misses = 0, l2_hits = 0, l2_misses = 0,
           mall_hits = 0, mall_misses = 0;
  uint64_t dram_bytes_read = 0, dram_bytes_written = 0;
  uint64_t l0_lookups = 0;  // vector lines, stores as well
  uint64_t l0_fill_bytes = 0, l2_bytes = 0, mall_bytes = 0;
};

// The caches as one dispatch sees them.
class CacheModel final : public LineSink {
 public:
  CacheModel(const Chip& chip, SharedCaches& shared, const Residency& residency);
  MemoryLevel access(const LineAccess& access) override;
  const CacheCounts& counts() const { return counts_; }

 private:
  uint32_t cu_of(const LineAccess& access) const;
  uint64_t bytes_of(uint8_t sectors) const;
  MemoryLevel reach_l1(const Cache::Place& place, uint32_t array);
  MemoryLevel reach_l2(const Cache::Place& place, bool writes);
  bool reach_mall(const Cache::Place& place, bool writes);

  const Chip& chip_;
  SharedCaches& shared_;
  bool wgp_mode_;
  std::vector<Cache> l0_, scalar_, l1_;
  CacheCounts counts_;
};

}  // namespace tuff::emu::profile

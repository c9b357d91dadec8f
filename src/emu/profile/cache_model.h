// Which cache has a line: LRU sets of lines without their contents. A GPU's L2 and infinity cache
// live as long as it does; the caches before them begin empty with each dispatch, whose packets
// invalidate them. All lines have 128 bytes. Fed by rdna/counters.h in the order of the run.
// Sets: L0 4-way and scalar cache 4-way, L1, L2 and infinity cache 16-way (AMD, "RDNA
// Architecture" whitepaper, 2019; Chips and Cheese, "Microbenchmarking AMD's RDNA 3").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emu/profile/chip.h"
#include "emu/rdna/counters.h"

namespace tuff::emu::profile {

class Cache {
 public:
  Cache(uint64_t bytes, uint32_t ways);
  struct Result {
    bool hit = false;
    std::optional<uint64_t> written_back;  // a dirty line that made place
  };
  // The line is there afterwards, but in a cache of no bytes.
  Result use(uint64_t line, bool dirties = false);
  void drop(uint64_t line);

 private:
  struct Way {
    uint64_t line = ~0ull, used = 0;
    bool dirty = false;
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

struct CacheCounts {
  uint64_t l0_hits = 0, l0_misses = 0, l1_hits = 0, l1_misses = 0, l2_hits = 0, l2_misses = 0,
           mall_hits = 0, mall_misses = 0;
  uint64_t dram_lines_read = 0, dram_lines_written = 0;
  uint64_t l0_lookups = 0;   // vector lines, stores as well
  uint64_t l2_requests = 0;  // lines
  uint64_t mall_requests = 0;
};

// The caches as one dispatch sees them.
class CacheModel final : public rdna::LineSink {
 public:
  CacheModel(const Chip& chip, SharedCaches& shared, bool wgp_mode);
  rdna::MemoryLevel access(const rdna::LineAccess& access) override;
  const CacheCounts& counts() const { return counts_; }

 private:
  uint32_t cu_of(const rdna::LineAccess& access) const;
  rdna::MemoryLevel reach_l1(uint64_t line, uint32_t array);
  rdna::MemoryLevel reach_l2(uint64_t line, bool writes);
  bool reach_mall(uint64_t line, bool writes);

  const Chip& chip_;
  SharedCaches& shared_;
  bool wgp_mode_;
  std::vector<Cache> l0_, scalar_, l1_;
  CacheCounts counts_;
};

}  // namespace tuff::emu::profile

// Schedules by graph key: bounded, least recently used out first, safe to call from several
// threads. Called by schedule() alone. Knows nothing of how a schedule is made.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "sched/schedule.h"

namespace tuff::sched {

class ScheduleCache {
 public:
  explicit ScheduleCache(size_t capacity) : capacity_(capacity) {}
  // The schedule stored under these tokens (compared in full); empty if there is none.
  std::shared_ptr<const Schedule> find(uint64_t hash, std::span<const uint64_t> tokens);
  void insert(uint64_t hash, std::span<const uint64_t> tokens,
              std::shared_ptr<const Schedule> schedule);
  void clear();
  ScheduleCacheStats stats() const;

 private:
  struct Entry {
    uint64_t hash;
    std::vector<uint64_t> tokens;
    std::shared_ptr<const Schedule> schedule;
  };
  using Entries = std::list<Entry>;
  Entries::iterator locate(uint64_t hash, std::span<const uint64_t> tokens);

  const size_t capacity_;
  mutable std::mutex mutex_;
  Entries entries_;  // most recently used first
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash_;
  ScheduleCacheStats stats_;
};

}  // namespace tuff::sched

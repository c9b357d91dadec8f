#include "sched/cache.h"

#include <algorithm>

namespace tuff::sched {

ScheduleCache::Entries::iterator ScheduleCache::locate(uint64_t hash,
                                                       std::span<const uint64_t> tokens) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::equal(tokens.begin(), tokens.end(), it->second->tokens.begin(),
                   it->second->tokens.end()))
      return it->second;
  }
  return entries_.end();
}

std::shared_ptr<const Schedule> ScheduleCache::find(uint64_t hash,
                                                    std::span<const uint64_t> tokens) {
  std::lock_guard lock(mutex_);
  const auto it = locate(hash, tokens);
  if (it == entries_.end()) {
    stats_.misses++;
    return {};
  }
  stats_.hits++;
  entries_.splice(entries_.begin(), entries_, it);
  return it->schedule;
}

void ScheduleCache::insert(uint64_t hash, std::span<const uint64_t> tokens,
                           std::shared_ptr<const Schedule> schedule) {
  std::lock_guard lock(mutex_);
  if (locate(hash, tokens) != entries_.end()) return;  // another thread was faster
  entries_.push_front({hash, {tokens.begin(), tokens.end()}, std::move(schedule)});
  by_hash_.emplace(hash, entries_.begin());
  if (entries_.size() <= capacity_) return;
  const auto oldest = std::prev(entries_.end());
  const auto [begin, end] = by_hash_.equal_range(oldest->hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second == oldest) {
      by_hash_.erase(it);
      break;
    }
  }
  entries_.erase(oldest);
}

void ScheduleCache::clear() {
  std::lock_guard lock(mutex_);
  by_hash_.clear();
  entries_.clear();
  stats_ = {};
}

ScheduleCacheStats ScheduleCache::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace tuff::sched

#include "engine/uses.h"

#include <algorithm>

#include "base/atomic_max.h"
#include "engine/device.h"

namespace tuff::engine {

std::atomic<uint64_t> Uses::with_origin_{0};

Uses::~Uses() {
  if (has_origin()) with_origin_.fetch_sub(1);
}

void Uses::until(uint64_t value) { raise_to(last_, value); }

uint64_t Uses::last() const {
  uint64_t last = last_.load(std::memory_order_acquire);
  if (!in_groups_.load(std::memory_order_acquire)) return last;
  std::lock_guard lock(mutex_);
  for (const auto* group : groups_) last = std::max(last, group->load(std::memory_order_acquire));
  return last;
}

void Uses::join(const std::atomic<uint64_t>& group) {
  std::lock_guard lock(mutex_);
  groups_.push_back(&group);
  in_groups_.store(true, std::memory_order_release);
}

void Uses::leave(const std::atomic<uint64_t>& group) {
  until(group.load(std::memory_order_acquire));
  std::lock_guard lock(mutex_);
  std::erase(groups_, &group);
  in_groups_.store(!groups_.empty(), std::memory_order_release);
}

Origin Uses::origin() {
  if (!has_origin()) return {};
  std::lock_guard lock(mutex_);
  if (!bound_) set_origin(origin_.unsettled(device_.queue(), written_until_));
  return origin_;
}

void Uses::written_from(const Origin& origin, bool whole) {
  if (!origin && !has_origin()) return;
  std::lock_guard lock(mutex_);
  set_origin(whole ? origin : origin_.with(origin));
  written_until_ = UINT64_MAX;
}

void Uses::written_until(uint64_t value) {
  if (!has_origin()) return;
  std::lock_guard lock(mutex_);
  written_until_ = value;
}

void Uses::bind_to(const Origin& origin) {
  std::lock_guard lock(mutex_);
  bound_ = true;
  set_origin(origin);
}

void Uses::set_origin(const Origin& origin) {
  if (!(origin == origin_)) origin_ = origin;
  const bool had = has_origin_.exchange(bool(origin_), std::memory_order_acq_rel);
  with_origin_.fetch_add(uint64_t(bool(origin_)) - uint64_t(had), std::memory_order_acq_rel);
}

}  // namespace tuff::engine

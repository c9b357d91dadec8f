// Uses: until when the memory behind a Buffer is touched, and what its contents depend on beyond
// its device. One per allocation, for all views of it. Called by the rest of engine. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/outcome.h"

namespace tuff::engine {

class Device;

class Uses {
 public:
  explicit Uses(Device& device) : device_(device) {}
  ~Uses();
  // The memory is touched until the device's compute queue has passed `value`: whatever else
  // touches it (a copy queue, a thread that copies between devices) has a submission of the compute
  // queue wait for it.
  void until(uint64_t value);
  uint64_t last() const;
  // A value of the same timeline that counts too, until it leaves: see GroupUse.
  void join(const std::atomic<uint64_t>& group);
  void leave(const std::atomic<uint64_t>& group);

  // What the contents depend on. Kept per allocation: of a part that is written the whole depends
  // on it too.
  Origin origin();
  bool has_origin() const { return has_origin_.load(std::memory_order_acquire); }
  void add_origin(Origin& to) {
    if (has_origin()) to = to.with(origin());
  }
  // Whether there is any such memory in the process.
  static bool any_has_origin() { return with_origin_.load(std::memory_order_acquire) != 0; }
  // All of the memory, or a part, was written from contents that depend on it.
  void written_from(const Origin& origin, bool whole);
  // What written_from() told of is done once the compute queue has passed that value.
  void written_until(uint64_t value);
  // Contents that depend on it whatever is done: those of a mapped file.
  void bind_to(const Origin& origin);
  bool is_bound() const { return bound_; }

 private:
  void set_origin(const Origin& origin);  // under mutex_
  static std::atomic<uint64_t> with_origin_;
  Device& device_;
  std::atomic<uint64_t> last_{0};
  std::atomic<bool> in_groups_{false}, has_origin_{false};
  bool bound_ = false;
  mutable std::mutex mutex_;
  std::vector<const std::atomic<uint64_t>*> groups_;  // under mutex_
  Origin origin_;                                     // the same
  uint64_t written_until_ = UINT64_MAX;               // the same
};

}  // namespace tuff::engine

// Outcome: whether work that goes on after the call that submitted it has returned, in another
// device's queue or in a thread, has failed; and Origin, which of that the contents of memory
// depend on. A device's own failure is told by its queue; this tells of another device's, whose
// loss does not stop the devices that wait for it. Called by engine. Knows nothing of queues.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tuff::engine {

// Of a captured graph's replays, numbered from 1. Thread-safe.
class Outcome {
 public:
  static constexpr uint64_t kLatest = UINT64_MAX;  // memory that every replay writes anew
  // From this replay on nothing is right. The first reason stays.
  void fail(uint64_t replay, const std::string& reason);
  // Throws DeviceLost with the reason if that replay or one before it has failed.
  void require(uint64_t replay) const;

 private:
  std::atomic<uint64_t> failed_from_{UINT64_MAX};
  mutable std::mutex mutex_;
  std::string reason_;
};

// What contents depend on: a value, cheap to copy; empty for most memory.
class Origin {
 public:
  Origin() = default;
  Origin(std::shared_ptr<Outcome> outcome, uint64_t replay);
  explicit operator bool() const { return parts_ != nullptr; }
  bool operator==(const Origin&) const = default;
  // Both; allocates if they differ.
  Origin with(const Origin& other) const;
  void require() const;  // throws DeviceLost

 private:
  struct Part {
    std::shared_ptr<Outcome> outcome;
    uint64_t replay = 0;
  };
  std::shared_ptr<const std::vector<Part>> parts_;
};

}  // namespace tuff::engine

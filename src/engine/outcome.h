// Outcome: whether work that goes on after the call that submitted it has returned, in another
// device's queue or in a thread, has failed; and Origin, which of that the contents of memory
// depend on. A device's own failure is told by its queue; this tells of another device's, whose
// loss does not stop the devices that wait for it, and of files. Called by engine. Queues are names
// here.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tuff::hcq {
class Queue;
}

namespace tuff::engine {

// Replays of a captured graph are numbered from 1; work that is done once is replay 1. Thread-safe.
class Outcome {
 public:
  static constexpr uint64_t kLatest = UINT64_MAX;  // memory that every replay writes anew
  enum class Cause : uint8_t { Device, File };
  virtual ~Outcome() = default;
  // From this replay on nothing is right. The first reason stays.
  void fail(uint64_t replay, const std::string& reason, Cause cause = Cause::Device);
  // Throws DeviceLost, or IoError where a file is the cause, with the reason if that replay or one
  // before it is known to have failed.
  void require(uint64_t replay) const;
  bool has_failed() const { return failed_from_.load(std::memory_order_acquire) != UINT64_MAX; }
  // Finds out whether it has failed, where nothing tells it. What was submitted to `queue` up to
  // `reached` is over.
  virtual void look(const hcq::Queue& queue, uint64_t reached) { (void)queue, (void)reached; }
  // Whether what `queue` has done up to `value` is known to be right, whatever comes.
  virtual bool is_settled(const hcq::Queue& queue, uint64_t value) const {
    return (void)queue, (void)value, false;
  }

 private:
  std::atomic<uint64_t> failed_from_{UINT64_MAX};
  mutable std::mutex mutex_;
  std::string reason_;
  Cause cause_ = Cause::Device;
};

// What contents depend on: a value, cheap to copy; empty for most memory.
class Origin {
 public:
  Origin() = default;
  Origin(std::shared_ptr<Outcome> outcome, uint64_t replay);
  explicit operator bool() const { return parts_ != nullptr; }
  bool operator==(const Origin&) const = default;
  // Both; allocates if neither holds the other.
  Origin with(const Origin& other) const;
  void require() const;  // Outcome::require() of all
  void look(const hcq::Queue& queue, uint64_t reached) const;
  // What contents that `queue` has made up to `value` still depend on.
  Origin unsettled(const hcq::Queue& queue, uint64_t value) const;

 private:
  struct Part {
    std::shared_ptr<Outcome> outcome;
    uint64_t replay = 0;
  };
  bool holds(const Origin& other) const;  // neither is empty
  std::shared_ptr<const std::vector<Part>> parts_;
};

}  // namespace tuff::engine

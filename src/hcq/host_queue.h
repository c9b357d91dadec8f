// HostQueue: an in-order queue whose device is a thread of this process. Used by engine's captured
// graphs where two devices have no queue in common: it waits for one device's timeline, copies
// between memory that the host reaches on both sides (one memcpy, or reads and writes of a file),
// and raises signals that the other device's queues wait for, so that no caller blocks. Knows
// nothing of tensors.
// Its lists are Waits first, then Copies, then Signals; a list of nothing but Waits watches for the
// loss of devices (docs/design/multi-device.md).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/os_fork.h"
#include "hcq/device.h"

namespace tuff::hcq {

// A signal that the host alone raises and waits for.
class HostTimeline final : public Signal {
 public:
  explicit HostTimeline(uint64_t value = 0) : value_(value) {}
  uint64_t value() const override { return value_.load(std::memory_order_acquire); }
  bool wait(uint64_t value, uint64_t timeout_ns) override;
  void set(uint64_t value) override;

 private:
  std::atomic<uint64_t> value_;
  std::mutex mutex_;
  std::condition_variable raised_;
};

// May be submitted again while it is in flight, kInFlight times; beyond that submit() waits.
class HostList final : public EncodedList {
 public:
  // Where copy `index`, in the list's order, reads and writes from the next submission on: spans of
  // equal size. Copies whose spans the host reaches are bound already.
  void bind_copy(size_t index, const Span& dst, const Span& src);
  size_t copies() const { return copies_.size(); }

 private:
  friend class HostQueue;
  static constexpr size_t kInFlight = 4;
  struct Point {
    Queue* queue = nullptr;    // of a Wait
    Signal* signal = nullptr;  // of a Signal
    uint32_t slot = 0;
  };
  struct Copy {
    Span dst, src;
  };
  struct Flight {
    std::vector<uint64_t> slots;
    std::vector<Copy> copies;
    uint64_t value = 0;
  };
  std::vector<Point> waits_, signals_;
  std::vector<Copy> copies_;
  std::array<Flight, kInFlight> flights_;
  size_t next_flight_ = 0;
};

class HostQueue final : public Queue {
 public:
  // Called on the queue's thread with the value of a submission that failed and why.
  using Failed = std::function<void(uint64_t value, const std::string& reason)>;

  // `device` is whose work the queue serves; only its name is used.
  HostQueue(Device& device, std::vector<Queue*> sources, Failed failed);
  ~HostQueue() override;  // what was submitted runs first
  // A further queue whose timeline lists may wait for; before any list that does. Sources are there
  // until this queue is idle.
  void add_source(Queue& queue) { sources_.push_back(&queue); }

  // Throws Unsupported for a command that the host does not do or a Wait for an unknown timeline.
  std::unique_ptr<EncodedList> encode(const CommandList& list, EncodeUse use) override;
  uint64_t submit(EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(EncodedList&) override { return {}; }
  Signal& timeline() override { return timeline_; }
  uint64_t last_submitted() const override { return submitted_.load(std::memory_order_acquire); }
  // Every submission ends, at the latest when what it waits for is given up: no limit of its own.
  void wait(uint64_t value) override;

 private:
  static constexpr uint64_t kRingEntries = 64;
  struct Entry {
    const HostList* list = nullptr;
    const HostList::Flight* flight = nullptr;
  };
  void serve();
  void run(const Entry& entry, uint64_t value);
  void watch(const Entry& entry, uint64_t value);
  void wait_for(Queue& queue, uint64_t value);
  void copy(const HostList::Copy& c);
  void report(uint64_t value, const std::string& reason) noexcept;

  std::vector<Queue*> sources_;
  Failed failed_;
  HostTimeline timeline_;
  std::mutex submit_mutex_;
  std::array<Entry, kRingEntries> ring_{};  // entry v % kRingEntries belongs to value v
  std::atomic<uint64_t> submitted_{0};
  std::mutex doorbell_mutex_;
  std::condition_variable doorbell_;
  bool stop_ = false;
  const uint32_t started_at_ = os::forks();
  std::thread thread_;
};

}  // namespace tuff::hcq

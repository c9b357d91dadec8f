// QueueTable: the queues of a process, by small numbers, so that a signal can tell which
// submissions name it: before its base moves (SignalEpoch::rebase) they all have to have passed.
// Used by AmdQueue. Knows no packets.
#pragma once

#include <array>
#include <mutex>

#include "base/check.h"
#include "base/mutex.h"
#include "hcq/device.h"

namespace tuff::devices::amd {

class QueueTable {
 public:
  static constexpr uint32_t kMaxQueues = 64;
  // Held while a submission turns values into words, and while a base moves.
  Mutex& epochs() { return epochs_; }

  uint32_t add(hcq::Queue& queue) {
    std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < kMaxQueues; ++i) {
      if (queues_[i] != nullptr) continue;
      queues_[i] = &queue;
      return i;
    }
    fail<Unsupported>("AMD: more than {} queues in one process", kMaxQueues);
  }
  void remove(uint32_t number) {
    std::lock_guard lock(mutex_);
    queues_[number] = nullptr;
  }
  // Null: none has that number now.
  hcq::Queue* at(uint32_t number) {
    std::lock_guard lock(mutex_);
    return queues_[number];
  }

 private:
  Mutex epochs_;
  std::mutex mutex_;
  std::array<hcq::Queue*, kMaxQueues> queues_{};
};

}  // namespace tuff::devices::amd

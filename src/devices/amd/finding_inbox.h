// FindingInbox: what an emulated machine reports on threads of its own, until a device of it asks.
// Filled by the registry's glue. Knows no machine.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "hcq/hazard_guard.h"

namespace tuff::devices {

class FindingInbox {
 public:
  void add(hcq::MachineFinding finding) {
    std::lock_guard lock(mutex_);
    found_.push_back(std::move(finding));
    any_.store(true, std::memory_order_release);
  }
  // Cheap where there is nothing.
  std::vector<hcq::MachineFinding> take() {
    if (!any_.load(std::memory_order_acquire)) return {};
    std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_release);
    return std::exchange(found_, {});
  }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<hcq::MachineFinding> found_;
};

}  // namespace tuff::devices

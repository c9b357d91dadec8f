// CpuSignal: a word in memory that only rises, with a futex for sleepers.
// Used by the queues of CPU, OpenCL and NULL devices and by those who wait for them. Knows nothing
// of packets or kernels.
#pragma once

#include <algorithm>
#include <atomic>

#include "base/os.h"
#include "hcq/device.h"

namespace tuff::devices {

// Pauses before a thread sleeps: some tens of microseconds.
inline constexpr int kSpinRounds = 1000;

class CpuSignal : public hcq::Signal {
 public:
  explicit CpuSignal(uint64_t value = 0) : value_(value) {}
  uint64_t value() const override { return value_.load(std::memory_order_acquire); }
  void set(uint64_t value) override {
    value_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    epoch_.fetch_add(1, std::memory_order_release);
    os::futex_wake(&epoch_, INT32_MAX);
  }
  bool wait(uint64_t value, uint64_t timeout_ns) override {
    for (int i = 0; i < kSpinRounds; ++i) {
      if (this->value() >= value) return true;
      os::cpu_relax();
    }
    return sleep(value, timeout_ns);
  }
  // Sleeps without spinning first.
  bool sleep(uint64_t value, uint64_t timeout_ns) {
    uint64_t end = os::monotonic_ns() + timeout_ns;
    for (;;) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      uint32_t epoch = epoch_.load(std::memory_order_acquire);
      uint64_t now = os::monotonic_ns();
      bool reached = value_.load(std::memory_order_seq_cst) >= value;
      if (!reached && now < end) os::futex_wait(&epoch_, epoch, end - now);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
      if (reached) return true;
      if (now >= end) return false;
    }
  }

 private:
  std::atomic<uint64_t> value_;
  std::atomic<uint32_t> epoch_{0};  // what sleepers sleep on: futexes are 32 bits wide
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace tuff::devices

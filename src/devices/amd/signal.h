// AmdSignal: a 64-bit value in eight bytes that the host and all GPUs of the process share; of a
// queue its timeline. Used by queues of AMD's GPUs and by their waiters. Knows no packets.
#pragma once

#include <array>
#include <atomic>

#include "devices/amd/encode/signal_epoch.h"
#include "devices/amd/space.h"
#include "hcq/device.h"

namespace tuff::devices::amd {

class GpuState;

class AmdSignal final : public hcq::Signal {
 public:
  // `interrupt`: of the queue that raises it, or null.
  AmdSignal(GpuState& gpu, uint64_t value, const Interrupt* interrupt = nullptr);
  ~AmdSignal() override;
  uint64_t value() const override { return epoch_.value(); }
  bool wait(uint64_t value, uint64_t timeout_ns) override;
  void set(uint64_t value) override;
  uint64_t address() const { return reinterpret_cast<uint64_t>(slot_); }
  SignalEpoch& epoch() { return epoch_; }
  const SignalEpoch& epoch() const { return epoch_; }

  // Packets of that submission name it; `queue` is its number in the QueueTable.
  void named_by(uint32_t queue, uint64_t value) {
    named_[queue].store(value, std::memory_order_release);
  }
  // Waits until no submission in flight names it. Lost devices have none, but the loss of `own` is
  // thrown.
  void drain(const hcq::Device* own = nullptr) const;
  bool named_in_flight() const;

 private:
  uint64_t last_named_by(uint32_t queue) const {
    return named_[queue].load(std::memory_order_acquire);
  }
  GpuState& gpu_;
  const Interrupt* interrupt_;
  uint64_t* slot_;
  SignalEpoch epoch_;
  std::array<std::atomic<uint64_t>, QueueTable::kMaxQueues> named_{};
};

}  // namespace tuff::devices::amd

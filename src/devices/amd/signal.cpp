#include "devices/amd/signal.h"

#include <algorithm>

#include "base/os.h"
#include "devices/amd/gpu_state.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kSpinForValueNs = 20'000;
constexpr uint64_t kNsPerMs = 1'000'000;
// What a lost interrupt costs at most.
constexpr uint64_t kFirstBlockMs = 1, kLongestBlockMs = 8;

}  // namespace

AmdSignal::AmdSignal(GpuState& gpu, uint64_t value, const Interrupt* interrupt)
    : gpu_(gpu), interrupt_(interrupt), slot_(gpu.space->allocate_signal()), epoch_(slot_, value) {}

AmdSignal::~AmdSignal() { gpu_.space->free_signal(slot_); }

bool AmdSignal::wait(uint64_t value, uint64_t timeout_ns) {
  const uint64_t begin = os::monotonic_ns(), end = begin + timeout_ns;
  const uint64_t spin_end = begin + std::min(timeout_ns, kSpinForValueNs);
  while (this->value() < value && os::monotonic_ns() < spin_end) os::cpu_relax();
  for (uint64_t block_ms = kFirstBlockMs; this->value() < value;) {
    const uint64_t now = os::monotonic_ns();
    if (now >= end) return false;
    const uint64_t left_ms = std::max<uint64_t>((end - now) / kNsPerMs, 1);
    gpu_.block(interrupt_, uint32_t(std::min(block_ms, left_ms)));
    block_ms = interrupt_ ? std::min(2 * block_ms, kLongestBlockMs) : kFirstBlockMs;
  }
  return true;
}

// Packets compare 32 bits with the base: a jump beyond them first releases all waiters.
void AmdSignal::set(uint64_t value) {
  {
    std::unique_lock lock(gpu_.space->queues().epochs());
    if (epoch_.can_set(value)) return epoch_.set(value);
    if (value < epoch_.base())
      fail<InvalidArgument>("a signal at {} cannot be set back to {}", this->value(), value);
    epoch_.set(epoch_.base() + UINT32_MAX);
  }
  for (;;) {
    drain();
    std::unique_lock lock(gpu_.space->queues().epochs());
    if (!named_in_flight()) return epoch_.move_to(value);
  }
}

void AmdSignal::drain(const hcq::Device* own) const {
  for (uint32_t q = 0; q < QueueTable::kMaxQueues; ++q) {
    hcq::Queue* queue = gpu_.space->queues().at(q);
    if (queue == nullptr) continue;
    try {
      // A number may have been another queue's before.
      queue->wait(std::min(last_named_by(q), queue->last_submitted()));
    } catch (const DeviceLost&) {
      if (&queue->device() == own) throw;
    }
  }
}

bool AmdSignal::named_in_flight() const {
  for (uint32_t q = 0; q < QueueTable::kMaxQueues; ++q) {
    hcq::Queue* queue = gpu_.space->queues().at(q);
    if (queue && !queue->device().lost() &&
        !queue->passed(std::min(last_named_by(q), queue->last_submitted())))
      return true;
  }
  return false;
}

}  // namespace tuff::devices::amd

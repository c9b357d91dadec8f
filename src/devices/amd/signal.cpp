#include "devices/amd/signal.h"

#include <algorithm>

#include "base/os.h"
#include "devices/amd/gpu_state.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kSpinNs = 20'000;
constexpr uint64_t kNsPerMs = 1'000'000;
// What a lost interrupt costs at most.
constexpr uint64_t kFirstBlockMs = 1, kLongestBlockMs = 8;

}  // namespace

AmdSignal::AmdSignal(GpuState& gpu, uint64_t value, const SignalEvent* event)
    : gpu_(gpu),
      event_(event),
      slot_(gpu.process->allocate_signal(gpu.gpu)),
      epoch_(slot_, value) {}

AmdSignal::~AmdSignal() { gpu_.process->free_signal(slot_); }

bool AmdSignal::wait(uint64_t value, uint64_t timeout_ns) {
  const uint64_t begin = os::monotonic_ns(), end = begin + timeout_ns;
  const uint64_t spin_end = begin + std::min(timeout_ns, kSpinNs);
  while (this->value() < value && os::monotonic_ns() < spin_end) os::cpu_relax();
  for (uint64_t block_ms = kFirstBlockMs; this->value() < value;) {
    const uint64_t now = os::monotonic_ns();
    if (now >= end) return false;
    const uint64_t left_ms = std::max<uint64_t>((end - now) / kNsPerMs, 1);
    gpu_.block(event_, uint32_t(std::min(block_ms, left_ms)));
    block_ms = event_ ? std::min(2 * block_ms, kLongestBlockMs) : kFirstBlockMs;
  }
  return true;
}

}  // namespace tuff::devices::amd

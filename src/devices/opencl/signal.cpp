#include "devices/opencl/signal.h"

#include <algorithm>

namespace tuff::devices::opencl {

void WaitingEvents::add(const ClSignal& signal, uint64_t value, cl_event event) {
  const Context& c = *context_;
  c.check(c.api.clRetainEvent(event), "clRetainEvent");
  {
    std::lock_guard lock(mutex_);
    if (abandoned_ || signal.value() < value) {
      waiting_.push_back({&signal, value, event});
      return;
    }
  }
  complete({{&signal, value, event}});
}

void WaitingEvents::raised(const ClSignal& signal) {
  std::vector<Waiting> ready;
  {
    std::lock_guard lock(mutex_);
    if (abandoned_) return;
    const uint64_t now = signal.value();
    const auto split = std::stable_partition(
        waiting_.begin(), waiting_.end(),
        [&](const Waiting& w) { return w.signal != &signal || w.value > now; });
    ready.assign(split, waiting_.end());
    waiting_.erase(split, waiting_.end());
  }
  complete(ready);
}

void WaitingEvents::abandon() noexcept {
  std::lock_guard lock(mutex_);
  abandoned_ = true;
}

void WaitingEvents::complete(const std::vector<Waiting>& events) noexcept {
  for (const Waiting& w : events) {
    context_->api.clSetUserEventStatus(w.event, CL_COMPLETE);
    context_->api.clReleaseEvent(w.event);
  }
}

}  // namespace tuff::devices::opencl

#include "devices/opencl/signal.h"

#include <algorithm>

namespace tuff::devices::opencl {

void WaitingEvents::add(const ClSignal& signal, uint64_t value, cl_event event) {
  const Context& c = *context_;
  c.check(c.api.clRetainEvent(event), "clRetainEvent");
  bool failed = false;
  {
    std::lock_guard lock(mutex_);
    failed = failed_;
    if (!failed && signal.value() < value) {
      waiting_.push_back({&signal, value, event});
      return;
    }
  }
  complete({{&signal, value, event}}, failed ? CL_INVALID_OPERATION : CL_COMPLETE);
}

void WaitingEvents::raised(const ClSignal& signal) {
  std::vector<Waiting> ready;
  {
    std::lock_guard lock(mutex_);
    const uint64_t now = signal.value();
    const auto split = std::stable_partition(
        waiting_.begin(), waiting_.end(),
        [&](const Waiting& w) { return w.signal != &signal || w.value > now; });
    ready.assign(split, waiting_.end());
    waiting_.erase(split, waiting_.end());
  }
  complete(std::move(ready), CL_COMPLETE);
}

void WaitingEvents::fail_all() noexcept {
  std::vector<Waiting> all;
  {
    std::lock_guard lock(mutex_);
    failed_ = true;
    all.swap(waiting_);
  }
  complete(std::move(all), CL_INVALID_OPERATION);
}

void WaitingEvents::complete(std::vector<Waiting> events, cl_int status) noexcept {
  for (const Waiting& w : events) {
    context_->api.clSetUserEventStatus(w.event, status);
    context_->api.clReleaseEvent(w.event);
  }
}

}  // namespace tuff::devices::opencl

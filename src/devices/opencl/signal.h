// ClSignal: hcq::Signal as a word of the host. What waits for it in a queue waits for a user event,
// which raising the signal completes. Used by the queue and by threads that wait for it.
#pragma once

#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "devices/cpu_signal.h"
#include "devices/opencl/context.h"

namespace tuff::devices::opencl {

class ClSignal;

// A reference to an event, given back at the end; or to none.
struct ReleaseEvent {
  const ClApi* api = nullptr;
  void operator()(cl_event event) const noexcept { api->clReleaseEvent(event); }
};
using EventRef = std::unique_ptr<std::remove_pointer_t<cl_event>, ReleaseEvent>;

// The user events of a device that have not completed yet.
class WaitingEvents {
 public:
  explicit WaitingEvents(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  // `event` completes once `signal` is at `value`; the caller's reference stays its own.
  void add(const ClSignal& signal, uint64_t value, cl_event event);
  void raised(const ClSignal& signal);
  // None is completed from now on: what waits for them never runs. Not failed, which aborts the
  // process in PoCL 3.1.
  void abandon() noexcept;

 private:
  struct Waiting {
    const ClSignal* signal;
    uint64_t value;
    cl_event event;
  };
  void complete(const std::vector<Waiting>& events) noexcept;

  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  bool abandoned_ = false;
  std::vector<Waiting> waiting_;
};

class ClSignal : public CpuSignal {
 public:
  ClSignal(std::shared_ptr<WaitingEvents> events, uint64_t value)
      : CpuSignal(value), events_(std::move(events)) {}
  void set(uint64_t value) override {
    CpuSignal::set(value);
    events_->raised(*this);
  }
  // The driver's own event for a value that has not been reached, or none: for waits that need no
  // help of the host.
  virtual EventRef event_at(uint64_t) const { return {}; }

 private:
  std::shared_ptr<WaitingEvents> events_;
};

}  // namespace tuff::devices::opencl

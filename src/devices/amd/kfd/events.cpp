#include "devices/amd/kfd/events.h"

#include <cerrno>

namespace tuff::devices::amd {

Events::Events(Process& process, Gpu& gpu)
    : process_(process),
      gpu_(gpu),
      memory_(process, gpu, uapi::EventType::Memory),
      hardware_(process, gpu, uapi::EventType::HwException) {}

// The kernel fills in what has fired of the exceptions; all of a process's events of that type
// fire, so that other GPUs' are told apart by their ids.
Exceptions Events::wait(const Event* event, uint32_t timeout_ms) {
  uapi::EventData data[3]{};
  data[0].event_id = memory_.id();
  data[1].event_id = hardware_.id();
  if (event != nullptr) data[2].event_id = event->id();
  uapi::WaitEvents w{};
  w.events_ptr = reinterpret_cast<uint64_t>(data);
  w.num_events = event != nullptr ? 3 : 2;
  w.timeout_ms = timeout_ms;
  const int result = process_.kernel().ioctl(process_.fd(), uapi::kWaitEvents, &w);
  if (result != -EINTR)
    checked(result, "WAIT_EVENTS({} events of {}, {} ms)", w.num_events, gpu_.node.arch(),
            timeout_ms);
  Exceptions out;
  if (result < 0 || w.wait_result != uint32_t(uapi::WaitResult::Complete)) return out;
  if (data[0].memory_exception.gpu_id == gpu_.node.gpu_id) out.memory = data[0].memory_exception;
  if (data[1].hw_exception.gpu_id == gpu_.node.gpu_id) out.hardware = data[1].hw_exception;
  return out;
}

}  // namespace tuff::devices::amd

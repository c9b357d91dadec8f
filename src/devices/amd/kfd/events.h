// Events: what the kernel tells a process of one GPU: interrupts of its queues, and its exceptions.
// Used by KfdSpace.
#pragma once

#include <optional>

#include "devices/amd/kfd/process.h"

namespace tuff::devices::amd {

// One of the kernel's events, destroyed with the object. Of type Signal: the interrupts of a queue,
// whose packets write id() to the mailbox and raise one.
class KfdEvent final : public Interrupt {
 public:
  KfdEvent(Process& process, Gpu& gpu, uapi::EventType type)
      : process_(process), made_(process.create_event(gpu, type)) {}
  ~KfdEvent() override { process_.destroy_event(made_.event_id); }
  uint32_t id() const override { return made_.event_id; }
  uint64_t mailbox() const override { return process_.event_mailbox(made_.event_slot_index); }

 private:
  Process& process_;
  uapi::CreateEvent made_;
};

class Events {
 public:
  Events(Process& process, Gpu& gpu);
  Events(const Events&) = delete;
  // Until the event, an exception of this GPU, or the timeout; without an event for exceptions
  // alone.
  std::optional<GpuError> wait(const Interrupt* event, uint32_t timeout_ms);

 private:
  Process& process_;
  Gpu& gpu_;
  KfdEvent memory_, hardware_;
};

}  // namespace tuff::devices::amd

// Events: what the kernel tells a process of one GPU: interrupts of its queues, and its exceptions.
// Used by whoever waits for the GPU. A wait that misses an interrupt costs time and nothing else.
#pragma once

#include <optional>

#include "devices/amd/kfd/process.h"

namespace tuff::devices::amd {

// Interrupts of one queue: packets write `id` to the mailbox and raise one.
struct SignalEvent {
  uint32_t id = 0;
  uint64_t mailbox = 0;
};

struct Exceptions {
  std::optional<uapi::MemoryException> memory;
  std::optional<uapi::HwException> hardware;
};

class Events {
 public:
  Events(Process& process, Gpu& gpu);
  ~Events();
  Events(const Events&) = delete;
  SignalEvent create_signal();
  void destroy_signal(const SignalEvent& event) noexcept;
  // Until the event, an exception of this GPU, or the timeout; without an event for exceptions
  // alone.
  Exceptions wait(const SignalEvent* event, uint32_t timeout_ms);

 private:
  // One of the kernel's, destroyed with the object.
  struct Event {
    Event(Process& process, Gpu& gpu, uapi::EventType type)
        : process(process), made(process.create_event(gpu, type)) {}
    ~Event() { process.destroy_event(made.event_id); }
    Event(const Event&) = delete;
    Process& process;
    uapi::CreateEvent made;
  };
  Process& process_;
  Gpu& gpu_;
  Event memory_, hardware_;
};

}  // namespace tuff::devices::amd

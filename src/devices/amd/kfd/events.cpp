#include "devices/amd/kfd/events.h"

#include <algorithm>
#include <cerrno>

namespace tuff::devices::amd {
namespace {

std::string to_text(const uapi::MemoryException& e) {
  const char* kinds[] = {"memory access fault", "memory error (ECC)", "poisoned memory was read",
                         "the GPU hangs"};
  const char* access = e.no_execute    ? "instructions are fetched from memory without that right"
                       : e.read_only   ? "a write to memory that is read-only"
                       : e.not_present ? "a page that is not mapped for this GPU"
                                       : "access unknown";
  return fmt::format("{} at {:#x}: {}{}", kinds[std::min<uint32_t>(e.error_type, 3)], e.address,
                     access, e.imprecise ? " (the address is imprecise)" : "");
}

std::string to_text(const uapi::HwException& e) {
  return fmt::format(
      "hardware exception: {} of {}{}",
      e.reset_cause == 1 ? "an uncorrectable memory error (ECC), reset" : "a hang, reset",
      e.reset_type == 1 ? "one engine" : "the whole GPU",
      e.memory_lost ? "; its memory is lost" : "");
}

}  // namespace

Events::Events(Process& process, Gpu& gpu)
    : process_(process),
      gpu_(gpu),
      memory_(process, gpu, uapi::EventType::Memory),
      hardware_(process, gpu, uapi::EventType::HwException) {}

// The kernel fills in what has fired of the exceptions; all of a process's events of that type
// fire, so that other GPUs' are told apart by their ids.
std::optional<GpuError> Events::wait(const Interrupt* event, uint32_t timeout_ms) {
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
  if (result < 0 || w.wait_result != uint32_t(uapi::WaitResult::Complete)) return {};
  const uapi::MemoryException& memory = data[0].memory_exception;
  if (memory.gpu_id == gpu_.node.gpu_id) return GpuError{to_text(memory), memory.address};
  const uapi::HwException& hardware = data[1].hw_exception;
  if (hardware.gpu_id == gpu_.node.gpu_id) return GpuError{to_text(hardware), {}};
  return {};
}

}  // namespace tuff::devices::amd

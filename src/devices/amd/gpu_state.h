// GpuState: what the queues, signals and programs of one opened GPU share: its process, generation,
// events, scratch and clock, and whether it still works. Owned by AmdDevice. Knows no packets.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/amd/amd.h"
#include "devices/amd/encode/encode.h"
#include "devices/amd/kfd/events.h"

namespace tuff::devices::amd {

// Memory for the private segments of all kernels in flight. Lists keep what they name.
struct Scratch {
  ScratchArea area;
  std::unique_ptr<Buffer> memory;
};

// GPU ticks as ns of the host's monotonic clock.
class GpuClock {
 public:
  GpuClock(Process& process, const Gpu& gpu);
  // Between what was read when the device was opened and what is read now.
  std::vector<uint64_t> to_ns(std::span<const uint64_t> ticks);

 private:
  struct Point {
    uint64_t ticks = 0, host_ns = 0;
  };
  Point read() const;
  Process& process_;
  const Gpu& gpu_;
  Point opened_;
};

class GpuState {
 public:
  // Declares the device lost and throws DeviceLost. With the address of a fault, where there is
  // one.
  using Lost = std::function<void(const std::string& reason, std::optional<uint64_t> address)>;
  GpuState(std::shared_ptr<Process> process, const GpuNode& node, Lost lost);

  // Blocks until the queue's event, an exception or the timeout; then throws. An event
  // of null waits for exceptions and time alone.
  void block(const Event* event, uint32_t timeout_ms);
  // At least that for each lane; null for none.
  std::shared_ptr<const Scratch> scratch(uint32_t bytes_per_lane);

  const std::shared_ptr<Process> process;
  Gpu& gpu;
  const Generation& generation;
  Events events;
  GpuClock clock;

 private:
  Lost lost_;
  std::mutex scratch_mutex_;
  std::shared_ptr<const Scratch> scratch_;
};

// "page not present for a read at 0x... (...)": what the kernel's record says.
std::string to_text(const uapi::MemoryException& e);
std::string to_text(const uapi::HwException& e);

}  // namespace tuff::devices::amd

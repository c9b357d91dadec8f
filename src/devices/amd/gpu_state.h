// GpuState: what the queues, signals and programs of one opened GPU share: its space, generation,
// scratch and clock, and whether it still works. Owned by AmdDevice. Knows no packets.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/os_fork.h"
#include "devices/amd/space.h"

namespace tuff::devices::amd {

// Memory for the private segments of all kernels in flight. Lists keep what they name.
struct Scratch {
  ScratchArea area;
  std::unique_ptr<Buffer> memory;
};

// Throws Unsupported for one that is not in the table.
const Generation& generation_of(const GpuFacts& facts);

// GPU ticks as ns of the host's monotonic clock.
class GpuClock {
 public:
  explicit GpuClock(const Space& space) : space_(space), opened_(space.read_clock()) {}
  // Between what was read when the device was opened and what is read now.
  std::vector<uint64_t> to_ns(std::span<const uint64_t> ticks);

 private:
  const Space& space_;
  const ClockPoint opened_;
};

class GpuState {
 public:
  // Declares the device lost and throws DeviceLost. With the address of a fault, where there is
  // one.
  using Lost = std::function<void(const std::string& reason, std::optional<uint64_t> address)>;
  GpuState(std::unique_ptr<Space> space, Lost lost);

  // Blocks until the queue's interrupt, an error or the timeout, and throws of an error. With null
  // for errors and time alone.
  void block(const Interrupt* interrupt, uint32_t timeout_ms);
  // At least that for each lane; null for none.
  std::shared_ptr<const Scratch> scratch(uint32_t bytes_per_lane);

  // In a child of fork() nothing may be asked of the driver: its objects are the parent's.
  bool is_childs() const { return os::forks() != forks_; }

  const std::unique_ptr<Space> space;
  const GpuFacts& facts;
  const Generation& generation;
  GpuClock clock;

 private:
  const uint32_t forks_ = os::forks();
  Lost lost_;
  std::mutex scratch_mutex_;
  std::shared_ptr<const Scratch> scratch_;
};

}  // namespace tuff::devices::amd

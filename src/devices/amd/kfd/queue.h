// HardwareQueue: a queue of a GPU with the memory that it needs: ring, pointers, end-of-pipe
// buffer, save area. Made by AmdQueue. Knows where packets go, not what they say.
#pragma once

#include <memory>

#include "devices/amd/encode/encode.h"
#include "devices/amd/encode/ring.h"
#include "devices/amd/kfd/process.h"

namespace tuff::devices::amd {

struct HardwareQueueSetup {
  QueueType type = QueueType::Pm4;
  uint32_t ring_bytes = 0;  // a power of two
};

class HardwareQueue {
 public:
  HardwareQueue(Process& process, Gpu& gpu, const HardwareQueueSetup& setup);
  ~HardwareQueue();
  HardwareQueue(const HardwareQueue&) = delete;
  Ring& ring() const { return *ring_; }
  uint32_t id() const { return id_; }
  // What runs is ended and nothing runs from here on; the memory stays. Any number of times.
  void stop() noexcept;
  // Tells an AQL queue where the scratch of its kernels is. Nothing may be in flight.
  void set_scratch(const ScratchArea& area);

 private:
  uint64_t create(const HardwareQueueSetup& setup);
  Process& process_;
  Gpu& gpu_;
  QueueSizes sizes_{};
  std::unique_ptr<Buffer> ring_memory_, pointers_, end_of_pipe_, save_area_;
  std::unique_ptr<Ring> ring_;
  uint32_t id_ = 0;
  std::mutex mutex_;
  bool created_ = false;
};

}  // namespace tuff::devices::amd

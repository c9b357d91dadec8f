// KfdQueue: a queue of a GPU with the memory that it needs: ring, pointers, end-of-pipe
// buffer, save area. Made by KfdSpace.
#pragma once

#include <memory>

#include "devices/amd/kfd/process.h"

namespace tuff::devices::amd {

class KfdQueue final : public HardwareQueue {
 public:
  KfdQueue(Process& process, Gpu& gpu, const HardwareQueueSetup& setup);
  ~KfdQueue() override;
  Ring& ring() const override { return *ring_; }
  uint32_t id() const { return id_; }
  void stop() noexcept override;
  void set_scratch(const ScratchArea& area) override;

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

// KfdSpace: a GPU as Linux's kernel driver gives it to this process. Made by amd_open for
// AmdDevice; knows no packets.
#pragma once

#include "devices/amd/kfd/events.h"
#include "devices/amd/space.h"

namespace tuff::devices::amd {

class KfdSpace final : public Space {
 public:
  KfdSpace(std::shared_ptr<Process> process, const GpuNode& node);
  const GpuFacts& facts() const override { return gpu_.node; }
  std::unique_ptr<Buffer> allocate(const BufferRequest& request) override;
  void free(std::unique_ptr<Buffer> buffer) noexcept override;
  bool reaches(const Space& other) const override;
  bool share(Buffer& buffer, Space& to) override;
  uint64_t* allocate_signal() override { return process_->allocate_signal(gpu_); }
  void free_signal(uint64_t* slot) noexcept override { process_->free_signal(slot); }
  QueueTable& queues() override { return process_->queues(); }
  std::shared_ptr<const void> show_code(uint64_t address, std::vector<uint8_t> object) override;
  std::unique_ptr<Interrupt> make_interrupt() override;
  std::unique_ptr<HardwareQueue> make_queue(const HardwareQueueSetup& setup) override;
  std::optional<GpuError> wait(const Interrupt* interrupt, uint32_t timeout_ms) override {
    return events_.wait(interrupt, timeout_ms);
  }
  ClockPoint read_clock() const override;

 private:
  const std::shared_ptr<Process> process_;
  Gpu& gpu_;
  Events events_;
};

}  // namespace tuff::devices::amd

// PciQueue: the queue of an engine of a GPU that this process drives alone: ring, pointers,
// doorbell. Made by PciSpace. Knows no packets.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "devices/amd/pci/pci_buffer.h"

namespace tuff::devices::amd {

class PciQueue final : public HardwareQueue {
 public:
  // `engine` is set while it has a queue: each has one. Unsupported for a second one, and for AQL.
  PciQueue(PciGpu& gpu, const HardwareQueueSetup& setup, std::atomic_flag& engine);
  ~PciQueue() override;
  Ring& ring() const override { return *ring_; }
  // A GPU whose queue does not end is reset.
  void stop() noexcept override;
  void set_scratch(const ScratchArea& area) override;

 private:
  struct Free {
    void operator()(std::atomic_flag* engine) const { engine->clear(); }
  };
  void activate();
  PciGpu& gpu_;
  const QueueType type_;
  const std::unique_ptr<std::atomic_flag, Free> engine_;
  std::optional<PciBuffer> ring_memory_, pointers_, end_of_pipe_;
  std::byte* doorbells_ = nullptr;
  std::unique_ptr<Ring> ring_;
  std::mutex mutex_;
  bool active_ = false;
};

}  // namespace tuff::devices::amd

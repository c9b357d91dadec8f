// PciSpace: a GPU that this process drives alone (PciGpu), behind the seam: what KfdSpace is
// through Linux's kernel driver. Made by amd_open for AmdDevice; knows no packets. The clock:
// Linux, drivers/gpu/drm/amd/amdgpu/gfx_v11_0.c (gfx_v11_0_get_gpu_clock_counter).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "devices/amd/pci/pci_buffer.h"
#include "devices/amd/space.h"

namespace tuff::devices::amd {

inline constexpr const char* kPciDriver = "VFIO, AMD's firmware";

class PciSpace final : public Space {
 public:
  explicit PciSpace(std::unique_ptr<PciGpu> gpu);
  ~PciSpace() override;
  const GpuFacts& facts() const override { return facts_; }
  std::unique_ptr<Buffer> allocate(const BufferRequest& request) override;
  void free(std::unique_ptr<Buffer> buffer) noexcept override { buffer.reset(); }
  // No GPU by PCI maps another one's memory.
  bool reaches(const Space&) const override { return false; }
  bool share(Buffer& buffer, Space& to) override;
  uint64_t* allocate_signal() override;
  void free_signal(uint64_t* slot) noexcept override;
  QueueTable& queues() override { return queues_; }
  // Null: no debugger knows of a GPU that the kernel does not drive.
  std::shared_ptr<const void> show_code(uint64_t address, std::vector<uint8_t> object) override;
  // None is raised: wait() looks at the mailbox.
  std::unique_ptr<Interrupt> make_interrupt() override;
  std::unique_ptr<HardwareQueue> make_queue(const HardwareQueueSetup& setup) override;
  std::optional<GpuError> wait(const Interrupt* interrupt, uint32_t timeout_ms) override;
  ClockPoint read_clock() const override;

 private:
  const std::unique_ptr<PciGpu> gpu_;
  const GpuFacts facts_;
  QueueTable queues_;
  std::atomic_flag compute_taken_, copies_taken_;
  std::mutex mutex_;  // of signals
  std::mutex fault_mutex_;
  std::vector<std::unique_ptr<PciBuffer>> signal_pages_;
  std::vector<uint64_t*> free_signals_;
};

// What its discovery table says, before what is fused off within the graphics block.
GpuFacts facts_of(const Discovery& discovery, uint64_t memory_bytes);

}  // namespace tuff::devices::amd

// Gsp: the system processor of a GPU, started by this process and ended by it: NVIDIA's firmware,
// whose resource manager takes calls then. Owned by PciGpu. Knows no objects, and not how the
// firmware is started (gsp_start.h).
// What is started and in which order: open-gpu-kernel-modules @8ec351a (570.144),
// src/nvidia/src/kernel/gpu/gsp/arch/turing/kernel_gsp_tu102.c (kgspBootstrap, kgspTeardown),
// kernel_gsp_booter_tu102.c, kernel_gsp_frts_tu102.c; arch/ampere/kernel_gsp_ga102.c (resuming),
// arch/hopper/kernel_gsp_gh100.c.
#pragma once

#include <memory>
#include <optional>

#include "devices/nv/pci/gsp_calls.h"
#include "devices/nv/pci/gsp_sequence.h"
#include "devices/nv/pci/gsp_start.h"

namespace tuff::devices::nv {

class Gsp final : GspCore {
 public:
  // Resets the device first where a process before has left it on the way, or the firmware running,
  // and has it reach memory (start_dma). Throws what its parts throw, and DeviceLost where a
  // program says that it failed; the GPU is reset then. Unsupported, and nothing is touched, for
  // firmware whose calls are not known.
  Gsp(PciDevice& device, Firmware firmware, uint64_t timeout_ms);
  // Ends the firmware and gives protected memory back; resets the GPU where that does not work.
  ~Gsp() override;
  Gsp(const Gsp&) = delete;
  // Gone before this is.
  const std::shared_ptr<GspCalls>& calls() const { return calls_; }
  const Chip& chip() const { return chip_; }

 private:
  void reset() override;
  void start() override;
  void wait_until_halted() override;
  void resume() override;

  void write_arguments();
  void boot();
  void unload();
  void reset_gpu() noexcept;

  PciDevice& device_;
  const Firmware firmware_;
  const uint64_t timeout_ms_;
  const BootRegisters registers_;
  const Chip& chip_;
  Falcon gsp_;
  BootMemory memory_;  // that the firmware reads, or writes logs to
  const std::unique_ptr<GspStart> start_;
  uint64_t description_ = 0, libos_arguments_ = 0;  // addresses
  bool was_reset_ = false;  // since its start
  std::optional<GspQueues> queues_;
  std::shared_ptr<GspCalls> calls_;
};

}  // namespace tuff::devices::nv

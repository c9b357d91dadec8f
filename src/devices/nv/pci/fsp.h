// Fsp: the processor of a GPU of Hopper or Blackwell that checks and starts its system processor
// (GSP): messages to it, by a window into its memory. Used by fsp_start. Knows no firmware.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/common/inc/swref/published/hopper/gh100/
// {dev_fsp_pri,dev_therm}.h, blackwell/gb202/dev_therm.h (registers), src/nvidia/src/kernel/gpu/
// fsp/arch/hopper/kern_fsp_gh100.c (order), src/nvidia/arch/nvalloc/common/inc/fsp/
// {fsp_mctp_format,fsp_nvdm_format}.h (headers).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "devices/pci_device.h"

namespace tuff::devices::nv {

enum class FspMessage : uint8_t {
  ChainOfTrust = 0x14,  // what the GSP is to start with
  Response = 0x15,
};

class Fsp {
 public:
  static constexpr size_t kMostPayload = 1024 - 8;  // of one packet, behind its headers
  // `ready_register` says in BAR 0 how far its own start has come: 0x200bc, of GB20x 0xad00bc.
  // Waits end after `timeout_ms` with DeviceLost.
  Fsp(const PciDevice& device, uint64_t ready_register, uint64_t timeout_ms)
      : device_(device), ready_register_(ready_register), timeout_ms_(timeout_ms) {}
  void wait_until_ready() const;
  // Whether no packet waits to be taken: one of a process that was killed.
  bool is_idle() const;
  // Waits for what it answers. DeviceLost where that is an error, or no answer to this.
  void call(FspMessage kind, std::span<const uint8_t> payload) const;

 private:
  void write_window(std::span<const uint32_t> words) const;
  std::vector<uint32_t> read_window(size_t words) const;
  std::vector<uint32_t> wait_for_answer() const;
  void wait_for(const char* what, uint64_t offset, uint32_t value) const;
  const PciDevice& device_;
  const uint64_t ready_register_, timeout_ms_;
};

}  // namespace tuff::devices::nv

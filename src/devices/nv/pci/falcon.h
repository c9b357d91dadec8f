// Falcon: a small processor of the GPU that runs programs that NVIDIA signs, on Ampere and Ada: its
// reset, how code and data get there, and its start and end. For the boot by PCI: FWSEC on the
// GSP's, booters on SEC2's. Knows no program.
// Sources: open-gpu-kernel-modules @1739a20, src/common/inc/swref/published/ampere/ga102/
// {dev_falcon_v4,dev_falcon_second_pri,dev_fbif_v4,dev_riscv_pri,dev_gsp}.h (registers);
// src/nvidia/src/kernel/gpu/falcon/arch/ampere/kernel_falcon_ga102.c (order).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "devices/pci_device.h"

namespace tuff::devices::nv {

inline constexpr uint64_t kGspFalcon = 0x110000, kSec2Falcon = 0x840000;  // in BAR 0

// What is loaded, and where its signature is checked. Addresses are those of DmaMemory: from each
// on there are so many bytes, rounded up to 256.
struct FalconProgram {
  uint64_t code_address = 0, data_address = 0;
  uint32_t code_bytes = 0, data_bytes = 0;
  uint32_t code_physical = 0, code_virtual = 0, data_physical = 0;
  uint32_t signature_offset = 0;  // in the data
  uint32_t engine_mask = 0, ucode_id = 0;
};

class Falcon {
 public:
  // `base` is one of the above. Waits end after `timeout_ms` with DeviceLost.
  Falcon(const PciDevice& device, uint64_t base, uint64_t timeout_ms);
  // Empty memory and a halted core: the falcon's, or the RISC-V one beside it.
  void reset();
  void reset_to_riscv();
  // Loads a program, after reset(), starts it with the mailboxes set to `argument`, and waits until
  // it halts. What is in the mailboxes then.
  std::pair<uint32_t, uint32_t> run(const FalconProgram& program, uint64_t argument);
  bool runs_riscv() const;
  bool is_halted() const;  // not so in reset

  // What run() is made of, for firmware that another processor starts, or that asks for it.
  void start();
  void wait_until_halted() const;
  void set_mailboxes(uint64_t argument);
  uint32_t mailbox() const;
  void wait_for_mailbox(const char* what, uint32_t value) const;
  // Until the host may reach it that another processor has started, with these mailboxes. What its
  // program says that went wrong; 0: nothing.
  uint32_t wait_for_release(uint64_t argument) const;
  void wait_until_riscv_halted() const;
  void allow_physical();  // DMA without a context
  void set_version(uint32_t version);  // of what it runs

 private:
  void reset_engine();
  void load(uint64_t address, uint32_t size_bytes, uint32_t physical, uint32_t offset, bool code);
  void wait_for(const char* what, uint32_t offset, uint32_t mask, uint32_t value) const;
  uint32_t read(uint32_t offset) const { return device_.read(0, base_ + offset); }
  void write(uint32_t offset, uint32_t value) const { device_.write(0, base_ + offset, value); }

  const PciDevice& device_;
  const uint64_t base_, timeout_ms_;
};

}  // namespace tuff::devices::nv

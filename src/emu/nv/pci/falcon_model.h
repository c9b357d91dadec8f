// FalconModel: registers of one falcon of an emulated GPU, and of the RISC-V core beside it, with
// memory that is loaded by DMA. It executes nothing: a script is called in the place of a program.
// Made by what emulates a GPU without its kernel driver, and by tests. What a driver must not do is
// told.
// Source: open-gpu-kernel-modules @1739a20, src/common/inc/swref/published/ampere/ga102/
// dev_falcon_v4.h and the other headers of falcons beside it. Never compared with hardware.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emu/pci/bus.h"

namespace tuff::emu::nv {

class FalconModel {
 public:
  static constexpr uint32_t kBytes = 0x2000;  // of its registers
  using Told = std::function<void(const std::string&)>;
  FalconModel(pci::HostMemory& memory, Told mistake)
      : memory_(memory), mistake_(std::move(mistake)) {}
  uint32_t read(uint32_t offset);
  void write(uint32_t offset, uint32_t value);

  // The program: looks at what was loaded, leaves something in the mailboxes; false: never halts.
  std::function<bool(FalconModel&)> program = [](FalconModel&) { return true; };
  std::vector<uint8_t> code = std::vector<uint8_t>(0x10000), data = std::vector<uint8_t>(0x10000);
  std::map<uint32_t, uint32_t> tags;  // virtual addresses of blocks of code, by physical address
  bool has_riscv = true, through_alias = true;
  uint32_t slowness = 2;  // reads until what was asked for is there
  bool halted = false;
  bool riscv_chosen = false, riscv = false;  // the core beside it; whether firmware runs there
  uint32_t starts = 0;
  // Firmware runs on the other core, started by another processor, with these mailboxes: the host
  // is let in after some reads.
  void start_elsewhere(uint64_t argument, uint32_t error);
  bool riscv_halted = false;
  uint32_t get(uint32_t offset) const;  // a register that only keeps what is written

 private:
  void reset();
  void transfer(uint32_t command);
  void start();
  bool passes(uint32_t& reads);
  pci::HostMemory& memory_;
  const Told mistake_;
  bool in_reset_ = false, was_reset_ = false;
  uint32_t scrubs_ = 0, selects_ = 0, transfers_ = 0, runs_ = 0;  // reads that are left
  uint32_t foreign_ = 0, locked_ = 0;  // likewise
  bool core_chosen_ = false, runs_program_ = false;
  std::map<uint32_t, uint32_t> kept_;
};

}  // namespace tuff::emu::nv

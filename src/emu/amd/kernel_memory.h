// KernelMemory: memory as one dispatch reaches it, through the caches of its GPU. Made by queues,
// called by the interpreter.
#pragma once

#include <optional>

#include "emu/amd/chip.h"
#include "emu/memory/memory.h"

namespace tuff::emu::amd {

class KernelMemory : public Memory {
 public:
  KernelMemory(Chip& chip, Accessor who) : chip_(chip), who_(std::move(who)) {}
  uint8_t* reach(const Access& access, Defect& defect) override;
  uint8_t* reach_run(const Access& access) override;
  const uint8_t* peek(uint64_t address, uint32_t bytes) override;

  const Accessor& accessor() const { return who_; }
  const std::optional<MemoryFault>& fault() const { return fault_; }

 private:
  Chip& chip_;
  Accessor who_;
  std::optional<MemoryFault> fault_;
};

}  // namespace tuff::emu::amd

// One dispatch in flight: its steps, memory, findings. Called by the functions that execute; made
// by dispatch.cpp alone.
#pragma once

#include <string>
#include <vector>

#include "emu/rdna/finding.h"
#include "emu/rdna/memory.h"
#include "emu/rdna/wave.h"

namespace tuff::emu::rdna {

class Machine {
 public:
  Machine(Memory& memory, std::string kernel, uint64_t code_address)
      : memory_(memory), kernel_(std::move(kernel)), code_address_(code_address) {}

  // The bytes of an access, or null after the fault has been reported.
  uint8_t* reach(const Wave& w, uint32_t lane, uint64_t address, uint32_t bytes, bool write);

  // Files a finding, once per kind and instruction.
  void report(const Wave& w, FindingKind kind, uint32_t lane, uint64_t data_address,
              std::string detail);

  uint64_t code_address() const { return code_address_; }
  uint32_t step_at(uint64_t address) const;  // index of the step; throws where none starts
  bool stopped() const { return stopped_; }
  void stop() { stopped_ = true; }

  std::vector<Step> steps;
  std::vector<uint32_t> step_of_word;
  std::vector<Finding> findings;
  const Step* current = nullptr;

 private:
  std::string current_text() const;

  Memory& memory_;
  std::string kernel_;
  uint64_t code_address_;
  Memory::Range readable_, writable_;
  bool stopped_ = false;
};

}  // namespace tuff::emu::rdna

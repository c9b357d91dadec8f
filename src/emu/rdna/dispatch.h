// Runs a gfx1100 kernel on the host, with the state that the hardware starts waves in. Called by
// the emulated GPU's command processors, slice by slice, and by tests and `tuff emu`.
// Source: AMD's registers COMPUTE_* as Mesa's sid.h and PAL name them; LLVM, "User Guide for AMDGPU
// Backend", Initial Kernel Execution State.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/rdna/finding.h"
#include "emu/memory/memory.h"

namespace tuff::emu::rdna {

class CodeCache;
class Counters;

// A launch in the hardware's terms; kernel.h makes one from a descriptor.
struct Launch {
  std::string kernel;          // as findings name it
  uint64_t entry_address = 0;  // COMPUTE_PGM_LO and HI, times 256
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::array<uint32_t, 16> user_data{};  // COMPUTE_USER_DATA_0 and on; rsrc2 says how many
  uint16_t user_data_written = 0xFFFF;   // which of them were set: others are undefined
  uint32_t lds_bytes = 0;                // of a workgroup
  uint32_t scratch_bytes = 0;            // of a lane
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::array<uint32_t, 3> group_size{32, 1, 1};
  uint64_t seed = 0;                            // of the order in which waves run
  uint64_t instruction_budget = 1'000'000'000;  // of all waves
};

struct Outcome {
  std::vector<Finding> findings;
  bool finished = false;  // false before the end, and after a fault or a hang
  uint64_t instructions = 0;
  std::map<std::string, uint64_t> counts;  // of executed instructions by mnemonic, once over
};

// One dispatch in flight. Several may share memory and code; one step at a time.
class Dispatch {
 public:
  // `counters`, where given, are told of each step; they outlive it.
  Dispatch(Launch launch, Memory& memory, CodeCache& code, Counters* counters = nullptr);
  ~Dispatch();
  // Some tens of instructions of a wave that is drawn among those that can go on. False once all
  // is over: all waves have ended, or a fault or a hang has stopped them.
  bool step();
  // Findings so far; whole once step() has returned false.
  const Outcome& outcome() const;
  // Where its waves stand: one place after the other, with instruction and address.
  std::string places() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A dispatch alone, with code fetched afresh.
Outcome run(const Launch& launch, Memory& memory, Counters* counters = nullptr);

}  // namespace tuff::emu::rdna

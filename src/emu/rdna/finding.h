// What the interpreter reports of a kernel: one record per kind and instruction, with the place of
// its first occurrence. Written by the interpreter, printed by the launcher of the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emu/memory/memory.h"

namespace tuff::emu::rdna {

enum class FindingKind : uint8_t {
  UnmappedAccess,         // nothing is mapped there: a fault, the dispatch ends
  StaleData,              // the newest value is elsewhere: a cache, or memory behind one
  StaleCode,              // the instruction cache has, or may have, what was there before
  GlobalRace,             // two workgroups of a dispatch, one of them writing, nothing between
  ConcurrentUse,          // another dispatch or engine uses these bytes, nothing between
  LdsOutOfBounds,         // beyond the workgroup's LDS
  BufferBounds,           // inside of a buffer's descriptor or not: not written down
  ScratchOutOfBounds,     // beyond the lane's scratch memory
  Misaligned,             // an address that the access may not have
  UninitializedRegister,  // a value never written reaches an address, memory or control flow
  MissingWait,            // a load's result used before s_waitcnt says that it is there
  LdsRace,                // two waves, one of them writing, no barrier between
  Hang,                   // the instruction budget is spent, or all waves wait for ever
  UnknownInstruction,     // words without a meaning here
  ModeNotEmulated,        // a rounding, or another setting of MODE, that is not known here
};

struct Finding {
  FindingKind kind;
  std::string kernel;
  std::string instruction;    // text
  uint64_t code_address = 0;  // of the instruction
  uint32_t workgroup = 0, wave = 0, lane = 0;
  uint64_t data_address = 0;  // where the kind has one
  std::string detail;
  uint64_t times = 1;
};

FindingKind kind_of(DefectKind kind);
const char* name(FindingKind kind);
std::string to_text(const Finding& finding);

// Several lines, or "" where there are none.
std::string to_text(const std::vector<Finding>& findings);

}  // namespace tuff::emu::rdna

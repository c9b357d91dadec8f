// One decoded instruction, ready to run: the functions that execute it and the registers it
// touches. Made once for each instruction that the code cache holds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emu/rdna/decode.h"
#include "emu/rdna/float_mode.h"

namespace tuff::emu::rdna {

struct Wave;

using Execute = void (*)(Wave&, const Instruction&);

// A run of registers that an instruction reads or writes.
struct RegisterRange {
  uint16_t first = 0;
  uint8_t count = 0;
  bool vector = false;
};

struct Step {
  Instruction instruction;
  Instruction first, second;  // the halves of a dual issue, each as an instruction of its own
  Execute execute = nullptr, execute_second = nullptr;  // null: not known to the interpreter
  std::vector<RegisterRange> reads, writes;
  uint8_t first_reads = 0, first_writes = 0;  // of a dual issue: how many are the first half's
  // Of `reads`: what the lowest word of a 64-bit result does not depend on. Compilers leave it
  // undefined where that word alone is used.
  RegisterRange upper_word;
  RoundedBy rounded_by = RoundedBy::Nothing;  // of both halves of a dual issue
  bool strict = false;                        // undefined inputs are findings here, not passed on
  uint64_t address = 0;
};

// How many words `make_step` needs for an instruction that begins with this one, at most.
inline constexpr uint32_t kMostWords = 3;

// Words that are no instruction become a step that cannot be executed.
Step make_step(std::span<const uint32_t> words, uint64_t address);

// As an assembler takes it.
std::string text_of(const Step& step);

}  // namespace tuff::emu::rdna

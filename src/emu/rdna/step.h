// One decoded instruction, ready to run: the functions that execute it and the registers it
// touches. Made once for each instruction that the code cache holds.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/check.h"
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

// Few enough to lie within a Step: kernels have thousands of those.
class RegisterRanges {
 public:
  void add(const RegisterRange& range) {
    TUFF_CHECK(count_ < ranges_.size(), "an instruction of more than {} registers", count_);
    ranges_[count_++] = range;
  }
  operator std::span<const RegisterRange>() const { return {ranges_.data(), count_}; }
  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.begin() + count_; }
  uint8_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  std::array<RegisterRange, 12> ranges_{};
  uint8_t count_ = 0;
};

// The halves of a dual issue, each as an instruction of its own.
struct Halves {
  Instruction first, second;
};

struct Step {
  Execute execute = nullptr, execute_second = nullptr;  // null: not known to the interpreter
  uint64_t address = 0;
  uint16_t row = 0, second_row = 0;           // of the opcode table, where the instruction has them
  bool strict = false;                        // undefined inputs are findings here, not passed on
  uint8_t first_reads = 0, first_writes = 0;  // of a dual issue: how many are the first half's
  // The part of `reads` that the lowest word of a 64-bit result does not depend on, or the lowest
  // byte of a permutation. Compilers leave it undefined where that part alone is used.
  RegisterRange upper_word;
  RoundedBy rounded_by = RoundedBy::Nothing;  // of both halves of a dual issue
  RegisterRanges reads, writes;
  Instruction instruction;
  std::unique_ptr<Halves> halves;  // of a dual issue
};

// How many words `make_step` needs for an instruction that begins with this one, at most.
inline constexpr uint32_t kMostWords = 3;

// Words that are no instruction become a step that cannot be executed.
Step make_step(std::span<const uint32_t> words, uint64_t address);

// As an assembler takes it.
std::string text_of(const Step& step);

}  // namespace tuff::emu::rdna

// What loads and stores of memory_ops.cpp and of buffer_ops.cpp have in common: what they leave in
// registers and counters, and the rows of their tables.
#pragma once

#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {

// What a load of fewer than 32 bits leaves in its register.
enum class Half : uint8_t { Whole, Low, High };

template <Half half, class T>
void put_loaded(uint32_t& to, T value) {
  const uint32_t word = uint32_t(int32_t(value));
  if (half == Half::Whole) to = word;
  if (half == Half::Low) to = (to & 0xFFFF0000) | (word & 0xFFFF);
  if (half == Half::High) to = (to & 0xFFFF) | word << 16;
}

// Which counters say that the result of this instruction is there.
void mark_result(Wave& w, const Instruction& i, const Operand& d);
void mark_store(Wave& w, const Instruction& i);

// Rows of the templates load, load_words and store_bytes.
#define CALLS(op, ...) \
  { Op::op, __VA_ARGS__ }
#define PLAIN_ACCESSES(M)                                                                        \
  CALLS(M##_LOAD_U8, load<uint8_t, Half::Whole>), CALLS(M##_LOAD_I8, load<int8_t, Half::Whole>), \
      CALLS(M##_LOAD_U16, load<uint16_t, Half::Whole>),                                          \
      CALLS(M##_LOAD_I16, load<int16_t, Half::Whole>), CALLS(M##_LOAD_B32, load_words<1>),       \
      CALLS(M##_LOAD_B64, load_words<2>), CALLS(M##_LOAD_B96, load_words<3>),                    \
      CALLS(M##_LOAD_B128, load_words<4>), CALLS(M##_STORE_B8, store_bytes<1>),                  \
      CALLS(M##_STORE_B16, store_bytes<2>), CALLS(M##_STORE_B32, store_bytes<4>),                \
      CALLS(M##_STORE_B64, store_bytes<8>), CALLS(M##_STORE_B96, store_bytes<12>),               \
      CALLS(M##_STORE_B128, store_bytes<16>)
#define D16_ACCESSES(M)                                       \
  CALLS(M##_LOAD_D16_U8, load<uint8_t, Half::Low>),           \
      CALLS(M##_LOAD_D16_I8, load<int8_t, Half::Low>),        \
      CALLS(M##_LOAD_D16_B16, load<uint16_t, Half::Low>),     \
      CALLS(M##_LOAD_D16_HI_U8, load<uint8_t, Half::High>),   \
      CALLS(M##_LOAD_D16_HI_I8, load<int8_t, Half::High>),    \
      CALLS(M##_LOAD_D16_HI_B16, load<uint16_t, Half::High>), \
      CALLS(M##_STORE_D16_HI_B8, store_bytes<1, 16>),         \
      CALLS(M##_STORE_D16_HI_B16, store_bytes<2, 16>)

}  // namespace tuff::emu::rdna

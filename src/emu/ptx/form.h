// What an opcode's modifiers say, matched with a row of opcodes.def. Called by the parser and by
// the makers, which choose what executes an instruction.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "emu/ptx/module.h"

namespace tuff::emu::ptx {

struct Form {
  std::string_view base;
  std::vector<std::string_view> modifiers;  // in their order
  std::vector<Type> types;                  // those of them that are types

  bool has(std::string_view modifier) const;
  Type type(size_t k = 0) const { return k < types.size() ? types[k] : Type::None; }
  Rounding rounding() const;  // of .rn and on, and of .rni and on; Nearest where none is said
};

using Maker = void (*)(const Form& form, Instruction& i);

struct OpcodeRow {
  std::string_view base, modifiers, operands;
  Kind kind;
  Maker make;
};

std::span<const OpcodeRow> opcode_rows();
// The row of a spelling like "add.rn.f32", and its form. Null where there is none: `why` then says
// what is not known.
const OpcodeRow* match(std::string_view spelling, Form& form, std::string& why);

}  // namespace tuff::emu::ptx

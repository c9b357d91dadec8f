// Decodes gfx1100 machine code: words to Instructions, and Instructions to llvm-objdump's text.
// Called by the interpreter (once per code object) and by what prints findings. Knows the encodings
// and the table of opcodes, nothing of what an instruction does.
// Source: AMD, "RDNA3 Instruction Set Architecture" (2023), chapter 15; opcodes.def.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tuff::emu::rdna {

enum class Encoding : uint8_t {
  SOP1,
  SOP2,
  SOPK,
  SOPC,
  SOPP,
  SMEM,
  VOP1,
  VOP2,
  VOPC,
  VOP3,
  VOP3P,
  DS,
  FLAT,
  SCRATCH,
  GLOBAL,
  MUBUF,
  VOPDX,
  VOPDY
};

constexpr bool is_vector_memory(Encoding e) { return e >= Encoding::DS && e <= Encoding::MUBUF; }

enum class Op : uint16_t {
#define TUFF_RDNA(encoding, number, id, text, operands) id,
#include "emu/rdna/opcodes.def"
  Count
};

struct OpcodeRow {
  Encoding encoding;
  uint16_t number;
  Op op;
  const char* text;      // "v_add_f32_e64"
  const char* operands;  // the codes of opcodes.def
};

enum class OperandKind : uint8_t { Vector, Scalar, Constant, Immediate, Off };

// Numbers of special scalar registers and sources.
namespace source {
inline constexpr uint16_t VccLo = 106, Ttmp0 = 108, Null = 124, M0 = 125, ExecLo = 126, Zero = 128,
                          Dpp8 = 233, Dpp8FetchInactive = 234, SharedBase = 235, Float0 = 240,
                          Dpp16 = 250, Vccz = 251, Execz = 252, Scc = 253, LdsDirect = 254,
                          Literal = 255, Vgpr0 = 256;
}

struct Operand {
  char field = 0;  // as in opcodes.def
  OperandKind kind = OperandKind::Immediate;
  uint8_t registers = 1;
  bool negate = false, absolute = false;
  bool half = false, high = false;  // half a register, and which
  bool unnamed_low = false;         // LLVM 19 prints the lower half as the register
  bool narrow = false;              // a source of 16 bits
  uint16_t index = 0;               // vector register, or scalar register or source
  uint32_t value = 0;  // constants and immediates: 32 bits, floats for 64-bit operands too
};

enum class DppKind : uint8_t { None, Dpp16, Dpp8 };

struct Dpp {
  DppKind kind = DppKind::None;
  bool fetch_inactive = false, bound_control = false;
  uint8_t row_mask = 15, bank_mask = 15;
  uint16_t control = 0;
  std::array<uint8_t, 8> lanes{};
};

struct Instruction {
  const OpcodeRow* row = nullptr;
  const OpcodeRow* second = nullptr;  // the Y half of a dual issue
  uint8_t size_bytes = 0;
  uint8_t operand_count = 0, first_count = 0;  // first_count: operands of the X half
  std::array<Operand, 8> operands{};
  std::array<uint32_t, 3> words{};
  uint8_t op_sel = 0, op_sel_hi = 0, neg = 0, neg_hi = 0, output_modifier = 0;
  bool clamp = false;
  bool glc = false, slc = false, dlc = false, gds = false, offset_enable = false,
       index_enable = false, texture_fault = false;
  int32_t offset = 0;  // of memory instructions; both 8-bit offsets for DS
  Dpp dpp;

  Op op() const { return row->op; }
  Encoding encoding() const { return row->encoding; }
  // The operand of a field, or null (the first of a dual issue).
  const Operand* find(char field) const {
    for (int k = 0; k < operand_count; ++k) {
      if (operands[size_t(k)].field == field) return &operands[size_t(k)];
    }
    return nullptr;
  }
};

// The first instruction of `words`. Throws Unsupported naming the words if the table has none.
Instruction decode(std::span<const uint32_t> words);

// As llvm-objdump writes it; `address` is what branch targets are relative to.
std::string to_text(const Instruction& instruction);

std::span<const OpcodeRow> opcode_rows();
const char* op_name(Op op);
// Sources of mixed precision: modifiers as in VOP3, op_sel_hi says which are 16-bit.
constexpr bool is_mix(Op op) {
  return op == Op::V_FMA_MIX_F32 || op == Op::V_FMA_MIXLO_F16 || op == Op::V_FMA_MIXHI_F16;
}

}  // namespace tuff::emu::rdna

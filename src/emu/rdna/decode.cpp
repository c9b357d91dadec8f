#include "emu/rdna/decode.h"

#include <string_view>
#include <vector>

#include "base/check.h"

namespace tuff::emu::rdna {
namespace {

constexpr uint32_t bits(uint32_t word, int low, int count) {
  return word >> low & ((count == 32 ? 0 : 1u << count) - 1);
}

constexpr int32_t sign_extend(uint32_t value, int count) {
  return int32_t(value << (32 - count)) >> (32 - count);
}

constexpr size_t kEncodings = size_t(Encoding::VOPDY) + 1;
constexpr size_t kNumbers = 1024;

const OpcodeRow* find_row(Encoding encoding, uint32_t number) {
  static const auto table = [] {
    std::vector<const OpcodeRow*> rows(kEncodings * kNumbers);
    for (const OpcodeRow& row : opcode_rows()) {
      rows[size_t(row.encoding) * kNumbers + row.number] = &row;
    }
    return rows;
  }();
  return number < kNumbers ? table[size_t(encoding) * kNumbers + number] : nullptr;
}

// Which encoding a first word has: the prefixes of ISA table 15.1, longest first.
struct Prefix {
  uint32_t mask, value;
  Encoding encoding;
  int number_at, number_bits;
  int words;
};

constexpr Prefix kPrefixes[] = {
    {0xFF800000, 0xBE800000, Encoding::SOP1, 8, 8, 1},
    {0xFF800000, 0xBF000000, Encoding::SOPC, 16, 7, 1},
    {0xFF800000, 0xBF800000, Encoding::SOPP, 16, 7, 1},
    {0xF0000000, 0xB0000000, Encoding::SOPK, 23, 5, 1},
    {0xC0000000, 0x80000000, Encoding::SOP2, 23, 7, 1},
    {0xFC000000, 0xF4000000, Encoding::SMEM, 18, 8, 2},
    {0xFE000000, 0x7E000000, Encoding::VOP1, 9, 8, 1},
    {0xFE000000, 0x7C000000, Encoding::VOPC, 17, 8, 1},
    {0x80000000, 0x00000000, Encoding::VOP2, 25, 6, 1},
    {0xFF000000, 0xCC000000, Encoding::VOP3P, 16, 7, 2},
    {0xFC000000, 0xD4000000, Encoding::VOP3, 16, 10, 2},
    {0xFC000000, 0xC8000000, Encoding::VOPDX, 22, 4, 2},
    {0xFC000000, 0xD8000000, Encoding::DS, 18, 8, 2},
    {0xFC030000, 0xDC000000, Encoding::FLAT, 18, 7, 2},
    {0xFC030000, 0xDC010000, Encoding::SCRATCH, 18, 7, 2},
    {0xFC030000, 0xDC020000, Encoding::GLOBAL, 18, 7, 2},
    {0xFC000000, 0xE0000000, Encoding::MUBUF, 18, 8, 2},
};

class Decoder {
 public:
  explicit Decoder(std::span<const uint32_t> words) : words_(words) {}

  Instruction run() {
    const Prefix& prefix = find_prefix();
    word_ = at(0);
    next_ = prefix.words;
    second_word_ = prefix.words == 2 ? at(1) : 0;
    out_.row = find_row(prefix.encoding, bits(word_, prefix.number_at, prefix.number_bits));
    if (!out_.row) unknown();
    decode_modifiers();
    add_operands(out_.row->operands);
    out_.first_count = out_.operand_count;
    if (prefix.encoding == Encoding::VOPDX) decode_second();
    out_.size_bytes = uint8_t(next_ * 4);
    for (int i = 0; i < next_; ++i) out_.words[i] = at(i);
    return out_;
  }

 private:
  [[noreturn]] void unknown() const {
    fail<Unsupported>("gfx1100: no instruction known for the words {:08x} {:08x}", words_[0],
                      words_.size() > 1 ? words_[1] : 0);
  }

  uint32_t at(int i) const {
    if (size_t(i) >= words_.size()) {
      fail<Unsupported>("gfx1100: the code ends within an instruction that starts with {:08x}",
                        words_.empty() ? 0 : words_[0]);
    }
    return words_[i];
  }

  const Prefix& find_prefix() const {
    for (const Prefix& prefix : kPrefixes) {
      if ((at(0) & prefix.mask) == prefix.value) return prefix;
    }
    unknown();
  }

  void decode_modifiers() {
    switch (out_.row->encoding) {
      case Encoding::VOP3: return decode_vop3();
      case Encoding::VOP3P: return decode_vop3p();
      case Encoding::SMEM:
        out_.glc = bits(word_, 14, 1);
        out_.dlc = bits(word_, 13, 1);
        out_.offset = sign_extend(bits(second_word_, 0, 21), 21);
        return;
      case Encoding::DS:
        out_.gds = bits(word_, 17, 1);
        out_.offset = int32_t(bits(word_, 0, 16));
        return;
      case Encoding::FLAT:
      case Encoding::SCRATCH:
      case Encoding::GLOBAL: return decode_flat();
      case Encoding::MUBUF: return decode_mubuf();
      default: return;
    }
  }

  void decode_vop3() {
    out_.neg = uint8_t(bits(second_word_, 29, 3));
    out_.output_modifier = uint8_t(bits(second_word_, 27, 2));
    out_.clamp = bits(word_, 15, 1);
    if (std::string_view(out_.row->operands).find('S') != std::string_view::npos) return;  // VOP3SD
    out_.op_sel = uint8_t(bits(word_, 11, 4));
    out_.neg_hi = uint8_t(bits(word_, 8, 3));  // which sources are absolute
  }

  void decode_vop3p() {
    out_.neg = uint8_t(bits(second_word_, 29, 3));
    out_.neg_hi = uint8_t(bits(word_, 8, 3));
    out_.op_sel = uint8_t(bits(word_, 11, 3));
    out_.op_sel_hi = uint8_t(bits(second_word_, 27, 2) | bits(word_, 14, 1) << 2);
    out_.clamp = bits(word_, 15, 1);
  }

  void decode_flat() {
    out_.slc = bits(word_, 15, 1);
    out_.glc = bits(word_, 14, 1);
    out_.dlc = bits(word_, 13, 1);
    out_.offset = out_.row->encoding == Encoding::FLAT ? int32_t(bits(word_, 0, 13))
                                                       : sign_extend(bits(word_, 0, 13), 13);
  }

  void decode_mubuf() {
    out_.slc = bits(word_, 12, 1);
    out_.dlc = bits(word_, 13, 1);
    out_.glc = bits(word_, 14, 1);
    out_.offset = int32_t(bits(word_, 0, 12));
    out_.texture_fault = bits(second_word_, 21, 1);
    out_.offset_enable = bits(second_word_, 22, 1);
    out_.index_enable = bits(second_word_, 23, 1);
  }

  void add_operands(const char* codes) {
    for (const char* c = codes; *c;) {
      Operand operand;
      operand.field = *c++;
      const char file = *c++;
      while (*c >= '0' && *c <= '9') digits_ = digits_ * 10 + (*c++ - '0');
      operand.registers = uint8_t(digits_);
      digits_ = 0;
      bool plain = false;
      for (; *c && *c != ' '; ++c) {
        operand.half |= *c == 'h' || *c == 'b';
        operand.unnamed_low |= *c == 'b';
        operand.narrow |= *c == 't';
        plain |= *c == 'i';
      }
      c += *c == ' ';
      place(operand, file);
      if (plain) operand.negate = operand.absolute = false;
      TUFF_CHECK(out_.operand_count < out_.operands.size());
      out_.operands[out_.operand_count++] = operand;
    }
  }

  void place(Operand& operand, char file);
  void place_vector_alu(Operand& operand);
  void place_vop3(Operand& operand);
  void place_dual(Operand& operand);
  void place_memory(Operand& operand);
  void place_scalar_memory(Operand& operand);
  void place_buffer(Operand& operand);
  void place_scalar(Operand& operand);

  static void set_vector(Operand& operand, uint32_t index) {
    operand.kind = OperandKind::Vector;
    operand.index = uint16_t(index);
  }
  static void set_scalar(Operand& operand, uint32_t index) {
    operand.kind = OperandKind::Scalar;
    operand.index = uint16_t(index);
  }
  static void set_immediate(Operand& operand, uint32_t value) {
    operand.kind = OperandKind::Immediate;
    operand.value = value;
  }
  void set_source(Operand& operand, uint32_t code);
  uint32_t literal() {
    if (literal_at_ < 0) literal_at_ = next_++;
    return at(literal_at_);
  }
  void decode_dpp(Operand& operand, uint32_t code);
  void decode_second();

  std::span<const uint32_t> words_;
  Instruction out_;
  uint32_t word_ = 0, second_word_ = 0;
  int next_ = 0, literal_at_ = -1, digits_ = 0;
  bool second_half_ = false;
};

void Decoder::set_source(Operand& operand, uint32_t code) {
  operand.index = uint16_t(code);
  if (code >= source::Vgpr0) {
    set_vector(operand, code - source::Vgpr0);
  } else if (code == source::Literal) {
    operand.kind = OperandKind::Constant;
    // Which sources of mixed precision have 16 bits is known later (fetch_mixed).
    operand.value = literal() & (operand.narrow && !is_mix(out_.op()) ? 0xFFFF : ~0u);
  } else if (code == source::Dpp16 || code == source::Dpp8 || code == source::Dpp8FetchInactive) {
    decode_dpp(operand, code);
  } else if (code >= source::Zero && code <= 208) {
    operand.kind = OperandKind::Constant;
    operand.value = code <= 192 ? code - 128 : 192 - code;
  } else if (code >= source::Float0 && code <= 248) {
    operand.kind = OperandKind::Constant;
  } else if (code < source::Zero || (code >= source::SharedBase && code < source::Float0) ||
             (code >= source::Vccz && code <= source::LdsDirect)) {
    set_scalar(operand, code);
  } else {
    unknown();
  }
}

void Decoder::decode_dpp(Operand& operand, uint32_t code) {
  const uint32_t word = literal();
  Dpp& dpp = out_.dpp;
  set_vector(operand, bits(word, 0, 8));
  if (code != source::Dpp16) {
    dpp.kind = DppKind::Dpp8;
    dpp.fetch_inactive = code == source::Dpp8FetchInactive;
    for (int i = 0; i < 8; ++i) dpp.lanes[i] = uint8_t(bits(word, 8 + 3 * i, 3));
    return;
  }
  dpp.kind = DppKind::Dpp16;
  dpp.control = uint16_t(bits(word, 8, 9));
  dpp.fetch_inactive = bits(word, 18, 1);
  dpp.bound_control = bits(word, 19, 1);
  out_.neg |= uint8_t(bits(word, 20, 1) | bits(word, 22, 1) << 1);
  out_.neg_hi |= uint8_t(bits(word, 21, 1) | bits(word, 23, 1) << 1);
  dpp.bank_mask = uint8_t(bits(word, 24, 4));
  dpp.row_mask = uint8_t(bits(word, 28, 4));
}

void Decoder::place(Operand& operand, char file) {
  if (operand.field == 'V') return set_scalar(operand, source::VccLo);
  if (operand.field == 'K') {
    operand.kind = OperandKind::Constant;
    operand.index = source::Literal;
    operand.value = literal();
    return;
  }
  switch (out_.row->encoding) {
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPC:
    case Encoding::SOPK:
    case Encoding::SOPP: return place_scalar(operand);
    case Encoding::SMEM: return place_scalar_memory(operand);
    case Encoding::VOP1:
    case Encoding::VOP2:
    case Encoding::VOPC: place_vector_alu(operand); break;
    case Encoding::VOP3:
    case Encoding::VOP3P: place_vop3(operand); break;
    case Encoding::VOPDX:
    case Encoding::VOPDY: return place_dual(operand);
    case Encoding::MUBUF: return place_buffer(operand);
    default: return place_memory(operand);
  }
  if (operand.field == 'D' && file == 's') operand.kind = OperandKind::Scalar;
}

void Decoder::place_scalar(Operand& operand) {
  const Encoding encoding = out_.row->encoding;
  switch (operand.field) {
    case 'D': return set_scalar(operand, bits(word_, 16, 7));
    case '0': return set_source(operand, bits(word_, 0, 8));
    case '1': return set_source(operand, bits(word_, 8, 8));
    default: return set_immediate(operand, bits(word_, 0, encoding == Encoding::SOP1 ? 8 : 16));
  }
}

void Decoder::place_scalar_memory(Operand& operand) {
  switch (operand.field) {
    case 'A': return set_scalar(operand, bits(word_, 0, 6) * 2);
    case 'T': return set_scalar(operand, bits(second_word_, 25, 7));
    case 'I': return set_immediate(operand, bits(word_, 6, 7));
    default: return set_scalar(operand, bits(word_, 6, 7));
  }
}

void Decoder::place_vector_alu(Operand& operand) {
  const bool one = out_.row->encoding == Encoding::VOP1;
  switch (operand.field) {
    case 'D': set_vector(operand, bits(word_, 17, 8)); break;
    case '0':
      set_source(operand, bits(word_, 0, 9));
      operand.negate = out_.neg & 1;
      operand.absolute = out_.neg_hi & 1;
      break;
    default:
      set_vector(operand, bits(word_, one ? 17 : 9, 8));
      operand.negate = out_.neg >> 1 & 1;
      operand.absolute = out_.neg_hi >> 1 & 1;
  }
  if (operand.half && operand.kind == OperandKind::Vector) {
    operand.high = operand.index >> 7 & 1;
    operand.index &= 127;
  }
}

void Decoder::place_vop3(Operand& operand) {
  if (operand.field == 'D') return set_vector(operand, bits(word_, 0, 8));
  if (operand.field == 'S') return set_scalar(operand, bits(word_, 8, 7));
  const int source = operand.field - '0';
  const uint8_t neg = out_.neg, absolute = out_.neg_hi;
  set_source(operand, bits(second_word_, 9 * source, 9));
  if (out_.row->encoding == Encoding::VOP3 || is_mix(out_.op())) {
    // A DPP word has no modifiers of its own here: they stand in the instruction.
    out_.neg = neg;
    out_.neg_hi = absolute;
    operand.negate = out_.neg >> source & 1;
    operand.absolute = out_.neg_hi >> source & 1;
  }
}

void Decoder::place_dual(Operand& operand) {
  const uint32_t word = second_half_ ? second_word_ : word_;
  switch (operand.field) {
    case 'D': {
      const uint32_t x = bits(second_word_, 24, 8);
      return set_vector(operand, second_half_ ? bits(second_word_, 17, 7) << 1 | (~x & 1) : x);
    }
    case '0': return set_source(operand, bits(word, 0, 9));
    default: return set_vector(operand, bits(word, 9, 8));
  }
}

void Decoder::decode_second() {
  second_half_ = true;
  out_.second = find_row(Encoding::VOPDY, bits(word_, 17, 5));
  if (!out_.second) unknown();
  add_operands(out_.second->operands);
}

void Decoder::place_memory(Operand& operand) {
  switch (operand.field) {
    case 'D': return set_vector(operand, bits(second_word_, 24, 8));
    case 'A': {
      if (out_.row->encoding == Encoding::SCRATCH && !bits(second_word_, 23, 1)) {
        operand.kind = OperandKind::Off;
        return;
      }
      const bool scalar_base =
          out_.row->encoding == Encoding::GLOBAL && bits(second_word_, 16, 7) != source::Null;
      if (scalar_base) operand.registers = 1;
      return set_vector(operand, bits(second_word_, 0, 8));
    }
    case 'S':
      if (bits(second_word_, 16, 7) == source::Null) {
        operand.kind = OperandKind::Off;
        return;
      }
      return set_scalar(operand, bits(second_word_, 16, 7));
    case '0': return set_vector(operand, bits(second_word_, 8, 8));
    default: return set_vector(operand, bits(second_word_, 16, 8));
  }
}

void Decoder::place_buffer(Operand& operand) {
  switch (operand.field) {
    case 'D':
      operand.registers += uint8_t(out_.texture_fault);
      return set_vector(operand, bits(second_word_, 8, 8));
    case 'A':
      if (!out_.offset_enable && !out_.index_enable) {
        operand.kind = OperandKind::Off;
        return;
      }
      operand.registers = uint8_t(out_.offset_enable + out_.index_enable);
      return set_vector(operand, bits(second_word_, 0, 8));
    case 'S': return set_scalar(operand, bits(second_word_, 16, 5) * 4);
    default: return set_source(operand, bits(second_word_, 24, 8));
  }
}

}  // namespace

Instruction decode(std::span<const uint32_t> words) { return Decoder(words).run(); }

}  // namespace tuff::emu::rdna

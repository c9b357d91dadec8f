#include "emu/rdna/step.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {

bool processor_has_avx2() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

const Handler* find_handler(Op op) {
  static const auto table = [] {
    std::vector<const Handler*> all(size_t(Op::Count));
    for (const auto rows :
         {float_handlers(), integer_handlers(), convert_handlers(), compare_handlers(),
          mask_handlers(), packed_handlers(), matrix_handlers(), scalar_handlers(),
          control_handlers(), memory_handlers(), buffer_handlers()}) {
      for (const Handler& row : rows) {
        TUFF_CHECK(!all[size_t(row.op)], "{} has two handlers", op_name(row.op));
        all[size_t(row.op)] = &row;
      }
    }
    return all;
  }();
  return table[size_t(op)];
}

Execute find_execute(Op op) {
  static const bool wide = processor_has_avx2();
  const Handler* handler = find_handler(op);
  if (!handler) return nullptr;
  return wide && handler->with_avx2 ? handler->with_avx2 : handler->execute;
}

namespace {

bool contains(const Instruction& i, std::string_view part) {
  return std::string_view(i.row->text).find(part) != std::string_view::npos;
}

// Instructions whose destination is also a source.
bool accumulates(const Instruction& i) {
  return contains(i, "fmac") || contains(i, "dot2acc") || contains(i, "v_swap_b") ||
         i.op() == Op::V_WRITELANE_B32 || i.op() == Op::S_ADDK_I32 || i.op() == Op::S_MULK_I32 ||
         contains(i, "s_cmpk") || i.op() == Op::S_SETREG_B32 || contains(i, "s_bitset") ||
         i.op() == Op::S_WAITCNT_VSCNT;
}

// The one vector register of MUBUF holds what is stored, too.
bool is_buffer_data(const Instruction& i) {
  return i.encoding() == Encoding::MUBUF &&
         (contains(i, "buffer_store") || contains(i, "buffer_atomic"));
}

bool is_written(const Instruction& i, const Operand& o) {
  if (o.field == 'S') return i.encoding() == Encoding::VOP3;
  if (o.field == 'V') return i.encoding() == Encoding::VOPC;
  if (o.field != 'D') return false;
  if (contains(i, "s_cmpk") || i.op() == Op::S_SETREG_B32 || contains(i, "s_waitcnt")) return false;
  const bool atomic = contains(i, "_atomic_");
  return atomic ? i.glc : !contains(i, "buffer_store");
}

bool is_read(const Instruction& i, const Operand& o) {
  if (o.field == 'D') return accumulates(i) || is_buffer_data(i);
  if (o.field == 'S') return i.encoding() != Encoding::VOP3;
  if (o.field == 'V') return i.encoding() != Encoding::VOPC;
  return true;
}

// A field of bits that lies in the lower word of its 64: the upper one is not looked at.
bool ignores_upper_word(const Instruction& i, const Operand& o) {
  if ((i.op() != Op::S_BFE_I64 && i.op() != Op::S_BFE_U64) || o.field != '0') return false;
  const Operand& where = *i.find('1');
  if (where.kind == OperandKind::Scalar || where.kind == OperandKind::Vector) return false;
  return (where.value & 63) + (where.value >> 16 & 127) <= 32;
}

// The bytes that V_PERM_B32 takes, where its selector is a constant: a source's or constants.
struct PermutedBytes {
  bool any = false, lowest = false;
};
std::optional<PermutedBytes> permuted_bytes(const Instruction& i, const Operand& o) {
  if (i.op() != Op::V_PERM_B32 || (o.field != '0' && o.field != '1')) return std::nullopt;
  const Operand& selector = *i.find('2');
  if (selector.kind != OperandKind::Constant) return std::nullopt;
  PermutedBytes out;
  for (int byte = 0; byte < 4; ++byte) {
    const uint32_t from = selector.value >> 8 * byte & 0xFF;
    // 0 to 3 are bytes of the second source, 4 to 7 of the first; 8 to 11 are signs of halves.
    const bool first = (from >= 4 && from < 8) || from == 10 || from == 11;
    const bool second = from < 4 || from == 8 || from == 9;
    const bool taken = o.field == '0' ? first : second;
    out.any |= taken;
    out.lowest |= taken && byte == 0;
  }
  return out;
}

void add_ranges(Step& step, const Instruction& i) {
  for (int k = 0; k < i.operand_count; ++k) {
    const Operand& o = i.operands[k];
    const auto bytes = permuted_bytes(i, o);
    if (bytes && !bytes->any) continue;
    const bool vector = o.kind == OperandKind::Vector;
    if (!vector && (o.kind != OperandKind::Scalar || o.index >= source::Null)) continue;
    RegisterRange range{o.index, o.registers, vector};
    if (ignores_upper_word(i, o)) range.count = 1;
    if (is_read(i, o)) step.reads.add(range);
    if (is_written(i, o)) step.writes.add(range);
  }
  const bool implied_mask = i.op() == Op::V_CNDMASK_B32 && i.operand_count == 3;
  if (implied_mask || contains(i, "div_fmas")) step.reads.add({source::VccLo, 1, false});
}

// The operand of 64 bits whose upper word only the upper word of the result depends on.
char operand_by_words(Op op) {
  switch (op) {
    case Op::V_MAD_U64_U32:
    case Op::V_MAD_I64_I32: return '2';
    case Op::V_LSHLREV_B64: return '1';
    default: return 0;
  }
}

// One half of a dual issue as an instruction of its own.
Instruction half(const Instruction& both, bool second) {
  Instruction out = both;
  out.second = nullptr;
  if (!second) {
    out.operand_count = both.first_count;
    return out;
  }
  out.row = both.second;
  out.operand_count = uint8_t(both.operand_count - both.first_count);
  for (int k = 0; k < out.operand_count; ++k) {
    out.operands[k] = both.operands[size_t(k + both.first_count)];
  }
  return out;
}

// Integers that saturate where the rows do not: unknown rather than wrong.
bool saturates_unknown(const Instruction& i) {
  if (!i.clamp || contains(i, "_nc_")) return false;
  for (const char* part : {"_u16", "_i16", "_u24", "_i24", "mad_u64", "mad_i64", "_co_", "sad_"}) {
    if (contains(i, part)) return true;
  }
  return false;
}

bool is_register(const Operand& o) {
  return o.kind == OperandKind::Vector ||
         (o.kind == OperandKind::Scalar && o.index < source::Null);
}

bool is_same_register(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.index == b.index;
}

void set_upper_word(Step& step, const Instruction& i) {
  if (const char field = operand_by_words(i.op())) {
    const Operand& o = *i.find(field);
    if (is_register(o)) step.upper_word = {uint16_t(o.index + 1), 1, o.kind == OperandKind::Vector};
  }
  // So may the lowest byte, packed into what else nobody wrote.
  if (i.op() == Op::V_CVT_PK_U8_F32) {
    const Operand &byte = *i.find('1'), &others = *i.find('2');
    if (byte.kind == OperandKind::Constant && byte.value % 4 == 0 && is_register(others) &&
        !is_same_register(*i.find('0'), others))
      step.upper_word = {others.index, 1, others.kind == OperandKind::Vector};
  }
  // The lower one of two halves may be used alone.
  if (i.op() == Op::V_PACK_B32_F16) {
    const Operand &low = *i.find('0'), &high = *i.find('1');
    if (is_register(high) && !is_same_register(low, high))
      step.upper_word = {high.index, 1, high.kind == OperandKind::Vector};
  }
  // Bytes above the lowest may be left undefined, too: where that one alone is stored.
  for (const char field : {'0', '1'}) {
    const Operand* o = i.op() == Op::V_PERM_B32 ? i.find(field) : nullptr;
    const auto bytes = o ? permuted_bytes(i, *o) : std::nullopt;
    if (!bytes || !bytes->any || bytes->lowest || !is_register(*o)) continue;
    if (!is_same_register(*i.find('0'), *i.find('1')))
      step.upper_word = {o->index, 1, o->kind == OperandKind::Vector};
  }
}

uint16_t row_number(const OpcodeRow* row) { return uint16_t(row - opcode_rows().data()); }

Step known_step(const Instruction& instruction) {
  Step step;
  step.instruction = instruction;
  step.row = row_number(instruction.row);
  step.execute = saturates_unknown(instruction) ? nullptr : find_execute(instruction.op());
  const Encoding e = instruction.encoding();
  step.strict = is_vector_memory(e) || e == Encoding::SMEM || e == Encoding::VOPC ||
                contains(instruction, "v_cmp") || instruction.op() == Op::V_READFIRSTLANE_B32;
  step.rounded_by = rounded_by(instruction.op());
  if (!instruction.second) {
    add_ranges(step, instruction);
    set_upper_word(step, instruction);
    return step;
  }
  step.halves = std::make_unique<Halves>(half(instruction, false), half(instruction, true));
  step.second_row = row_number(instruction.second);
  step.execute_second = find_execute(step.halves->second.op());
  // Both are of one precision, but for dots.
  step.rounded_by = std::max(step.rounded_by, rounded_by(step.halves->second.op()));
  if (!step.execute_second) step.execute = nullptr;
  add_ranges(step, step.halves->first);
  step.first_reads = step.reads.size();
  step.first_writes = step.writes.size();
  add_ranges(step, step.halves->second);
  return step;
}

}  // namespace

Step make_step(std::span<const uint32_t> words, uint64_t address) {
  Step step;
  try {
    step = known_step(decode(words));
  } catch (const Unsupported&) {
    step.instruction.size_bytes = 4;
    step.instruction.words[0] = words[0];
  }
  step.address = address;
  return step;
}

std::string text_of(const Step& step) {
  const Instruction& i = step.instruction;
  return i.row ? to_text(i) : fmt::format(".long {:#010x}", i.words[0]);
}

}  // namespace tuff::emu::rdna

// The text of an instruction as LLVM 19's AMDGPU printer writes it.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "emu/rdna/decode.h"

namespace tuff::emu::rdna {
namespace {

constexpr const char* kFloats[] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"};

struct Name {
  uint32_t number;
  const char* text;
};

// Null where the table has none.
const char* find_name(std::span<const Name> names, uint32_t number) {
  const auto found = std::ranges::find(names, number, &Name::number);
  return found == names.end() ? nullptr : found->text;
}

constexpr Name kSpecials[] = {{source::VccLo, "vcc_lo"},
                              {source::VccLo + 1, "vcc_hi"},
                              {source::Null, "null"},
                              {source::M0, "m0"},
                              {source::ExecLo, "exec_lo"},
                              {source::ExecLo + 1, "exec_hi"},
                              {source::SharedBase, "src_shared_base"},
                              {source::SharedBase + 1, "src_shared_limit"},
                              {source::SharedBase + 2, "src_private_base"},
                              {source::SharedBase + 3, "src_private_limit"},
                              {source::SharedBase + 4, "src_pops_exiting_wave_id"},
                              {source::Vccz, "src_vccz"},
                              {source::Execz, "src_execz"},
                              {source::Scc, "src_scc"},
                              {source::LdsDirect, "src_lds_direct"}};

std::string registers(const char* file, int first, int count) {
  return count == 1 ? fmt::format("{}{}", file, first)
                    : fmt::format("{}[{}:{}]", file, first, first + count - 1);
}

std::string scalar_text(const Operand& o) {
  if (o.registers == 2 && o.index == source::VccLo) return "vcc";
  if (o.registers == 2 && o.index == source::ExecLo) return "exec";
  if (const char* special = find_name(kSpecials, o.index)) return special;
  const bool trap = o.index >= source::Ttmp0;
  return registers(trap ? "ttmp" : "s", trap ? o.index - source::Ttmp0 : o.index, o.registers);
}

// A literal of 32 bits that could have stood inline reads as if it had.
std::string literal_text(const Operand& o) {
  constexpr uint32_t kSingle[] = {0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000,
                                  0x40000000, 0xC0000000, 0x40800000, 0xC0800000};
  const bool single = o.field != 'K' && !o.narrow && o.registers == 1;
  if (single && (o.value <= 64 || o.value >= uint32_t(-16))) {
    return fmt::format("{}", int32_t(o.value));
  }
  for (size_t k = 0; k < std::size(kSingle) && single; ++k) {
    if (o.value == kSingle[k]) return kFloats[k];
  }
  return fmt::format("0x{:x}", o.narrow ? o.value & 0xFFFF : o.value);
}

std::string constant_text(const Operand& o) {
  if (o.index == source::Literal) return literal_text(o);
  if (o.index < source::Float0) return fmt::format("{}", int32_t(o.value));
  if (o.index < source::Float0 + 8) return kFloats[o.index - source::Float0];
  return o.registers == 2 ? "0.15915494309189532" : "0.15915494";
}

std::string plain_text(const Operand& o) {
  switch (o.kind) {
    case OperandKind::Vector:
      return registers("v", o.index, o.registers) +
             (!o.half ? "" : o.high ? ".h" : o.unnamed_low ? "" : ".l");
    case OperandKind::Scalar: return scalar_text(o);
    case OperandKind::Constant: return constant_text(o);
    case OperandKind::Off: return "off";
    case OperandKind::Immediate: return fmt::format("0x{:x}", o.value);
  }
  return "";
}

std::string operand_text(const Operand& o) {
  std::string text = plain_text(o);
  if (o.absolute) text = "|" + text + "|";
  if (!o.negate) return text;
  return o.kind == OperandKind::Constant && !o.absolute ? "neg(" + text + ")" : "-" + text;
}

std::string list(uint8_t bits, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i ? "," : "", bits >> i & 1);
  return "[" + text + "]";
}

std::string name_text(const Instruction& i) {
  std::string name = i.row->text;
  if (i.dpp.kind == DppKind::None) return name;
  if (i.encoding() == Encoding::VOP3 || i.encoding() == Encoding::VOP3P) {
    return name + (name.ends_with("_e64") ? "_dpp" : "_e64_dpp");
  }
  if (name.ends_with("_e32")) name.resize(name.size() - 4);
  return i.encoding() == Encoding::VOPC ? name : name + "_dpp";
}

std::string dpp16_control(uint16_t control) {
  const int n = control & 15;
  if (control < 0x100) {
    return fmt::format("quad_perm:[{},{},{},{}]", control & 3, control >> 2 & 3, control >> 4 & 3,
                       control >> 6 & 3);
  }
  switch (control >> 4) {
    case 0x10: return fmt::format("row_shl:{}", n);
    case 0x11: return fmt::format("row_shr:{}", n);
    case 0x12: return fmt::format("row_ror:{}", n);
    case 0x14: return n == 0 ? "row_mirror" : "row_half_mirror";
    case 0x15: return fmt::format("row_share:{}", n);
    default: return fmt::format("row_xmask:{}", n);
  }
}

std::string dpp_text(const Dpp& dpp) {
  std::string text;
  if (dpp.kind == DppKind::Dpp16) {
    text = fmt::format(" {} row_mask:0x{:x} bank_mask:0x{:x}{}", dpp16_control(dpp.control),
                       dpp.row_mask, dpp.bank_mask, dpp.bound_control ? " bound_ctrl:1" : "");
  } else if (dpp.kind == DppKind::Dpp8) {
    text = fmt::format(" dpp8:[{}]", fmt::join(dpp.lanes, ","));
  }
  return text + (dpp.fetch_inactive ? " fi:1" : "");
}

int source_count(const Instruction& i) {
  int count = 0;
  for (int k = 0; k < i.operand_count; ++k) {
    count += i.operands[k].field >= '0' && i.operands[k].field <= '2';
  }
  return count;
}

std::string vop3_modifiers(const Instruction& i) {
  std::string text;
  const bool lanes = i.op() == Op::V_PERMLANE16_B32 || i.op() == Op::V_PERMLANEX16_B32;
  if (lanes ? i.op_sel & 3 : i.op_sel) {
    // The fourth bit, for the result, follows the sources that there are.
    const int n = i.op() == Op::V_FMAC_F16 ? 3 : source_count(i);
    const uint8_t all = uint8_t((i.op_sel & ((1 << n) - 1)) | (i.op_sel >> 3) << n);
    text += " op_sel:" + list(all, lanes ? 2 : n + 1);
  }
  if (i.clamp) text += " clamp";
  constexpr const char* kOutput[] = {"", " mul:2", " mul:4", " div:2"};
  return text + kOutput[i.output_modifier];
}

std::string vop3p_modifiers(const Instruction& i) {
  const int n = source_count(i);
  const uint8_t ones = uint8_t((1 << n) - 1);
  std::string text;
  if (i.op_sel & ones) text += " op_sel:" + list(i.op_sel, n);
  const uint8_t high = i.op_sel_hi & ones;
  if (high != (is_mix(i.op()) ? 0 : ones)) text += " op_sel_hi:" + list(high, n);
  if (!is_mix(i.op())) {
    if (i.neg) text += " neg_lo:" + list(i.neg, n);
    if (i.neg_hi) text += " neg_hi:" + list(i.neg_hi, n);
  }
  return text + (i.clamp ? " clamp" : "");
}

std::string cache_text(const Instruction& i) {
  return std::string(i.glc ? " glc" : "") + (i.slc ? " slc" : "") + (i.dlc ? " dlc" : "");
}

std::string swizzle_text(uint32_t offset) {
  if (offset == 0) return "";
  if (offset >> 15) {
    if ((offset & 0x7F00) != 0) return fmt::format(" offset:{}", offset);
    return fmt::format(" offset:swizzle(QUAD_PERM,{},{},{},{})", offset & 3, offset >> 2 & 3,
                       offset >> 4 & 3, offset >> 6 & 3);
  }
  const uint32_t keep = offset & 31, set = offset >> 5 & 31, flip = offset >> 10 & 31;
  if (keep == 31 && set == 0 && flip != 0 && (flip & (flip - 1)) == 0) {
    return fmt::format(" offset:swizzle(SWAP,{})", flip);
  }
  if (keep == 31 && set == 0 && flip != 0 && (flip & (flip + 1)) == 0) {
    return fmt::format(" offset:swizzle(REVERSE,{})", flip + 1);
  }
  const uint32_t group = 32 - keep;
  if (keep != 31 && flip == 0 && (group & (group - 1)) == 0 && set < group) {
    return fmt::format(" offset:swizzle(BROADCAST,{},{})", group, set);
  }
  std::string mask;
  for (int bit = 4; bit >= 0; --bit) {
    const uint32_t p0 = ((0 & keep) | set) >> bit & 1, f = flip >> bit & 1;
    const uint32_t at0 = (((0u & keep) | set) ^ flip) >> bit & 1;
    const uint32_t at1 = (((31u & keep) | set) ^ flip) >> bit & 1;
    mask += at0 == at1 ? (at0 ? '1' : '0') : (p0 ^ f) ? 'i' : 'p';
  }
  return fmt::format(" offset:swizzle(BITMASK_PERM,\"{}\")", mask);
}

std::string ds_modifiers(const Instruction& i) {
  const std::string_view name = i.row->text;
  std::string text;
  if (name.find("_2addr") != std::string_view::npos) {
    if (i.offset & 0xFF) text += fmt::format(" offset0:{}", i.offset & 0xFF);
    if (i.offset >> 8) text += fmt::format(" offset1:{}", i.offset >> 8);
  } else if (i.op() == Op::DS_SWIZZLE_B32) {
    text += swizzle_text(uint32_t(i.offset));
  } else if (i.offset) {
    text += fmt::format(" offset:{}", i.offset);
  }
  return text + (i.gds ? " gds" : "");
}

std::string offset_text(const Instruction& i) {
  return i.offset ? fmt::format(" offset:{}", i.offset) : "";
}

std::string modifiers(const Instruction& i) {
  switch (i.encoding()) {
    case Encoding::VOP3: return vop3_modifiers(i) + dpp_text(i.dpp);
    case Encoding::VOP3P: return vop3p_modifiers(i) + dpp_text(i.dpp);
    case Encoding::VOP1:
    case Encoding::VOP2:
    case Encoding::VOPC: return dpp_text(i.dpp);
    case Encoding::DS: return ds_modifiers(i);
    case Encoding::FLAT:
    case Encoding::SCRATCH:
    case Encoding::GLOBAL: return offset_text(i) + cache_text(i);
    case Encoding::SMEM: return cache_text(i);
    case Encoding::MUBUF:
      return std::string(i.index_enable ? " idxen" : "") + (i.offset_enable ? " offen" : "") +
             offset_text(i) + cache_text(i) + (i.texture_fault ? " tfe" : "");
    default: return "";
  }
}

std::string hex_offset(int32_t offset) {
  return offset < 0 ? fmt::format("-0x{:x}", -int64_t(offset)) : fmt::format("0x{:x}", offset);
}

std::string scalar_offset_text(const Instruction& i, const Operand& o) {
  if (o.index == source::Null && i.offset) return hex_offset(i.offset);
  return operand_text(o) + (i.offset ? " offset:" + hex_offset(i.offset) : "");
}

std::string wait_text(uint32_t word) {
  const uint32_t vm = word >> 10 & 63, exp = word & 7, lgkm = word >> 4 & 63;
  const bool all = vm == 63 && exp == 7 && lgkm == 63;
  std::string text;
  if (vm != 63 || all) text += fmt::format(" vmcnt({})", vm);
  if (exp != 7 || all) text += fmt::format(" expcnt({})", exp);
  if (lgkm != 63 || all) text += fmt::format(" lgkmcnt({})", lgkm);
  return text.substr(1);
}

std::string delay_text(uint32_t word) {
  constexpr const char* kIds[] = {"NO_DEP",        "VALU_DEP_1",    "VALU_DEP_2",
                                  "VALU_DEP_3",    "VALU_DEP_4",    "TRANS32_DEP_1",
                                  "TRANS32_DEP_2", "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1",
                                  "SALU_CYCLE_1",  "SALU_CYCLE_2",  "SALU_CYCLE_3"};
  constexpr const char* kSkips[] = {"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"};
  const auto name = [](auto& names, uint32_t n) {
    return n < std::size(names) ? names[n] : "/* invalid */";
  };
  const uint32_t first = word & 15, skip = word >> 4 & 7, second = word >> 7 & 15;
  std::string text;
  if (first) text += fmt::format(" | instid0({})", name(kIds, first));
  if (skip) text += fmt::format(" | instskip({})", name(kSkips, skip));
  if (second) text += fmt::format(" | instid1({})", name(kIds, second));
  return text.empty() ? "0" : text.substr(3);
}

constexpr Name kMessages[] = {
    {1, "INTERRUPT"},          {2, "HS_TESSFACTOR"},   {3, "DEALLOC_VGPRS"},
    {5, "STALL_WAVE_GEN"},     {6, "HALT_WAVES"},      {9, "GS_ALLOC_REQ"},
    {128, "RTN_GET_DOORBELL"}, {129, "RTN_GET_DDID"},  {130, "RTN_GET_TMA"},
    {131, "RTN_GET_REALTIME"}, {132, "RTN_SAVE_WAVE"}, {133, "RTN_GET_TBA"}};

std::string message_text(uint32_t word, bool returns) {
  if (const char* name = find_name(kMessages, word & 255)) {
    return fmt::format("sendmsg(MSG_{})", name);
  }
  return returns || word < 256 ? fmt::format("sendmsg({}, 0, 0)", word) : fmt::format("{}", word);
}

constexpr Name kHardwareRegisters[] = {{1, "MODE"},
                                       {2, "STATUS"},
                                       {3, "TRAPSTS"},
                                       {5, "GPR_ALLOC"},
                                       {6, "LDS_ALLOC"},
                                       {7, "IB_STS"},
                                       {15, "SH_MEM_BASES"},
                                       {18, "PERF_SNAPSHOT_PC_LO"},
                                       {19, "PERF_SNAPSHOT_PC_HI"},
                                       {20, "FLAT_SCR_LO"},
                                       {21, "FLAT_SCR_HI"},
                                       {23, "HW_ID1"},
                                       {24, "HW_ID2"},
                                       {27, "PERF_SNAPSHOT_DATA"},
                                       {29, "SHADER_CYCLES"}};

std::string hardware_register_text(uint32_t word) {
  const uint32_t id = word & 63, offset = word >> 6 & 31, width = (word >> 11) + 1;
  const char* known = find_name(kHardwareRegisters, id);
  const std::string name = known ? fmt::format("HW_REG_{}", known) : fmt::format("{}", id);
  return offset == 0 && width == 32 ? fmt::format("hwreg({})", name)
                                    : fmt::format("hwreg({}, {}, {})", name, offset, width);
}

std::string counter_text(uint32_t word) {
  struct Counter {
    const char* name;
    int low, bits;
  };
  constexpr Counter kCounters[] = {{"hold_cnt", 7, 1}, {"sa_sdst", 0, 1}, {"va_vdst", 12, 4},
                                   {"va_sdst", 9, 3},  {"va_ssrc", 8, 1}, {"va_vcc", 1, 1},
                                   {"vm_vsrc", 2, 3}};
  if (word & 0x60) return fmt::format("0x{:x}", word);  // bits that mean nothing
  const bool all = (word | 0x60) == 0xFFFF;
  std::string text;
  for (const Counter& counter : kCounters) {
    const uint32_t ones = (1u << counter.bits) - 1, value = word >> counter.low & ones;
    if (value != ones || all) text += fmt::format(" depctr_{}({})", counter.name, value);
  }
  return text.substr(1);
}

std::string immediate_text(const Instruction& i, const Operand& o) {
  switch (i.op()) {
    case Op::S_WAITCNT: return wait_text(o.value);
    case Op::S_WAITCNT_DEPCTR: return counter_text(o.value);
    case Op::S_DELAY_ALU: return delay_text(o.value);
    case Op::S_SENDMSG:
    case Op::S_SENDMSGHALT: return message_text(o.value, false);
    case Op::S_SENDMSG_RTN_B32:
    case Op::S_SENDMSG_RTN_B64: return message_text(o.value, true);
    case Op::S_GETREG_B32:
    case Op::S_SETREG_B32:
    case Op::S_SETREG_IMM32_B32: return hardware_register_text(o.value);
    case Op::S_CLAUSE:
    case Op::S_SET_INST_PREFETCH_DISTANCE:
    case Op::S_ROUND_MODE:
    case Op::S_WAIT_EVENT:
    case Op::S_TTRACEDATA_IMM: return fmt::format("0x{:x}", o.value);
    case Op::S_SUBVECTOR_LOOP_BEGIN:
    case Op::S_SUBVECTOR_LOOP_END:
    case Op::S_CALL_B64: return fmt::format("{}", o.value);
    default: break;
  }
  const bool branch = std::string_view(i.row->text).find("branch") != std::string_view::npos;
  if (branch) return fmt::format("{}", o.value);
  const bool decimal = i.encoding() != Encoding::SOPK && o.value <= 64;
  return fmt::format(fmt::runtime(decimal ? "{}" : "0x{:x}"), o.value);
}

bool omitted(const Instruction& i, const Operand& o) {
  // Atomics return their old value only with glc; loads always have a result.
  const bool atomic = std::string_view(i.row->text).find("_atomic_") != std::string_view::npos;
  return o.field == 'D' && atomic && !i.glc && i.encoding() != Encoding::MUBUF;
}

std::string operands_text(const Instruction& i, int first, int last) {
  std::string text;
  if (i.op() == Op::S_ENDPGM && i.words[0] & 0xFFFF) {
    return fmt::format(" {}", i.words[0] & 0xFFFF);
  }
  for (int k = first; k < last; ++k) {
    const Operand& o = i.operands[k];
    if (omitted(i, o)) continue;
    text += text.empty() ? " " : ", ";
    if (o.field == 'T' && i.encoding() == Encoding::SMEM) {
      text += scalar_offset_text(i, o);
    } else {
      text += o.field == 'I' ? immediate_text(i, o) : operand_text(o);
    }
  }
  return text;
}

}  // namespace

std::string to_text(const Instruction& i) {
  std::string text = name_text(i) + operands_text(i, 0, i.first_count) + modifiers(i);
  if (i.second) {
    text += std::string(" :: ") + i.second->text + operands_text(i, i.first_count, i.operand_count);
  }
  return text;
}

}  // namespace tuff::emu::rdna

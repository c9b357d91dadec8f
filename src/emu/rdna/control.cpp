// Branches, waits, barriers and modes.
#include "base/check.h"
#include "emu/rdna/handlers.h"
#include "emu/rdna/machine.h"

namespace tuff::emu::rdna {
namespace {

void nothing(Wave&, const Instruction&) {}

void branch(Wave& w, const Instruction& i) {
  w.pc += uint64_t(int64_t(int16_t(i.find('I')->value)) * 4);
}
template <class F>
void branch_if(Wave& w, const Instruction& i, F taken) {
  if (taken(w)) branch(w, i);
}

void end(Wave& w, const Instruction&) { w.ended = true; }
void barrier(Wave& w, const Instruction&) { w.at_barrier = true; }

void write_pair(Wave& w, uint32_t index, uint64_t value) {
  write_scalar(w, index, uint32_t(value));
  write_scalar(w, index + 1, uint32_t(value >> 32));
}
void get_pc(Wave& w, const Instruction& i) { write_pair(w, i.find('D')->index, w.pc); }
void set_pc(Wave& w, const Instruction& i) {
  w.pc = read_scalar64(w, i.find('0')->index) & ~uint64_t(3);
}
void swap_pc(Wave& w, const Instruction& i) {
  const uint64_t to = read_scalar64(w, i.find('0')->index);
  write_pair(w, i.find('D')->index, w.pc);
  w.pc = to & ~uint64_t(3);
}
void call(Wave& w, const Instruction& i) {
  write_pair(w, i.find('D')->index, w.pc);
  branch(w, i);
}

void complete(Wave& w, Counter counter, uint32_t left) {
  uint32_t& done = w.completed[size_t(counter)];
  const uint32_t issued = w.issued[size_t(counter)];
  if (issued > left && issued - left > done) done = issued - left;
}

void wait_lgkm(Wave& w, uint32_t left) {
  // LDS answers in order: an operation on its way has all later ones behind it, and those alone are
  // more than `left` unless it is done. Scalar loads come in any order: only zero says that one is.
  if (left == 0) complete(w, Counter::Scalar, 0);
  complete(w, Counter::Lds, left);
}

void settle(Wave& w) {
  w.outstanding = w.issued != w.completed;
  const size_t lds = size_t(Counter::Lds);
  if (w.issued[lds] == w.completed[lds]) w.lds_on_the_way.clear();
}

void wait_counters(Wave& w, const Instruction& i) {
  const uint32_t word = i.find('I')->value, vm = word >> 10 & 63, lgkm = word >> 4 & 63;
  if (vm != 63) {
    complete(w, Counter::Vector, vm);
    w.machine->waited_for_loads(w);
  }
  if (lgkm != 63) wait_lgkm(w, lgkm);
  settle(w);
}
void wait_vector(Wave& w, const Instruction& i) {
  w.machine->waited_for_loads(w);
  complete(w, Counter::Vector, i.find('I')->value + read_scalar(w, i.find('D')->index));
  settle(w);
}
// A wave that leaves some on their way knows which: they are not told apart here.
void wait_stores(Wave& w, const Instruction&) { w.machine->waited_for_stores(w); }
void wait_lds(Wave& w, const Instruction& i) {
  wait_lgkm(w, i.find('I')->value + read_scalar(w, i.find('D')->index));
  settle(w);
}

void set_mode(Wave& w, uint32_t mode) {
  w.mode = mode;
  if ((mode & ~kKnownModeBits) == 0) return;
  w.machine->report(
      w, FindingKind::ModeNotEmulated, 0, 0,
      fmt::format("MODE {:#x}: of bits beyond {:#x} nothing is known", mode, kKnownModeBits));
  w.machine->stop();
}
void round_mode(Wave& w, const Instruction& i) {
  set_mode(w, (w.mode & ~15u) | (i.find('I')->value & 15));
}
void denormal_mode(Wave& w, const Instruction& i) {
  set_mode(w, (w.mode & ~0xF0u) | (i.find('I')->value & 15) << 4);
}

// MODE is the one that is known: others read as zero and keep what they have, which is said.
const uint32_t* hardware_register(Wave& w, uint32_t id) {
  constexpr uint32_t kMode = 1;
  if (id == kMode) return &w.mode;
  w.machine->report(w, FindingKind::UnknownInstruction, 0, 0,
                    fmt::format("hardware register {} is not known", id));
  return nullptr;
}
uint32_t field_mask(uint32_t word) {
  const uint32_t width = (word >> 11 & 31) + 1;
  return width == 32 ? ~0u : (1u << width) - 1;
}
void get_register(Wave& w, const Instruction& i) {
  const uint32_t word = i.find('I')->value;
  const uint32_t* value = hardware_register(w, word & 63);
  write_scalar(w, i.find('D')->index, (value ? *value : 0) >> (word >> 6 & 31) & field_mask(word));
}
void set_register_bits(Wave& w, uint32_t word, uint32_t value) {
  const uint32_t at = word >> 6 & 31, mask = field_mask(word);
  if (const uint32_t* r = hardware_register(w, word & 63)) {
    set_mode(w, (*r & ~(mask << at)) | (value & mask) << at);
  }
}
void set_register(Wave& w, const Instruction& i) {
  set_register_bits(w, i.find('I')->value, read_scalar(w, i.find('D')->index));
}
void set_register_constant(Wave& w, const Instruction& i) {
  set_register_bits(w, i.find('I')->value, i.find('K')->value);
}

#define BRANCH_IF(op, condition) \
  TUFF_RDNA_ROW(op, (branch_if(w, i, [](const Wave& w) { return condition; })))

constexpr Handler kRows[] = {
    {Op::S_NOP, nothing},
    {Op::V_NOP, nothing},
    {Op::S_SLEEP, nothing},
    {Op::S_CLAUSE, nothing},
    {Op::S_DELAY_ALU, nothing},
    {Op::S_SET_INST_PREFETCH_DISTANCE, nothing},
    {Op::S_WAITCNT_DEPCTR, nothing},
    {Op::S_WAIT_IDLE, nothing},
    {Op::S_SETPRIO, nothing},
    {Op::S_SENDMSG, nothing},
    {Op::S_ICACHE_INV, nothing},
    {Op::S_DCACHE_INV, nothing},
    {Op::S_GL1_INV, nothing},
    {Op::BUFFER_GL0_INV, nothing},
    {Op::BUFFER_GL1_INV, nothing},
    {Op::S_WAITCNT_VSCNT, wait_stores},
    {Op::S_WAITCNT_EXPCNT, nothing},
    {Op::S_WAITCNT, wait_counters},
    {Op::S_WAITCNT_VMCNT, wait_vector},
    {Op::S_WAITCNT_LGKMCNT, wait_lds},
    {Op::S_ENDPGM, end},
    {Op::S_BARRIER, barrier},
    {Op::S_BRANCH, branch},
    BRANCH_IF(S_CBRANCH_SCC0, !w.scc),
    BRANCH_IF(S_CBRANCH_SCC1, w.scc),
    BRANCH_IF(S_CBRANCH_VCCZ, w.vcc() == 0),
    BRANCH_IF(S_CBRANCH_VCCNZ, w.vcc() != 0),
    BRANCH_IF(S_CBRANCH_EXECZ, w.exec() == 0),
    BRANCH_IF(S_CBRANCH_EXECNZ, w.exec() != 0),
    {Op::S_GETPC_B64, get_pc},
    {Op::S_SETPC_B64, set_pc},
    {Op::S_SWAPPC_B64, swap_pc},
    {Op::S_CALL_B64, call},
    {Op::S_ROUND_MODE, round_mode},
    {Op::S_DENORM_MODE, denormal_mode},
    {Op::S_GETREG_B32, get_register},
    {Op::S_SETREG_B32, set_register},
    {Op::S_SETREG_IMM32_B32, set_register_constant},
};

}  // namespace

std::span<const Handler> control_handlers() { return kRows; }

}  // namespace tuff::emu::rdna

#include "emu/amd/pm4.h"

#include <cstring>

namespace tuff::emu::amd {
namespace {

constexpr uint32_t kLdsUnit = 512;

// Registers that SET_SH_REG sets, by the first of neighbours.
struct Neighbours {
  uint32_t first;
  std::array<const char*, 3> names;
};
constexpr Neighbours kShRegisters[] = {
    {reg::COMPUTE_START_X, {"COMPUTE_START_X", "COMPUTE_START_Y", "COMPUTE_START_Z"}},
    {reg::COMPUTE_NUM_THREAD_X,
     {"COMPUTE_NUM_THREAD_X", "COMPUTE_NUM_THREAD_Y", "COMPUTE_NUM_THREAD_Z"}},
    {reg::COMPUTE_PGM_LO, {"COMPUTE_PGM_LO", "COMPUTE_PGM_HI"}},
    {reg::COMPUTE_DISPATCH_SCRATCH_BASE_LO,
     {"COMPUTE_DISPATCH_SCRATCH_BASE_LO", "COMPUTE_DISPATCH_SCRATCH_BASE_HI"}},
    {reg::COMPUTE_PGM_RSRC1, {"COMPUTE_PGM_RSRC1", "COMPUTE_PGM_RSRC2"}},
    {reg::COMPUTE_PGM_RSRC3, {"COMPUTE_PGM_RSRC3"}},
    {reg::COMPUTE_RESOURCE_LIMITS, {"COMPUTE_RESOURCE_LIMITS"}},
    {reg::COMPUTE_TMPRING_SIZE, {"COMPUTE_TMPRING_SIZE"}},
    {reg::COMPUTE_RESTART_X, {"COMPUTE_RESTART_X", "COMPUTE_RESTART_Y", "COMPUTE_RESTART_Z"}}};

const char* register_name(uint32_t offset) {
  for (const auto& [first, names] : kShRegisters) {
    if (offset - first < names.size() && names[offset - first]) return names[offset - first];
  }
  return offset - reg::COMPUTE_USER_DATA_0 < 16 ? "COMPUTE_USER_DATA" : nullptr;
}

}  // namespace

const char* pm4_name(uint32_t opcode) {
  switch (opcode) {
#define AMD_PM4(name, opcode) \
  case opcode: return #name;
#include "devices/amd/encode/packets.def"
  }
  return nullptr;
}

CacheActions gcr_actions(const Packet& p, uint32_t c) {
  // GLM is the metadata of images: nothing here has any. No driver uses ranges, sequences and
  // discarding: GLI_INV's second bit, GL1_RANGE, GL2_US, GL2_RANGE, GL2_DISCARD, SEQ, RANGE_IS_PA.
  constexpr uint32_t kKnown =
      1u << 0 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 9 | 1u << 14 | 1u << 15;
  if (c & ~kKnown) bad("{}: GCR_CNTL {:#x} has bits {:#x}", p.name, c, c & ~kKnown);
  CacheActions a;
  a.gli_inv = c & 1u << 0;
  a.glk_inv = c & 1u << 7;
  a.glv_inv = c & 1u << 8;
  a.gl1_inv = c & 1u << 9;
  a.gl2_inv = c & 1u << 14;
  a.gl2_wb = c & 1u << 15;
  return a;
}

// ---- where packets come from

uint32_t Pm4Queue::dwords_of(uint32_t header) {
  if (header >> 30 != 3) bad("a PM4 packet of type {} (header {:#x})", header >> 30, header);
  if (header & 0xff) bad("PM4 header {:#x}: predicate or shader type", header);
  const uint32_t opcode = header >> 8 & 0xff, count = header >> 16 & 0x3fff;
  if (!pm4_name(opcode)) bad("unknown PM4 opcode {:#x} (header {:#x})", opcode, header);
  return opcode == pm4::NOP && count == 0x3fff ? 1 : count + 2;
}

Packet Pm4Queue::parse(uint64_t address, std::span<const uint32_t> dwords) const {
  const uint32_t opcode = dwords[0] >> 8 & 0xff;
  return {pm4_name(opcode), address, {dwords.begin(), dwords.end()}};
}

void Pm4Queue::enter(const Packet& p, size_t first) {
  const uint64_t address = p.target(first, 4);
  const uint32_t size = p.only(first + 2, 0xfffff | 1u << 23);
  if (!(size & 1u << 23)) bad("{}: an indirect buffer that is not VALID", p.name);
  const uint32_t dwords = size & 0xfffff;
  if (dwords == 0) bad("{}: an indirect buffer of no dwords", p.name);
  const uint8_t* from = peek(address, dwords * 4, p.name);
  Buffer b{address, std::vector<uint32_t>(dwords), 0};
  std::memcpy(b.dwords.data(), from, size_t(dwords) * 4);
  buffer_ = std::move(b);
}

bool Pm4Queue::go_on(bool buffered) {
  const Progress progress = execute(*packet_, buffered);
  if (progress != Progress::Done) return progress == Progress::Begun;
  packet_.reset();
  taken();
  return true;
}

bool Pm4Queue::take_from_buffer() {
  if (!packet_) {
    if (!may_take()) return false;
    Buffer& b = *buffer_;
    const uint64_t address = b.address + b.next * 4;
    const uint32_t size = dwords_of(b.dwords[b.next]);
    if (size > b.dwords.size() - b.next) {
      bad("a packet of {} dwords reaches over the end of its indirect buffer at {:#x}", size,
          address);
    }
    packet_ = parse(address, std::span(b.dwords).subspan(b.next, size));
    b.next += size;
  }
  const bool done = go_on(true);
  if (!packet_ && buffer_->over()) buffer_.reset();
  return done;
}

Queue::Progress Pm4Queue::execute(const Packet& p, bool buffered) {
  switch (p[0] >> 8 & 0xff) {
    case pm4::NOP: return Progress::Done;
    case pm4::DISPATCH_DIRECT: return dispatch(p, false);
    case pm4::DISPATCH_INDIRECT: return dispatch(p, true);
    case pm4::PRED_EXEC: pred_exec(p, buffered); return Progress::Done;
    case pm4::WAIT_REG_MEM: return wait_reg_mem(p);
    case pm4::EVENT_WRITE: return event_write(p);
    case pm4::RELEASE_MEM: release_mem(p); return Progress::Done;
    case pm4::DMA_DATA: return dma_data(p);
    case pm4::ACQUIRE_MEM: acquire_mem(p); return Progress::Done;
    case pm4::SET_SH_REG: set_sh_reg(p); return Progress::Done;
    case pm4::INDIRECT_BUFFER:
      if (buffered) bad("an INDIRECT_BUFFER within an indirect buffer");
      p.count(4);
      enter(p, 1);
      return Progress::Done;
  }
  return Progress::Done;
}

// ---- waits and caches

Queue::Progress Pm4Queue::wait_reg_mem(const Packet& p) {
  p.count(7);
  const uint32_t control = p.only(1, 0x7 | 3u << 4 | 3u << 6);
  p.only(6, 0xffff);
  const uint32_t function = control & 7, space = control >> 4 & 3, operation = control >> 6 & 3;
  if (function == 7) bad("WAIT_REG_MEM: function 7");
  if (space > 1 || operation != (space ? 0 : 1)) {
    bad("WAIT_REG_MEM: space {}, operation {}: neither a word in memory nor a register to write "
        "and wait for",
        space, operation);
  }
  if (space == 0) {
    flush_hdp(p);
    return Progress::Done;
  }
  return wait({p.target(2, 4), function, p[4], p[5]}) ? Progress::Done : Progress::Blocked;
}

void Pm4Queue::flush_hdp(const Packet& p) {
  const uint32_t request = p.only(2, 0x3ffff), done = p.only(3, 0x3ffff);
  if (request != reg::BIF_BX_PF_GPU_HDP_FLUSH_REQ || done != reg::BIF_BX_PF_GPU_HDP_FLUSH_DONE) {
    bad("WAIT_REG_MEM: registers {:#x} and {:#x}", request, done);
  }
  // The bits of the compute pipes: CP2..CP9. Source: Linux nbio_*_sh_mask.h.
  const bool one_pipe = std::popcount(p[4]) == 1 && (p[4] & 0x3fc);
  if ((p[1] & 7) != 3 || !one_pipe || p[5] != p[4]) {
    bad("WAIT_REG_MEM: HDP flush of {:#x}, mask {:#x}, function {}", p[4], p[5], p[1] & 7);
  }
  chip_.caches.flush_hdp();
}

Queue::Progress Pm4Queue::event_write(const Packet& p) {
  p.count(2);
  const uint32_t event = p.only(1, 0x3f | 0xf << 8);
  if ((event & 0x3f) != 7 || event >> 8 != 4) {
    bad("EVENT_WRITE: event {:#x}, index {}", event & 0x3f, event >> 8);
  }
  return idle_kernels() ? Progress::Done : Progress::Blocked;
}

void Pm4Queue::acquire_mem(const Packet& p) {
  p.count(8);
  p.is(1, 0, "COHER_CNTL");
  p.only(6, 0xffff);
  if (p[2] != ~0u || p[3] != 0xff || p[4] != 0 || p[5] != 0) {
    bad("ACQUIRE_MEM of {:#x}{:08x} units of 256 bytes from {:#x}{:08x}: only all of memory", p[3],
        p[2], p[5], p[4]);
  }
  acquire(gcr_actions(p, p.only(7, (1u << 19) - 1)));
}

void Pm4Queue::release_mem(const Packet& p) {
  p.count(8);
  if (setup().eop_address == 0 || setup().eop_bytes == 0) {
    bad("RELEASE_MEM on a queue without an EOP buffer");
  }
  if (!chip_.caches.mapped(setup().eop_address, setup().eop_bytes, true)) {
    throw EngineFault{"RELEASE_MEM's EOP buffer"};
  }
  // GLM_WB, GLM_INV, GLV_INV, GL1_INV, GL2_INV, GL2_WB, GLK_WB, GLK_INV.
  const uint32_t event = p.only(1, 0x3f | 0xf << 8 | 0xf << 12 | 3u << 20 | 1u << 24 | 1u << 30);
  if ((event & 0x3f) != 0x14 || (event >> 8 & 0xf) != 5) {
    bad("RELEASE_MEM: event {:#x}, index {}", event & 0x3f, event >> 8 & 0xf);
  }
  Release r;
  r.packet = "RELEASE_MEM";
  r.caches.glv_inv = event & 1u << 14;
  r.caches.gl1_inv = event & 1u << 15;
  r.caches.gl2_inv = event & 1u << 20;
  r.caches.gl2_wb = event & 1u << 21;
  r.caches.glk_inv = event & 1u << 30;
  const uint32_t select = p.only(2, 3u << 16 | 7u << 24 | 7u << 29);
  const uint32_t interrupt = select >> 24 & 7, data = select >> 29;
  if (select >> 16 & 3) bad("RELEASE_MEM: not to memory (DST_SEL {})", select >> 16 & 3);
  if (interrupt != 0 && interrupt != 2) bad("RELEASE_MEM: INT_SEL {}", interrupt);
  if (data == 0 || data > 3) bad("RELEASE_MEM: DATA_SEL {}", data);
  r.data = Release::Data(data);
  r.address = p.target(3, data == 1 ? 4 : 8);
  r.value = p[5] | uint64_t(p[6]) << 32;
  r.interrupt = interrupt == 2;
  r.event_id = p.only(7, 0xfffffff);
  release(r);
}

Queue::Progress Pm4Queue::dma_data(const Packet& p) {
  p.count(7);
  const uint32_t control = p.only(1, 3u << 20 | 3u << 29 | 1u << 31);
  if ((control >> 20 & 3) != 3 || (control >> 29 & 3) != 3) {
    bad("DMA_DATA: DST_SEL {}, SRC_SEL {}: only through the L2", control >> 20 & 3,
        control >> 29 & 3);
  }
  const bool sync = control >> 31;
  if (!copying_) {
    const uint32_t bytes = p.only(6, (1u << 26) - 1);
    if (bytes == 0) bad("DMA_DATA of no bytes");
    copy("DMA_DATA", p.target(4, 1), p.target(2, 1), bytes);
    copying_ = sync;
    return sync ? Progress::Begun : Progress::Done;
  }
  copying_ = !idle_copies();
  return copying_ ? Progress::Blocked : Progress::Done;
}

void Pm4Queue::pred_exec(const Packet& p, bool buffered) {
  p.count(2);
  if (!buffered) bad("PRED_EXEC outside of an indirect buffer, where it is ignored");
  const uint32_t control = p.only(1, 0x3fff | 0xffu << 24), count = control & 0x3fff;
  if (count > buffer_->dwords.size() - buffer_->next) {
    bad("PRED_EXEC governs {} dwords, {} are left", count, buffer_->dwords.size() - buffer_->next);
  }
  if (!(control >> 24 & 1)) buffer_->next += count;  // there is one XCC
}

// ---- dispatches

void Pm4Queue::set_sh_reg(const Packet& p) {
  if (p.dwords.size() < 3) bad("SET_SH_REG sets nothing");
  const uint32_t first = p.only(1, 0xffff);
  for (size_t i = 2; i < p.dwords.size(); ++i) {
    const uint32_t offset = first + uint32_t(i - 2);
    if (!register_name(offset)) bad("SET_SH_REG: unknown register {:#x}", offset);
    registers_[offset - kFirstRegister] = p[i];
    written_.set(offset - kFirstRegister);
  }
}

uint32_t Pm4Queue::need(uint32_t offset) const {
  if (!written_[offset - kFirstRegister]) {
    bad("a dispatch with {} never written on this queue", register_name(offset));
  }
  return registers_[offset - kFirstRegister];
}

// What a wave has, for 32 lanes; all of it must be mapped.
void Pm4Queue::set_scratch(rdna::Launch& launch) const {
  const uint32_t tmpring = need(reg::COMPUTE_TMPRING_SIZE);
  const uint64_t base = uint64_t(need(reg::COMPUTE_DISPATCH_SCRATCH_BASE_LO)) << 8 |
                        uint64_t(need(reg::COMPUTE_DISPATCH_SCRATCH_BASE_LO + 1)) << 40;
  const uint64_t wave_bytes = uint64_t(tmpring >> 12 & 0x7fff) * 256;
  if (!(launch.rsrc2 & 1)) return;
  if (wave_bytes == 0 || (tmpring & 0xfff) == 0) {
    bad("a dispatch with scratch and COMPUTE_TMPRING_SIZE {:#x}", tmpring);
  }
  if (!chip_.caches.mapped(base, wave_bytes * (tmpring & 0xfff), true)) {
    throw EngineFault{"a dispatch's scratch"};
  }
  launch.scratch_bytes = uint32_t(wave_bytes / 32);
}

rdna::Launch Pm4Queue::launch_of(std::array<uint32_t, 3> groups, uint32_t initiator) const {
  if (!(initiator & 1u << 15)) bad("a dispatch of waves of 64 lanes, which are not emulated");
  rdna::Launch launch;
  launch.groups = groups;
  launch.entry_address =
      uint64_t(need(reg::COMPUTE_PGM_LO)) << 8 | uint64_t(need(reg::COMPUTE_PGM_LO + 1)) << 40;
  launch.rsrc1 = need(reg::COMPUTE_PGM_RSRC1);
  launch.rsrc2 = need(reg::COMPUTE_PGM_RSRC1 + 1);
  launch.rsrc3 = need(reg::COMPUTE_PGM_RSRC3);
  need(reg::COMPUTE_RESOURCE_LIMITS);
  uint64_t items = 1;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (need(reg::COMPUTE_START_X + axis) || need(reg::COMPUTE_RESTART_X + axis)) {
      bad("a dispatch that starts or restarts within its grid");
    }
    const uint32_t threads = need(reg::COMPUTE_NUM_THREAD_X + axis);
    if (threads == 0 || threads > kMaxGroupItems) {
      bad("a dispatch with COMPUTE_NUM_THREAD {:#x} on axis {}", threads, axis);
    }
    items *= launch.group_size[axis] = threads;
  }
  if (items > kMaxGroupItems) bad("a dispatch of {} work-items in a group", items);
  launch.lds_bytes = (launch.rsrc2 >> 15 & 0x1ff) * kLdsUnit;
  if (launch.lds_bytes > kMaxLdsBytes) bad("a dispatch with {} bytes of LDS", launch.lds_bytes);
  const uint32_t users = launch.rsrc2 >> 1 & 0x1f;
  if (users > 16) bad("a dispatch with {} user registers", users);
  launch.user_data_written = 0;
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t at = reg::COMPUTE_USER_DATA_0 + i - kFirstRegister;
    launch.user_data[i] = registers_[at];
    if (written_[at]) launch.user_data_written |= uint16_t(1u << i);
  }
  set_scratch(launch);
  return launch;
}

Queue::Progress Pm4Queue::dispatch(const Packet& p, bool indirect) {
  p.count(indirect ? 4 : 5);
  const uint32_t initiator = p.only(indirect ? 3 : 4, 1u | 1u << 2 | 1u << 15);
  if (!(initiator & 1)) bad("{} without COMPUTE_SHADER_EN", p.name);
  if (!(initiator & 4)) bad("{} without FORCE_START_AT_000", p.name);
  if (!can_launch()) return Progress::Blocked;
  std::array<uint32_t, 3> groups{};
  if (indirect) {
    read(p.target(1, 4), groups.data(), sizeof groups, p.name);
  } else {
    groups = {p[1], p[2], p[3]};
  }
  const rdna::Launch launch_ = launch_of(groups, initiator);
  if (groups[0] && groups[1] && groups[2]) launch(launch_, false);
  return Progress::Done;
}

}  // namespace tuff::emu::amd

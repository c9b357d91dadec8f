// MUBUF, and loads of scalars from buffers: through a descriptor of 128 bits, which says where a
// buffer lies and how far it goes. What is outside reads as zero and is not written. ISA 9.1 and
// 7.2; fields of the descriptor: Mesa, sid.h, SQ_BUF_RSRC_WORD0 to 3 of GFX11.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "emu/rdna/machine.h"
#include "emu/rdna/memory_ops.h"

namespace tuff::emu::rdna {
namespace {

// OOB_SELECT: what makes an access one beyond the buffer.
enum class Bounds : uint8_t { IndexAndStride, Index, None, Bytes };

struct Buffer {
  uint64_t base = 0;
  uint32_t stride = 0, records = 0, scalar_offset = 0;
  Bounds bounds = Bounds::Bytes;
};

struct Place {
  uint64_t index = 0, offset = 0;  // of the record, and in it
};

// Nothing for descriptors and modifiers whose meaning is not known here; said, and the end.
std::optional<Buffer> buffer_of(Wave& w, const Instruction& i) {
  const uint32_t at = i.find('S')->index;
  const uint32_t high = read_scalar(w, at + 1), control = read_scalar(w, at + 3);
  const uint32_t swizzle = high >> 30, adds_lane = control >> 23 & 1, type = control >> 30;
  if (swizzle || adds_lane || type || i.texture_fault) {
    w.machine->report(w, FindingKind::UnknownInstruction, 0, 0,
                      fmt::format("buffers with SWIZZLE_ENABLE {}, ADD_TID_ENABLE {}, TYPE {}, or "
                                  "TFE {} are not known",
                                  swizzle, adds_lane, type, i.texture_fault));
    w.machine->stop();
    return std::nullopt;
  }
  return Buffer{read_scalar(w, at) | uint64_t(high & 0xFFFF) << 32, high >> 16 & 0x3FFF,
                read_scalar(w, at + 2), uint32_t(uniform_bits<uint32_t>(w, i, *i.find('T'))),
                Bounds(control >> 28 & 3)};
}

Place place_of(const Wave& w, const Instruction& i, uint32_t lane) {
  const uint32_t at = i.find('A')->index;
  Place p;
  if (i.index_enable) p.index = w.v[at][lane];
  if (i.offset_enable) p.offset = w.v[(at + i.index_enable) & 255][lane];
  p.offset += uint32_t(i.offset);
  return p;
}

// Sums do not wrap here: LLVM, "User Guide for AMDGPU Backend", buffer resources.
bool is_inside(const Buffer& b, const Place& p, uint64_t bytes) {
  switch (b.bounds) {
    case Bounds::IndexAndStride: return p.index < b.records && p.offset + bytes <= b.stride;
    case Bounds::Index: return p.index < b.records;
    case Bounds::None: return b.records != 0;
    case Bounds::Bytes: break;
  }
  return p.index * b.stride + p.offset + bytes <= b.records;
}

// The bytes of one component, which is looked at alone; null where it is outside.
uint8_t* reach(Wave& w, const Instruction& i, const Buffer& b, uint32_t lane, Place p,
               uint32_t bytes, AccessKind kind) {
  if (!is_inside(b, p, bytes)) return nullptr;
  const uint64_t address = b.base + b.scalar_offset + p.index * b.stride + p.offset;
  p.offset += b.scalar_offset;
  if (b.bounds == Bounds::Bytes && !is_inside(b, p, bytes)) {
    w.machine->report(w, FindingKind::BufferBounds, lane, address,
                      fmt::format("inside of {} bytes but for the scalar offset {}: whether that "
                                  "counts is not written down",
                                  b.records, b.scalar_offset));
  }
  const Access access{address, bytes, kind, i.glc || i.dlc, w.group->number};
  if (w.machine->counters) [[unlikely]]
    w.machine->counters->range(access);
  return w.machine->reach(w, lane, access);
}

template <class F>
void for_each_lane(Wave& w, F f) {
  for (uint32_t lane = 0; lane < kLanes && !w.machine->stopped(); ++lane) {
    if (w.exec() >> lane & 1) f(lane);
  }
}

template <class T, Half half>
void load(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const auto buffer = buffer_of(w, i);
  if (!buffer) return;
  for_each_lane(w, [&](uint32_t lane) {
    const Place p = place_of(w, i, lane);
    const uint8_t* from = reach(w, i, *buffer, lane, p, sizeof(T), AccessKind::Load);
    T value{};
    if (from) std::memcpy(&value, from, sizeof value);
    put_loaded<half>(w.v[d.index][lane], value);
  });
  mark_result(w, i, d);
}

template <uint32_t words>
void load_words(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const auto buffer = buffer_of(w, i);
  if (!buffer) return;
  for_each_lane(w, [&](uint32_t lane) {
    Place p = place_of(w, i, lane);
    std::array<uint32_t, words> values{};
    for (uint32_t k = 0; k < words; ++k, p.offset += 4) {
      const uint8_t* from = reach(w, i, *buffer, lane, p, 4, AccessKind::Load);
      if (from) std::memcpy(&values[k], from, 4);
    }
    for (uint32_t k = 0; k < words; ++k) w.v[(d.index + k) & 255][lane] = values[k];
  });
  mark_result(w, i, d);
}

template <uint32_t bytes, int shift = 0>
void store_bytes(Wave& w, const Instruction& i) {
  const Operand& data = *i.find('D');
  const auto buffer = buffer_of(w, i);
  if (!buffer) return;
  for_each_lane(w, [&](uint32_t lane) {
    Place p = place_of(w, i, lane);
    for (uint32_t k = 0; k < bytes; k += 4, p.offset += 4) {
      const uint32_t part = std::min(bytes, 4u);
      const uint32_t word = w.v[(data.index + k / 4) & 255][lane] >> shift;
      uint8_t* to = reach(w, i, *buffer, lane, p, part, AccessKind::Store);
      if (to) std::memcpy(to, &word, part);
    }
  });
  mark_store(w, i);
}

// Base, stride and number of records of the descriptor count, TYPE and OOB_SELECT do not: each word
// is inside or reads as zero.
template <uint32_t words>
void scalar_load(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const uint32_t at = i.find('A')->index, high = read_scalar(w, at + 1);
  const uint64_t base = read_scalar(w, at) | uint64_t(high & 0xFFFF) << 32;
  const uint64_t stride = high >> 16 & 0x3FFF, records = read_scalar(w, at + 2);
  const uint64_t size = stride ? stride * records : records;
  const uint64_t asked = uint64_t(i.offset) + read_scalar(w, i.find('T')->index);
  if (asked & 3) {
    w.machine->report(w, FindingKind::Misaligned, 0, base + asked,
                      "scalar loads ignore the two lowest bits of an address");
  }
  const uint32_t serial = ++w.issued[size_t(Counter::Scalar)];
  for (uint32_t k = 0; k < words && d.index + k < 128; ++k) {
    const uint64_t offset = (asked & ~uint64_t(3)) + 4 * k;
    uint32_t word = 0;
    if (offset + 4 <= size) {
      const Access access{base + offset, 4, AccessKind::ScalarLoad, i.glc || i.dlc,
                          w.group->number};
      if (w.machine->counters) [[unlikely]]
        w.machine->counters->range(access);
      const uint8_t* from = w.machine->reach(w, 0, access);
      if (!from) return;
      std::memcpy(&word, from, 4);
    }
    write_scalar(w, d.index + k, word);
    w.s_load[d.index + k] = serial;
  }
  w.outstanding = true;
}

constexpr Handler kRows[] = {
    PLAIN_ACCESSES(BUFFER),
    D16_ACCESSES(BUFFER),
    {Op::S_BUFFER_LOAD_B32, scalar_load<1>},
    {Op::S_BUFFER_LOAD_B64, scalar_load<2>},
    {Op::S_BUFFER_LOAD_B128, scalar_load<4>},
    {Op::S_BUFFER_LOAD_B256, scalar_load<8>},
    {Op::S_BUFFER_LOAD_B512, scalar_load<16>},
};

}  // namespace

std::span<const Handler> buffer_handlers() { return kRows; }

}  // namespace tuff::emu::rdna

// PacketStream: packets as dwords, with the places in them that change from submission to
// submission. Written by the encoders of devices whose queues are words in memory (amd, nv),
// submitted by their queues: a replay copies the dwords and runs the flat list of patches, or runs
// the patches alone over what it copied before. Knows no packets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hcq/command.h"

namespace tuff::devices {

// dword = (dword & ~mask) | (((values[slot] * scale + base) >> shift) << lsb & mask), `mask` in the
// dword's place. At most one patch per dword, so that patched memory need not be read.
struct Patch {
  uint32_t dword = 0;
  uint32_t slot = 0;
  uint64_t base = 0;
  uint32_t mask = ~0u;
  uint16_t scale = 1;
  uint8_t shift = 0, lsb = 0;
  bool operator==(const Patch&) const = default;
};

class PacketStream {
 public:
  std::vector<uint32_t> dwords;
  std::vector<uint32_t> units;  // first dword of each part that must not be torn apart
  std::vector<Patch> patches;   // in the order of their dwords
  // Units that a submission leaves out where a dword of theirs comes to 0; in the order of units.
  struct Guard {
    uint32_t unit = 0, dword = 0;
    bool operator==(const Guard&) const = default;
  };
  std::vector<Guard> guards;

  // The template with its patches into `out`, which has dwords.size() dwords.
  void write(std::span<const uint64_t> values, uint32_t* out) const;
  // The patches alone, over what write() left in `out`.
  void patch(std::span<const uint64_t> values, uint32_t* out) const;
};

// A 64-bit operand of a packet: fixed, or a slot's value times `scale` plus `fixed`; or the upper
// half of one.
struct Operand {
  uint64_t fixed = 0;
  int32_t slot = -1;
  uint16_t scale = 1;
  uint8_t shift = 0;
  Operand(uint64_t value = 0) : fixed(value) {}
  static Operand of_slot(uint32_t slot, uint64_t base = 0, uint16_t scale = 1) {
    Operand o(base);
    o.slot = int32_t(slot);
    o.scale = scale;
    return o;
  }
  bool patched() const { return slot >= 0; }
  Operand upper_half() const {
    Operand o = *this;
    o.shift = 32;
    return o;
  }
  bool operator==(const Operand&) const = default;
};

// How many workgroups a launch takes along an axis, times `scale`.
inline Operand groups_of(const hcq::DispatchCmd& launch, size_t axis, uint16_t scale = 1) {
  const int32_t slot = launch.group_slots[axis];
  if (slot >= 0) return Operand::of_slot(static_cast<uint32_t>(slot), 0, scale);
  return uint64_t{launch.groups[axis]} * scale;
}

// Appends to a PacketStream.
class PacketWriter {
 public:
  explicit PacketWriter(PacketStream& stream) : s_(stream) {}
  void unit() { s_.units.push_back(size()); }
  // The unit that was begun last, if the dword written next comes to 0.
  void leave_unit_out_if_zero() {
    s_.guards.push_back({static_cast<uint32_t>(s_.units.size()) - 1, size()});
  }
  void dword(uint32_t value) { s_.dwords.push_back(value); }
  void lo(const Operand& o);  // 32 bits of it
  // The bits of `mask`; the others are those of `rest`.
  void masked(const Operand& o, uint32_t mask, uint32_t rest);
  void address(const Operand& o) { lo(o), lo(o.upper_half()); }
  uint32_t size() const { return uint32_t(s_.dwords.size()); }
  uint32_t& at(uint32_t i) { return s_.dwords[i]; }

 private:
  PacketStream& s_;
};

}  // namespace tuff::devices

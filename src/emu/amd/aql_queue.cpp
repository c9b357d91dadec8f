// A compute queue of AQL packets: kernels with their descriptors, barriers, and jumps into PM4.
// Pointers count packets; the doorbell is the index of the last one.
// Fences of the vendor's packets are written down nowhere: they do nothing here, their barrier bit
// does.
// Sources: HSA runtime specification 1.2, 2.9; ROCr core/runtime/amd_aql_queue.cpp (ExecutePM4:
// the vendor's packet). What fences do, where HSA leaves it open: an agent's acquire invalidates
// the caches before the L2, a system's the L2 and the instruction cache as well; a system's release
// writes the L2 back.
#include <atomic>
#include <cstring>

#include "emu/amd/pm4.h"
#include "emu/rdna/kernel.h"

namespace tuff::emu::amd {
namespace {

constexpr uint32_t kDwords = aql::kPacketBytes / 4, kSystem = 2;
constexpr uint16_t kWave32 = 1 << 10;

class AqlQueue : public Pm4Queue {
 public:
  AqlQueue(Chip& chip, const QueueSetup& setup)
      : Pm4Queue(chip, setup), packets_(setup.ring_bytes / aql::kPacketBytes) {}

 protected:
  bool take() override {
    if (in_buffer()) {
      const bool done = take_from_buffer();
      if (!in_buffer()) finish();
      return done;
    }
    if (!aql_ && !fetch()) return false;
    const Packet& p = *aql_;
    if (p[0] & 1u << 8 && !ended()) return false;
    switch (p[0] & 0xff) {
      case aql::KERNEL_DISPATCH: return dispatch(p);
      case aql::BARRIER_AND: barrier(p); return true;
      default: jump(p); return true;
    }
  }

 private:
  bool fetch() {
    const std::optional<uint64_t> end = announced(read_);
    if (!end) return false;
    if (*end < read_ || *end - read_ > packets_) {
      bad("the doorbell says packet {}, {} have been read, the ring has {}", *end - 1, read_,
          packets_);
    }
    const uint64_t at = setup().ring_address + read_ % packets_ * aql::kPacketBytes;
    const auto* ring = reinterpret_cast<const uint32_t*>(peek(at, aql::kPacketBytes, "ring"));
    const uint32_t header = std::atomic_ref(const_cast<uint32_t&>(ring[0])).load();
    if ((header & 0xff) == aql::INVALID || !may_take()) return false;
    const char* name = name_of(header & 0xff);
    if (!name) bad("AQL packet of type {}", header & 0xff);
    aql_ = Packet{name, at, {ring, ring + kDwords}};
    const uint32_t acquire = header >> 9 & 3, release = header >> 11 & 3;
    if (acquire > kSystem || release > kSystem || header >> 13 & 7) {
      bad("{}: header {:#x}", name, header & 0xffff);
    }
    return true;
  }

  static const char* name_of(uint32_t type) {
    switch (type) {
#define AMD_AQL(name, type) \
  case type: return #name;
#include "devices/amd/encode/packets.def"
    }
    return nullptr;
  }

  void begin(const Packet& p) {
    const uint32_t scope = p[0] >> 9 & 3;
    if (scope == 0) return;
    CacheActions a;
    a.glk_inv = a.glv_inv = a.gl1_inv = true;
    a.gli_inv = a.gl2_inv = a.gl2_wb = scope == kSystem;
    acquire(a);
  }
  bool releases_to_system(const Packet& p) const { return (p[0] >> 11 & 3) == kSystem; }

  // The packet's place is free again.
  void finish() {
    if (releases_to_system(*aql_) && (*aql_)[0] % 256 == aql::BARRIER_AND) {
      CacheActions a;
      a.gl2_wb = true;
      acquire(a);
    }
    chip_.caches.store(aql_->address, ((*aql_)[0] & ~0xffu) | aql::INVALID, 4);
    aql_.reset();
    taken();
    publish_read_pointer(++read_, 8);
  }

  void barrier(const Packet& p) {
    p.only(0, 0x1fff);
    for (size_t i = 1; i < kDwords; ++i) p.is(i, 0, "a dependency or completion signal");
    begin(p);
    finish();
  }

  void jump(const Packet& p) {
    if (p[0] >> 16 != 1) bad("{}: format {}", p.name, p[0] >> 16);
    p.is(1, 3u << 30 | 2u << 16 | pm4::INDIRECT_BUFFER << 8, "the packet within");
    p.is(5, 10, "the count of dwords that remain");
    for (size_t i = 6; i < kDwords; ++i) p.is(i, 0, "a reserved dword or completion signal");
    enter(p, 2);
  }

  bool dispatch(const Packet& p) {
    if (!can_launch()) return false;
    const uint32_t dimensions = p.only(0, 0x1fff | 3u << 16) >> 16;
    if (dimensions == 0) bad("{}: no dimensions", p.name);
    p.only(2, 0xffff);
    for (size_t i = 12; i < kDwords; ++i) p.is(i, 0, "a reserved dword or completion signal");
    begin(p);
    rdna::Launch launch_ = kernel(p);
    set_grid(p, launch_);
    launch(std::move(launch_), releases_to_system(p));
    finish();
    return true;
  }

  rdna::Launch kernel(const Packet& p) {
    const uint64_t object = p.target(8, 64);
    rdna::Kernel k;
    rdna::Descriptor& d = k.descriptor;
    read(object, &d, sizeof d, p.name);
    k.entry_address = object + uint64_t(d.entry_offset);
    if (k.entry_address % 256) bad("{}: code at {:#x}", p.name, k.entry_address);
    if (!(d.properties & kWave32)) {
      bad("{}: a kernel of waves of 64 lanes, which are not emulated", p.name);
    }
    if (p[6] < d.scratch_bytes || p[7] < d.lds_bytes || p[7] > kMaxLdsBytes) {
      bad("{}: {} bytes of scratch and {} of LDS, the kernel needs {} and {}", p.name, p[6], p[7],
          d.scratch_bytes, d.lds_bytes);
    }
    rdna::Launch out = rdna::launch_of(k, p.target(10, 16), p.address);
    out.lds_bytes = p[7];
    out.scratch_bytes = p[6];
    return out;
  }

  void set_grid(const Packet& p, rdna::Launch& launch) const {
    launch.group_size = {p[1] & 0xffff, p[1] >> 16, p[2]};
    uint64_t items = 1;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const uint32_t size = launch.group_size[axis], grid = p[3 + axis];
      if (size == 0 || grid == 0) bad("{}: no work-items on axis {}", p.name, axis);
      if (grid % size) bad("{}: partial groups, which are not emulated", p.name);
      items *= size;
      launch.groups[axis] = grid / size;
    }
    if (items > kMaxGroupItems) bad("{}: {} work-items in a group", p.name, items);
  }

  const uint64_t packets_;
  uint64_t read_ = 0;
  std::optional<Packet> aql_;
};

}  // namespace

std::unique_ptr<Queue> make_aql_queue(Chip& chip, const QueueSetup& setup) {
  return std::make_unique<AqlQueue>(chip, setup);
}

}  // namespace tuff::emu::amd

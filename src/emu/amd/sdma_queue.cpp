// A copy queue: SDMA 6.0. Pointers count bytes, on and on. Copies run beside what follows them;
// fences, traps, timestamps, cache requests and NOPs come after them.
// Sources: Linux amdgpu/sdma_v6_0_0_pkt_open.h (layouts), ROCr core/inc/sdma_registers.h
// (GCR_REQ, HDP_FLUSH), AMD PAL dmaCmdBuffer.cpp (a NOP waits).
#include "emu/amd/pm4.h"

namespace tuff::emu::amd {
namespace {

constexpr uint32_t kTimestampBytes = 32;

const char* name_of(uint32_t op) {
  switch (op) {
#define AMD_SDMA(name, op) \
  case op: return #name;
#include "devices/amd/encode/packets.def"
  }
  return nullptr;
}

uint32_t dwords_of(uint32_t op) {
  switch (op) {
    case sdma::COPY_LINEAR: return 7;
    case sdma::FENCE: return 4;
    case sdma::TRAP: return 2;
    case sdma::POLL_REGMEM: return 6;
    case sdma::TIMESTAMP_GET_GLOBAL: return 3;
    case sdma::GCR_USER: return 5;
    default: return 1;
  }
}

class SdmaQueue : public Queue {
 public:
  using Queue::Queue;

 protected:
  bool take() override {
    if (!packet_ && !fetch()) return false;
    if (!execute(*packet_)) return false;
    packet_.reset();
    taken();
    publish_read_pointer(read_, 8);
    return true;
  }

 private:
  bool fetch() {
    const std::optional<uint64_t> end = announced(read_);
    if (!end || !may_take()) return false;
    const uint32_t ring_bytes = setup().ring_bytes;
    if (*end < read_ || *end - read_ > ring_bytes || *end % 4) {
      bad("the doorbell says {} bytes, {} have been read, the ring has {}", *end, read_,
          ring_bytes);
    }
    const auto* ring =
        reinterpret_cast<const uint32_t*>(peek(setup().ring_address, ring_bytes, "ring"));
    const uint64_t at = read_ % ring_bytes;
    const uint32_t header = ring[at / 4], op = header & 0xffff;
    const char* name = name_of(op);
    if (!name) bad("unknown SDMA op {:#x}, sub-op {:#x}", op & 0xff, op >> 8);
    const uint32_t bytes = dwords_of(op) * 4;
    if (bytes > *end - read_) bad("{} of {} bytes, {} are announced", name, bytes, *end - read_);
    if (at + bytes > ring_bytes) bad("{} straddles the end of the ring", name);
    packet_ = Packet{name, setup().ring_address + at, {ring + at / 4, ring + (at + bytes) / 4}};
    read_ += bytes;
    return true;
  }

  bool execute(const Packet& p) {  // false: it waits
    const uint32_t op = p[0] & 0xffff;
    if (op == sdma::COPY_LINEAR) return start_copy(p);
    if (op == sdma::POLL_REGMEM) return poll(p);
    if (!idle_copies()) return false;
    switch (op) {
      case sdma::NOP: p.only(0, 0); break;
      case sdma::FENCE: fence(p); break;
      case sdma::TRAP:
        p.only(0, 0xffff);
        chip_.events.interrupt(chip_.index, p.only(1, 0xfffffff));
        break;
      case sdma::TIMESTAMP_GET_GLOBAL: timestamp(p); break;
      case sdma::GCR_USER: caches(p); break;
    }
    return true;
  }

  bool start_copy(const Packet& p) {
    p.only(0, 0xffff);
    p.is(2, 0, "parameters");
    if (!can_copy()) return false;
    copy(p.name, p.target(5, 1), p.target(3, 1), uint64_t(p.only(1, 0x3fffffff)) + 1);
    return true;
  }

  void fence(const Packet& p) {
    p.only(0, 0xffff | 7u << 16);
    if (p[0] >> 16 != 3) bad("FENCE with MTYPE {}: only uncached", p[0] >> 16);
    Release r;
    r.packet = p.name;
    r.data = Release::Data::Word;
    r.address = p.target(1, 4);
    r.value = p[3];
    store(r);
  }

  void timestamp(const Packet& p) {
    p.only(0, 0xffff);
    Release r;
    r.packet = p.name;
    r.data = Release::Data::Clock;
    r.address = p.target(1, kTimestampBytes);
    store(r);
  }

  bool poll(const Packet& p) {
    if (!(p[0] >> 31)) {
      p.only(0, 0xffff);
      const bool flush = p[1] == 0 && p[2] == 1u << 31 && p[3] == 0 && p[4] == 0 && p[5] == 0;
      if (!flush) bad("POLL_REGMEM of a register, and not in the form that flushes HDP");
      chip_.caches.flush_hdp();
      return true;
    }
    p.only(0, 0xffff | 0xfu << 28);
    const uint32_t function = p[0] >> 28 & 7, tail = p.only(5, 0xfffffff);
    if (function == 7) bad("POLL_REGMEM: function 7");
    if (tail >> 16 != 0xfff) bad("POLL_REGMEM gives up after {} attempts", tail >> 16);
    return wait({p.target(1, 4), function, p[3], p[4]});
  }

  void caches(const Packet& p) {
    p.only(0, 0xffff);
    for (const size_t i : {1, 3, 4}) p.is(i, 0, "a range, a VMID or an upper GCR bit");
    p.only(2, 0xffff0000);
    acquire(gcr_actions(p, p[2] >> 16));
  }

  std::optional<Packet> packet_;
  uint64_t read_ = 0;
};

}  // namespace

std::unique_ptr<Queue> make_sdma_queue(Chip& chip, const QueueSetup& setup) {
  return std::make_unique<SdmaQueue>(chip, setup);
}

}  // namespace tuff::emu::amd

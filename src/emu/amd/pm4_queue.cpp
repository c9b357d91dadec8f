// A compute queue whose ring holds PM4. Its pointers count dwords; the doorbell's counts on, the
// read pointer wraps with the ring (CP_HQD_PQ_RPTR).
#include <cstring>

#include "emu/amd/pm4.h"

namespace tuff::emu::amd {
namespace {

class Pm4Ring : public Pm4Queue {
 public:
  Pm4Ring(Chip& chip, const QueueSetup& setup)
      : Pm4Queue(chip, setup), dwords_(setup.ring_bytes / 4) {}

 protected:
  bool take() override {
    if (in_buffer()) return take_from_buffer() && after();
    if (!packet_ && !fetch()) return false;
    return go_on(false) && after();
  }

 private:
  // The pointer moves on once a packet of the ring, and what it has called, is done.
  bool after() {
    if (!packet_ && !in_buffer()) publish_read_pointer(read_ % dwords_, 4);
    return true;
  }

  bool fetch() {
    const std::optional<uint64_t> end = announced(read_);
    if (!end || !may_take()) return false;
    if (*end < read_ || *end - read_ > dwords_) {
      bad("the doorbell says {} dwords, {} have been read, the ring has {}", *end, read_, dwords_);
    }
    const auto* ring =
        reinterpret_cast<const uint32_t*>(peek(setup().ring_address, setup().ring_bytes, "ring"));
    const uint32_t size = dwords_of(ring[read_ % dwords_]);
    if (size > *end - read_) bad("a packet of {} dwords, {} are announced", size, *end - read_);
    std::vector<uint32_t> dwords(size);
    for (uint32_t i = 0; i < size; ++i) dwords[i] = ring[(read_ + i) % dwords_];
    packet_ = parse(setup().ring_address + read_ % dwords_ * 4, dwords);
    read_ += size;
    return true;
  }

  const uint64_t dwords_;
  uint64_t read_ = 0;
};

}  // namespace

std::unique_ptr<Queue> make_pm4_queue(Chip& chip, const QueueSetup& setup) {
  return std::make_unique<Pm4Ring>(chip, setup);
}

}  // namespace tuff::emu::amd

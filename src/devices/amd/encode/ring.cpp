#include "devices/amd/encode/ring.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "base/check.h"
#include "devices/amd/encode/packets.h"

namespace tuff::devices::amd {
namespace {

// Pointers of PM4 queues count dwords, those of SDMA bytes, those of AQL packets: so many steps of
// a pointer are so many dwords.
struct PointerUnit {
  uint32_t steps, dwords;
};
constexpr PointerUnit unit_of(QueueType type) {
  constexpr PointerUnit kUnits[] = {{1, 1}, {sizeof(uint32_t), 1}, {1, aql::kPacketDwords}};
  return kUnits[size_t(type)];
}
// Least distance from the write to the read pointer: equal ones mean that nothing is in flight.
uint32_t granule(QueueType type) { return unit_of(type).dwords; }

}  // namespace

[[gnu::hot]]
void ring_doorbell(uint64_t* doorbell, uint64_t value) {
  // The GPU may fetch as soon as it sees this: what it fetches has to be there. A store, not an
  // exchange (seq_cst), which would read the register across the bus.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref(*doorbell).store(value, std::memory_order_release);
}

Ring::Ring(QueueType type, const RingMemory& memory) : type_(type), m_(memory) {
  TUFF_CHECK(std::has_single_bit(m_.dword_count) && m_.dword_count >= 2 * granule(type),
             "ring of {} dwords", m_.dword_count);
  if (type_ != QueueType::Aql) return;
  for (uint32_t i = 0; i < m_.dword_count; i += aql::kPacketDwords) m_.dwords[i] = aql::INVALID;
}

[[gnu::hot]]
uint32_t Ring::in_flight() const {
  auto* pointer = const_cast<uint64_t*>(m_.read_pointer);
  const auto [steps, dwords] = unit_of(type_);
  const uint64_t read =
      std::atomic_ref(*pointer).load(std::memory_order_acquire) / steps * dwords;
  return uint32_t(write_ - read) & (m_.dword_count - 1);
}

bool Ring::fits(uint32_t dwords) const {
  return in_flight() + dwords + granule(type_) <= m_.dword_count;
}

[[gnu::hot]]
void Ring::copy(std::span<const uint32_t> unit) {
  uint32_t* to = m_.dwords + (write_ & (m_.dword_count - 1));
  std::copy(unit.begin() + 1, unit.end(), to + 1);
  // An AQL packet is valid once its header is.
  std::atomic_ref(to[0]).store(unit[0], std::memory_order_release);
  write_ += unit.size();
}

void Ring::fill(uint32_t dwords) {
  uint32_t* to = m_.dwords + (write_ & (m_.dword_count - 1));
  std::fill_n(to, dwords, 0u);  // of SDMA each is a NOP, of PM4 the body of one
  if (type_ == QueueType::Pm4 && dwords > 0) {
    to[0] = dwords == 1 ? pm4::kNopDword : pm4::header(pm4::NOP, dwords - 1);
  }
  write_ += dwords;
}

[[gnu::hot]]
size_t Ring::push(const PacketStream& stream, std::span<const uint32_t> dwords, size_t first) {
  TUFF_CHECK(dwords.size() == stream.dwords.size(), "{} dwords of {}", dwords.size(),
             stream.dwords.size());
  auto guard =
      std::lower_bound(stream.guards.begin(), stream.guards.end(), first,
                       [](const PacketStream::Guard& g, size_t unit) { return g.unit < unit; });
  for (size_t i = first; i < stream.units.size(); ++i) {
    bool left_out = false;
    for (; guard != stream.guards.end() && guard->unit == i; ++guard)
      left_out |= dwords[guard->dword] == 0;
    if (left_out) continue;
    const size_t begin = stream.units[i];
    const size_t end = i + 1 < stream.units.size() ? stream.units[i + 1] : dwords.size();
    const uint32_t size = uint32_t(end - begin);
    if (2 * size > m_.dword_count) {
      fail<InvalidArgument>("a packet of {} dwords in a ring of {}", size, m_.dword_count);
    }
    const uint32_t to_end = m_.dword_count - uint32_t(write_ & (m_.dword_count - 1));
    const uint32_t filler = size > to_end ? to_end : 0;
    if (!fits(filler + size)) return i;
    fill(filler);
    copy(dwords.subspan(begin, size));
  }
  return stream.units.size();
}

[[gnu::hot]]
void Ring::commit() {
  if (write_ == committed_) return;
  committed_ = write_;
  const auto [steps, dwords] = unit_of(type_);
  const uint64_t pointer = write_ / dwords * steps;
  std::atomic_ref(*m_.write_pointer).store(pointer, std::memory_order_release);
  ring_doorbell(m_.doorbell, type_ == QueueType::Aql ? pointer - 1 : pointer);
}

}  // namespace tuff::devices::amd

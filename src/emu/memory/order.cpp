#include "emu/memory/order.h"

namespace tuff::emu {

void join(PeerClock& clock, const PeerClock& other) {
  for (size_t gpu = 0; gpu < clock.size(); ++gpu) {
    for (uint32_t i = 0; i < kSlots; ++i)
      clock[gpu][i] = std::max(clock[gpu][i], other[gpu][i]);
  }
}

Order Order::meet(const Order& a, const Order& b) {
  Order out;
  for (uint32_t i = 0; i < kSlots; ++i) out.upto_[i] = std::min(a.upto_[i], b.upto_[i]);
  if (!a.peers_ || !b.peers_) return out;
  PeerClock both = *a.peers_;
  for (size_t gpu = 0; gpu < both.size(); ++gpu) {
    for (uint32_t i = 0; i < kSlots; ++i)
      both[gpu][i] = std::min(both[gpu][i], (*b.peers_)[gpu][i]);
  }
  out.peers_ = std::make_shared<const PeerClock>(std::move(both));
  return out;
}

PeerClock Order::clock(uint32_t gpu, size_t gpus, uint64_t restarts) const {
  PeerClock out = peers_ ? *peers_ : PeerClock(gpus);
  for (uint32_t i = 0; i < kSlots; ++i) out[gpu][i] = peer_serial(restarts, upto_[i]);
  return out;
}

// What ended before the numbers began again needs no remembering.
void Order::learn(const PeerClock& clock, uint32_t gpu, uint64_t restarts) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    const uint64_t serial = clock[gpu][i];
    if (serial >> kSerialBits == restarts)
      upto_[i] = std::max(upto_[i], uint32_t(serial - peer_serial(restarts, 0)));
  }
  join_peers(clock);
}

void Order::join_peers(const PeerClock& clock) {
  PeerClock joined = clock;
  if (peers_) emu::join(joined, *peers_);
  peers_ = std::make_shared<const PeerClock>(std::move(joined));
}

}  // namespace tuff::emu

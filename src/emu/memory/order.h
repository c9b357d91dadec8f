// What comes before what: a vector clock over the queues of one GPU. Every piece of work that
// touches memory is an operation with an id; an Order says which of them are known to have ended.
// Kept by queues, carried by signals, asked by caches.h at every access.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tuff::emu {

// A serial number that rises with every operation of a GPU, and the slot of its issuer: a queue has
// one each for its kernels, its copies and its engine, since those end independently. 0: none.
using OpId = uint32_t;
inline constexpr uint32_t kSlotBits = 6, kSlots = 1u << kSlotBits, kSerialBits = 22;
constexpr OpId op_id(uint32_t serial, uint32_t slot) { return serial << kSlotBits | slot; }
constexpr uint32_t slot_of(OpId op) { return op & (kSlots - 1); }
constexpr uint32_t serial_of(OpId op) { return op >> kSlotBits; }

// What is known of the operations of all GPUs of a machine, by GPU and slot: serial numbers that
// do not start again, see peer_serial().
using PeerClock = std::vector<std::array<uint64_t, kSlots>>;
constexpr uint64_t peer_serial(uint64_t restarts, uint32_t serial) {
  return restarts << kSerialBits | serial;
}
void join(PeerClock& clock, const PeerClock& other);

class Order {
 public:
  bool knows(OpId op) const { return upto_[slot_of(op)] >= serial_of(op); }
  // This one and all of its slot before it.
  void add(OpId op) { upto_[slot_of(op)] = std::max(upto_[slot_of(op)], serial_of(op)); }
  void join(const Order& other) {
    for (uint32_t i = 0; i < kSlots; ++i) upto_[i] = std::max(upto_[i], other.upto_[i]);
    if (other.peers_ && other.peers_ != peers_) join_peers(*other.peers_);
  }
  // What both know.
  static Order meet(const Order& a, const Order& b);
  // The GPU's serial numbers start again; those of others do not.
  void restart() { upto_ = {}; }

  // Of another GPU: whether that operation is known to have ended.
  bool knows_of_peer(uint32_t gpu, uint32_t slot, uint64_t serial) const {
    return peers_ && (*peers_)[gpu][slot] >= serial;
  }
  // As others take it from a queue of `gpu`, of `gpus`, and back.
  PeerClock clock(uint32_t gpu, size_t gpus, uint64_t restarts) const;
  void learn(const PeerClock& clock, uint32_t gpu, uint64_t restarts);

 private:
  void join_peers(const PeerClock& clock);
  std::array<uint32_t, kSlots> upto_{};
  std::shared_ptr<const PeerClock> peers_;  // null: nothing is known of others
};

// The last time that a queue invalidated a cache: what had ended by then is read afresh since.
struct Invalidation {
  Order seen;
  uint32_t time = 0;  // serial number
  // For a cache behind another: what both were invalidated after.
  static Invalidation both(const Invalidation& a, const Invalidation& b) {
    return {Order::meet(a.seen, b.seen), std::min(a.time, b.time)};
  }
};

// Who accesses memory, and what it may rely on.
struct Accessor {
  OpId op = 0;
  uint32_t queue = 0;
  std::string name;                   // "kernel `add`", "DMA_DATA"
  Order ended;                        // before it began
  Invalidation vector, scalar, code;  // of L0, K and I, each with the L1 behind them
};

}  // namespace tuff::emu

// Ring: packets on their way to a hardware queue. What the GPU has not read yet is never
// overwritten, whole packets never straddle the end, and one function rings the doorbell.
// Used by the queues of devices/amd, under their lock. Knows three queue types by their units and
// fillers; the memory may be a GPU's or a test's.
#pragma once

#include <cstdint>
#include <span>

#include "devices/packet_stream.h"

namespace tuff::devices::amd {

enum class QueueType : uint8_t { Pm4, Sdma, Aql };

// What CREATE_QUEUE was given and gave.
struct RingMemory {
  uint32_t* dwords = nullptr;
  uint32_t dword_count = 0;  // a power of two
  // Written by the GPU, in the queue's unit; PM4's may count on or wrap at the ring's size.
  const uint64_t* read_pointer = nullptr;
  uint64_t* write_pointer = nullptr;
  uint64_t* doorbell = nullptr;
};

// The one place where a doorbell is written.
void ring_doorbell(uint64_t* doorbell, uint64_t value);

class Ring {
 public:
  Ring(QueueType type, const RingMemory& memory);
  // Copies units of `stream`, from unit `first` on, as far as there is room and without those that
  // are left out (PacketStream::guards); returns the first unit
  // that is left, stream.units.size() if none is. Nothing is seen by the GPU before commit(). A
  // unit that could never fit throws InvalidArgument.
  size_t push(const PacketStream& stream, std::span<const uint32_t> dwords, size_t first = 0);
  // Asks for the memory that a push and its commit come to; waits for nothing.
  void prefetch() const {
    __builtin_prefetch(m_.dwords + (write_ & (m_.dword_count - 1)), 1);
    __builtin_prefetch(m_.read_pointer);
    __builtin_prefetch(m_.write_pointer, 1);
    __builtin_prefetch(m_.doorbell, 1);
  }
  // Publishes what was pushed: the write pointer, then the doorbell.
  void commit();
  bool drained() const { return in_flight() == 0; }

 private:
  uint32_t in_flight() const;  // dwords
  bool fits(uint32_t dwords) const;
  void fill(uint32_t dwords);
  void copy(std::span<const uint32_t> unit);
  QueueType type_;
  RingMemory m_;
  uint64_t write_ = 0;      // in dwords, counted on
  uint64_t committed_ = 0;  // likewise
};

}  // namespace tuff::devices::amd

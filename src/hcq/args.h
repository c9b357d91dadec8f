// ArgRing: argument blocks for commands that run once, from a retirement-tracked ring.
// Used by engine's eager path. A block is not reused before its timeline value has passed.
#pragma once

#include <cstdint>
#include <vector>

#include "hcq/device.h"

namespace tuff::hcq {

// Argument memory, with a host-visible twin where it has no host pointer.
struct ArgMemory {
  Span device, staged;
  ArgMemory() = default;
  ArgMemory(Device& on, size_t size_bytes);
  const Span& writable() const { return staged ? staged : device; }
  void free(Device& on, uint64_t last_use = 0);  // of the compute queue
};

class ArgRing {
 public:
  explicit ArgRing(Device& device, size_t size_bytes = 1 << 20);
  ~ArgRing();
  // Host-writable block, valid until the value later given to retire() has passed. Where Args
  // memory has no host pointer the list gets a copy at its head: see flush().
  Span allocate(size_t size_bytes);
  std::byte* host(const Span& block);
  // Appends the copies that bring staged blocks allocated since the last retire() to the device;
  // put before the kernels that use them. Nothing where Args memory is host-visible.
  void flush(CommandList& list);
  void retire(uint64_t timeline_value);

 private:
  // One fills while the others drain. A batch that outgrows the ring before its retire() adds one,
  // since nothing could be waited for.
  struct Segment : ArgMemory {
    using ArgMemory::ArgMemory;
    size_t used = 0, flushed = 0;
    uint64_t value = 0;  // last use on the timeline
    bool open = false;   // holds blocks allocated since the last retire()
  };
  Segment& add_segment();
  Segment& next_segment();
  Device& device_;
  size_t segment_bytes_;
  std::vector<Segment> segments_;
  size_t current_ = 0;
};

}  // namespace tuff::hcq

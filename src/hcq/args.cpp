#include "hcq/args.h"

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"
#include "hcq/launch.h"

namespace tuff::hcq {
namespace {
constexpr size_t kBlockAlignment = 64;
constexpr size_t kSegments = 4;
}  // namespace

ArgMemory::ArgMemory(Device& on, size_t size_bytes)
    : device(on.allocator().allocate(size_bytes, MemoryKind::Args)) {
  if (device.host() == nullptr)
    staged = on.allocator().allocate(size_bytes, MemoryKind::Upload);
}

void ArgMemory::free(Device& on, uint64_t last_use) {
  for (const Span& s : {device, staged}) on.allocator().free(s, on.compute_queue(), last_use);
}

// The ring is made of segments: one fills while the others drain. A batch that outgrows the ring
// before its retire() adds a segment, since nothing could be waited for.
struct ArgRing::State {
  struct Segment : ArgMemory {
    using ArgMemory::ArgMemory;
    size_t used = 0, flushed = 0;
    uint64_t value = 0;  // last use on the timeline
    bool open = false;   // holds blocks allocated since the last retire()
  };
  Device& device;
  size_t segment_bytes;
  std::vector<Segment> segments;
  size_t current = 0;

  Segment& add_segment() {
    current = segments.size();
    return segments.emplace_back(device, segment_bytes);
  }
  Segment& next_segment() {
    Queue& queue = device.compute_queue();
    for (size_t step = 1; step <= segments.size(); ++step) {
      size_t i = (current + step) % segments.size();
      Segment& s = segments[i];
      if (s.open) continue;
      if (segments.size() < kSegments && !queue.passed(s.value)) continue;
      queue.wait(s.value);  // the oldest one comes first in ring order
      s.used = s.flushed = 0;
      current = i;
      return s;
    }
    return add_segment();
  }
};

ArgRing::ArgRing(Device& device, size_t size_bytes)
    : state_(std::make_unique<State>(
          State{device, std::max<size_t>(size_bytes / kSegments, 4096), {}, 0})) {}

ArgRing::~ArgRing() {
  for (auto& s : state_->segments) s.free(state_->device, s.value);
}

Span ArgRing::allocate(size_t size_bytes) {
  State& s = *state_;
  const size_t rounded = align_up(std::max<size_t>(size_bytes, 1), kBlockAlignment);
  if (rounded > s.segment_bytes)
    fail<InvalidArgument>("argument block of {} bytes; the ring takes up to {}", size_bytes,
                          s.segment_bytes);
  State::Segment* segment = s.segments.empty() ? &s.add_segment() : &s.segments[s.current];
  if (segment->used + rounded > s.segment_bytes) segment = &s.next_segment();
  Span block = segment->device.sub(segment->used, size_bytes);
  segment->used += rounded;
  segment->open = true;
  return block;
}

std::byte* ArgRing::host(const Span& block) {
  if (block.host() != nullptr) return block.host();
  for (auto& s : state_->segments) {
    bool inside = s.device.block == block.block && block.offset >= s.device.offset &&
                  block.offset < s.device.offset + s.device.size_bytes;
    if (inside) return s.staged.host() + (block.offset - s.device.offset);
  }
  TUFF_CHECK(false, "a span that is no block of this ring");
  return nullptr;
}

void ArgRing::flush(CommandList& list) {
  for (auto& s : state_->segments) {
    if (!s.staged || s.flushed == s.used) continue;
    Span dst = s.device.sub(s.flushed, s.used - s.flushed);
    Span src = s.staged.sub(s.flushed, s.used - s.flushed);
    list.commands.push_back(copy_command(dst, src, "arguments"));
    s.flushed = s.used;
  }
}

void ArgRing::retire(uint64_t timeline_value) {
  for (auto& s : state_->segments) {
    if (!s.open) continue;
    s.value = std::max(s.value, timeline_value);
    s.open = false;
  }
}

}  // namespace tuff::hcq

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
  for (const Span& s : {device, staged}) on.allocator().free(s, {&on.compute_queue(), last_use});
}

ArgRing::ArgRing(Device& device, size_t size_bytes)
    : device_(device), segment_bytes_(std::max<size_t>(size_bytes / kSegments, 4096)) {}

ArgRing::~ArgRing() {
  for (Segment& s : segments_) s.free(device_, s.value);
}

ArgRing::Segment& ArgRing::add_segment() {
  current_ = segments_.size();
  return segments_.emplace_back(device_, segment_bytes_);
}

ArgRing::Segment& ArgRing::next_segment() {
  Queue& queue = device_.compute_queue();
  for (size_t step = 1; step <= segments_.size(); ++step) {
    size_t i = (current_ + step) % segments_.size();
    Segment& s = segments_[i];
    if (s.open) continue;
    if (segments_.size() < kSegments && !queue.passed(s.value)) continue;
    queue.wait(s.value);  // the oldest one comes first in ring order
    s.used = s.flushed = 0;
    current_ = i;
    return s;
  }
  return add_segment();
}

Span ArgRing::allocate(size_t size_bytes) {
  const size_t rounded = align_up(std::max<size_t>(size_bytes, 1), kBlockAlignment);
  if (rounded > segment_bytes_)
    fail<InvalidArgument>("argument block of {} bytes; the ring takes up to {}", size_bytes,
                          segment_bytes_);
  Segment* segment = segments_.empty() ? &add_segment() : &segments_[current_];
  if (segment->used + rounded > segment_bytes_) segment = &next_segment();
  Span block = segment->device.sub(segment->used, size_bytes);
  segment->used += rounded;
  segment->open = true;
  return block;
}

std::byte* ArgRing::host(const Span& block) {
  if (block.host() != nullptr) return block.host();
  for (Segment& s : segments_) {
    bool inside = s.device.block == block.block && block.offset >= s.device.offset &&
                  block.offset < s.device.offset + s.device.size_bytes;
    if (inside) return s.staged.host() + (block.offset - s.device.offset);
  }
  TUFF_CHECK(false, "a span that is no block of this ring");
  return nullptr;
}

void ArgRing::flush(CommandList& list) {
  for (Segment& s : segments_) {
    if (!s.staged || s.flushed == s.used) continue;
    Span dst = s.device.sub(s.flushed, s.used - s.flushed);
    Span src = s.staged.sub(s.flushed, s.used - s.flushed);
    list.commands.push_back(copy_command(dst, src, "arguments"));
    s.flushed = s.used;
  }
}

void ArgRing::retire(uint64_t timeline_value) {
  for (Segment& s : segments_) {
    if (!s.open) continue;
    s.value = std::max(s.value, timeline_value);
    s.open = false;
  }
}

}  // namespace tuff::hcq

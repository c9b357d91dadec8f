#include "engine/realize/call_bytes.h"

#include <algorithm>

namespace tuff::engine {

void ByteSet::add(const Buffer& b) {
  Range all{b.byte_offset(), b.byte_offset() + b.size_bytes()};
  std::vector<Range>& ranges = of_root_[b.root().id];
  std::erase_if(ranges, [&](const Range& r) {
    if (r.end < all.begin || all.end < r.begin) return false;
    all = {std::min(r.begin, all.begin), std::max(r.end, all.end)};
    return true;
  });
  ranges.push_back(all);
}

void ByteSet::remove(const Buffer& b) {
  const auto of_root = of_root_.find(b.root().id);
  if (of_root == of_root_.end()) return;
  const uint64_t begin = b.byte_offset(), end = begin + b.size_bytes();
  std::vector<Range> left;
  for (const Range& r : of_root->second) {
    if (r.begin < begin) left.push_back({r.begin, std::min(r.end, begin)});
    if (end < r.end) left.push_back({std::max(r.begin, end), r.end});
  }
  of_root->second = std::move(left);
}

bool ByteSet::holds(const Buffer& b) const {
  const auto of_root = of_root_.find(b.root().id);
  const uint64_t begin = b.byte_offset(), end = begin + b.size_bytes();
  return of_root != of_root_.end() && std::ranges::any_of(of_root->second, [&](const Range& r) {
           return r.begin <= begin && end <= r.end;
         });
}

bool ByteSet::overlaps(const Buffer& b) const {
  const auto of_root = of_root_.find(b.root().id);
  const uint64_t begin = b.byte_offset(), end = begin + b.size_bytes();
  return of_root != of_root_.end() && std::ranges::any_of(of_root->second, [&](const Range& r) {
           return r.begin < end && begin < r.end;
         });
}

void CapturedBytes::add(const BoundCall& call) {
  bool varies = false;
  each_buffer(call, [&](const Ref<Buffer>& b, bool read, bool) {
    if (!read) return;
    varies = varies || vary(*b);
    if (!written_.holds(*b)) found_.add(*b);
  });
  each_buffer(call, [&](const Ref<Buffer>& b, bool, bool written) {
    if (!written) return;
    written_.add(*b);
    // What a call reads and writes keeps what it did not write.
    varies ? varying_.add(*b) : varying_.remove(*b);
  });
}

}  // namespace tuff::engine

// What a run of bound calls does to memory, byte by byte: which bytes it has written, which of them
// depend on memory that was there before it. Used by Capture, for what may be read on the host, and
// by CapturedGraph, for what a replay reads of others. Knows no tensors.
#pragma once

#include <map>
#include <vector>

#include "engine/realize/linear.h"

namespace tuff::engine {

// A set of bytes of allocations, to which those of Buffers are added, or taken out.
class ByteSet {
 public:
  void add(const Buffer& b);
  void remove(const Buffer& b);
  bool holds(const Buffer& b) const;  // all of its bytes
  bool overlaps(const Buffer& b) const;

 private:
  struct Range {
    uint64_t begin, end;
  };
  std::map<uint64_t, std::vector<Range>> of_root_;  // apart from one another
};

// Calls visit(buffer, read, written) for each buffer of a call.
template <class Visit>
void each_buffer(const BoundCall& c, const Visit& visit) {
  if (auto* k = std::get_if<BoundKernel>(&c)) {
    for (size_t i = 0; i < k->buffers.size(); i++)
      visit(k->buffers[i], k->kernel->buffers[i].read, k->kernel->buffers[i].written);
  } else {
    visit(std::get<BoundCopy>(c).src, true, false);
    visit(std::get<BoundCopy>(c).dst, false, true);
  }
}

// The bytes that calls touch, as far as a capture has come. Memory made up to `last_before` (a
// storage id) was there before.
class CapturedBytes {
 public:
  explicit CapturedBytes(uint64_t last_before) : last_before_(last_before) {}
  void add(const BoundCall& call);
  bool was_there_before(const Buffer& b) const { return b.root().id <= last_before_; }
  // Its contents may be others at the next replay: they are of before, or computed of that.
  bool vary(const Buffer& b) const { return was_there_before(b) || varying_.overlaps(b); }
  // A call has written all of b, and none has read any of its memory that was not written yet: that
  // may be other memory at each replay.
  bool made_anew(const Buffer& b) const { return written_.holds(b) && !found_.overlaps(b.root()); }
  bool written(const Buffer& b) const { return written_.overlaps(b); }
  // By any call so far.
  bool touched(const Buffer& b) const { return written_.overlaps(b) || found_.overlaps(b); }

 private:
  uint64_t last_before_;
  ByteSet written_;
  ByteSet found_;    // read before they were written
  ByteSet varying_;  // of memory made since
};

}  // namespace tuff::engine

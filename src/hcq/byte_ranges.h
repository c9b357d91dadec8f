// ByteRanges: a value for each byte that a list of commands touches, kept as ranges per block.
// Used by what arranges commands by their accesses. Knows nothing of commands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>

#include "hcq/memory.h"

namespace tuff::hcq {

template <class Value>
class ByteRanges {
 public:
  // f(Value&) for the ranges that make up the span; untouched ones are Value{}.
  template <class F>
  void each(const Span& s, F&& f) {
    if (s.size_bytes == 0) return;
    Ranges& ranges = blocks_[s.block];
    const size_t end = s.offset + s.size_bytes;
    split(ranges, s.offset);
    split(ranges, end);
    for (size_t at = s.offset; at < end;) {
      auto it = ranges.lower_bound(at);
      if (it == ranges.end() || it->first > at)
        it = ranges.emplace_hint(it, at,
                                 Range{it == ranges.end() ? end : std::min(end, it->first), {}});
      f(it->second.value);
      at = it->second.end;
    }
  }
  void clear() { blocks_.clear(); }

 private:
  struct Range {
    size_t end;
    Value value;
  };
  using Ranges = std::map<size_t, Range>;  // by their beginning, side by side

  static void split(Ranges& ranges, size_t at) {
    auto it = ranges.upper_bound(at);
    if (it == ranges.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Range right = it->second;
    it->second.end = at;
    ranges.emplace(at, std::move(right));
  }

  std::unordered_map<const MemoryBlock*, Ranges> blocks_;
};

}  // namespace tuff::hcq

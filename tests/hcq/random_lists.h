// Random lists of dispatches over a few small blocks, and what conflicts. For the tests of how
// lists are arranged.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "hcq/command.h"

namespace tuff::hcq::test {

inline bool conflict(const Command& a, const Command& b) {
  for (const Access& x : a.accesses)
    for (const Access& y : b.accesses) {
      bool overlap = x.span.block == y.span.block &&
                     x.span.offset < y.span.offset + y.span.size_bytes &&
                     y.span.offset < x.span.offset + x.span.size_bytes;
      if (overlap && (x.write || y.write)) return true;
    }
  return false;
}

inline CommandList random_list(std::mt19937& rng, const std::vector<MemoryBlock>& blocks,
                               size_t count) {
  CommandList list;
  for (size_t i = 0; i < count; ++i) {
    Command c;
    c.body = DispatchCmd{};
    c.label = std::to_string(i);
    for (size_t a = 1 + rng() % 4; a-- > 0;) {
      size_t size = 1 + rng() % 12, offset = rng() % (60 - size);
      c.accesses.push_back({{&blocks[rng() % blocks.size()], offset, size}, rng() % 3 == 0});
    }
    list.commands.push_back(std::move(c));
  }
  return list;
}

}  // namespace tuff::hcq::test

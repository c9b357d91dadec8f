#include "sched/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/arith.h"

namespace tuff::sched {
namespace {

struct Block {
  uint64_t begin, end;
};

uint64_t aligned(uint64_t v) { return align_up(v, kArenaAlignment); }

// The smallest gap that holds `size`, or the end of the last block.
uint64_t best_fit(std::vector<Block>& busy, uint64_t size) {
  std::sort(busy.begin(), busy.end(),
            [](const Block& a, const Block& b) { return a.begin < b.begin; });
  uint64_t end = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
  for (const Block& b : busy) {
    if (b.begin >= end && b.begin - end >= size && b.begin - end < best_gap) {
      best = end;
      best_gap = b.begin - end;
    }
    end = std::max(end, b.end);
  }
  return best == UINT64_MAX ? end : best;
}

}  // namespace

Packing pack(std::span<const Lifetime> lifetimes) {
  Packing out;
  out.offsets.assign(lifetimes.size(), 0);
  std::vector<uint32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return lifetimes[a].size_bytes > lifetimes[b].size_bytes;
  });
  std::vector<uint32_t> placed;
  std::vector<Block> busy;
  for (uint32_t i : order) {
    const Lifetime& l = lifetimes[i];
    const uint64_t size = aligned(l.size_bytes);
    busy.clear();
    for (uint32_t p : placed) {
      const Lifetime& o = lifetimes[p];
      if (o.last < l.first || l.last < o.first) continue;
      busy.push_back({out.offsets[p], out.offsets[p] + aligned(o.size_bytes)});
    }
    out.offsets[i] = best_fit(busy, size);
    out.size_bytes = std::max(out.size_bytes, out.offsets[i] + size);
    placed.push_back(i);
  }
  return out;
}

}  // namespace tuff::sched

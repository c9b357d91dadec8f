#include "sched/order.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace tuff::sched {
namespace {

std::vector<uint32_t> depth_first(std::span<const OrderNode> calls,
                                  std::span<const uint32_t> required) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(calls.size(), kNew);
  std::vector<uint32_t> order;
  std::vector<std::pair<uint32_t, uint32_t>> stack;
  for (uint32_t r : required) {
    if (state[r] == kNew) stack.push_back({r, 0});
    while (!stack.empty()) {
      auto& [c, next] = stack.back();
      if (state[c] == kNew) state[c] = kOpen;
      if (next < calls[c].after.size()) {
        const uint32_t d = calls[c].after[next++];
        TUFF_CHECK(state[d] != kOpen, "calls {} and {} wait for each other", c, d);
        if (state[d] == kNew) stack.push_back({d, 0});
      } else {
        state[c] = kDone;
        order.push_back(c);
        stack.pop_back();
      }
    }
  }
  return order;
}

// Remaining readers per slot: a slot is free after its last.
struct Liveness {
  std::span<const OrderNode> calls;
  std::span<const uint64_t> sizes;
  std::vector<uint32_t> readers;

  Liveness(std::span<const OrderNode> c, std::span<const uint32_t> order,
           std::span<const uint64_t> s)
      : calls(c), sizes(s), readers(s.size(), 0) {
    for (uint32_t i : order) {
      for (uint32_t u : calls[i].uses) readers[u]++;
    }
  }
  int64_t made(uint32_t c) const {
    int64_t bytes = 0;
    for (uint32_t m : calls[c].makes) bytes += int64_t(sizes[m]);
    return bytes;
  }
  int64_t freed(uint32_t c) const {
    int64_t bytes = 0;
    for (uint32_t u : calls[c].uses) bytes += readers[u] == 1 ? int64_t(sizes[u]) : 0;
    return bytes;
  }
  void run(uint32_t c) {
    for (uint32_t u : calls[c].uses) readers[u]--;
  }
};

int64_t peak_bytes(std::span<const OrderNode> calls, std::span<const uint32_t> order,
                   std::span<const uint64_t> sizes) {
  Liveness live(calls, order, sizes);
  int64_t now = 0, peak = 0;
  for (uint32_t c : order) {
    now += live.made(c);
    peak = std::max(peak, now);
    now -= live.freed(c);
    live.run(c);
  }
  return peak;
}

// Among the calls that are ready: first any that frees at least what it makes, else the earliest of
// the depth-first order.
std::vector<uint32_t> greedy(std::span<const OrderNode> calls, std::span<const uint32_t> base,
                             std::span<const uint64_t> sizes) {
  std::vector<uint32_t> rank(calls.size()), waiting(calls.size());
  std::vector<std::vector<uint32_t>> next(calls.size());
  for (uint32_t i = 0; i < base.size(); i++) rank[base[i]] = i;
  std::set<uint32_t> ready;
  for (uint32_t c : base) {
    waiting[c] = uint32_t(calls[c].after.size());
    for (uint32_t a : calls[c].after) next[a].push_back(c);
    if (!waiting[c]) ready.insert(rank[c]);
  }
  Liveness live(calls, base, sizes);
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    auto pick = ready.begin();
    for (auto it = ready.begin(); it != ready.end(); ++it) {
      if (live.freed(base[*it]) >= live.made(base[*it])) {
        pick = it;
        break;
      }
    }
    const uint32_t c = base[*pick];
    ready.erase(pick);
    live.run(c);
    order.push_back(c);
    for (uint32_t n : next[c]) {
      if (--waiting[n] == 0) ready.insert(rank[n]);
    }
  }
  return order;
}

}  // namespace

std::vector<uint32_t> order_calls(std::span<const OrderNode> calls,
                                  std::span<const uint32_t> required,
                                  std::span<const uint64_t> sizes) {
  std::vector<uint32_t> base = depth_first(calls, required);
  std::vector<uint32_t> other = greedy(calls, base, sizes);
  return peak_bytes(calls, other, sizes) < peak_bytes(calls, base, sizes) ? other : base;
}

}  // namespace tuff::sched

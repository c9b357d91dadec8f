// What waits for what among calls of which some are being made one. Called by the passes that put
// kernels together. Knows memory by number, nothing of what calls compute.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/schedule.h"

namespace tuff::sched {

class CallSet {
 public:
  explicit CallSet(size_t n = 0) : words_((n + 63) / 64, 0) {}
  void add(size_t i) { words_[i / 64] |= uint64_t(1) << (i % 64); }
  void remove(size_t i) { words_[i / 64] &= ~(uint64_t(1) << (i % 64)); }
  bool has(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void unite(const CallSet& o);
  bool meets(const CallSet& o) const;

 private:
  std::vector<uint64_t> words_;
};

// Slots that a call reads and writes; what is updated in place is both.
struct CallAccess {
  std::vector<uint32_t> reads, writes;
};
CallAccess access_of(const Call& c);

class CallGraph {
 public:
  CallGraph() = default;
  // calls: in an order in which they may run. memory: by slot.
  CallGraph(std::span<const Call> calls, std::span<const uint32_t> memory);

  // Whether a call outside the members stands between them and c.
  bool separated(std::span<const uint32_t> members, uint32_t c) const;
  // Whether c waits for one of the members.
  bool waits(uint32_t c, std::span<const uint32_t> members) const;
  // From now on what waits for one member waits for all, and for all that they wait for.
  void contract(std::span<const uint32_t> members);
  // An order of the groups: head[c] stands for the group of c. Each comes after what its members
  // wait for, else as early as its head.
  std::vector<uint32_t> order(std::span<const uint32_t> head) const;

 private:
  std::vector<std::vector<uint32_t>> before_;
  std::vector<CallSet> ancestors_;
};

}  // namespace tuff::sched

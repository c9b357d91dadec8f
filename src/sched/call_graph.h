// What waits for what among calls of which some are being made one. Called by the passes that put
// kernels together. Knows memory by number, nothing of what calls compute.
#pragma once

#include <cstdint>
#include <map>
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

// By slot, the last of the calls that writes it.
std::map<uint32_t, uint32_t> writers_of(std::span<const Call> calls);

// By slot, a number that slots in the same allocation share. `memory`: for each Input slot in
// order.
std::vector<uint32_t> memory_by_slot(const Schedule& s, std::span<const uint32_t> memory);

// Fuses some calls of a schedule: gives those that take their place, in a new order. memory: by
// slot; slots may be added.
using FuseCalls = std::vector<Call> (*)(Schedule& s, std::span<const uint32_t> memory,
                                        const TargetOf& target_of, std::span<const Call> calls);
// Has a schedule's calls fused in windows, which bound what is kept of each: the calls it waits for.
// Slots that no call uses any more vanish. memory: as memory_by_slot() takes it.
void fuse_calls(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of,
                FuseCalls fuse);

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

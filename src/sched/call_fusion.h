// What the passes that put kernels of a schedule together have in common: which kernel each call is
// in, what waits for what, whose memory meets. Called by schedule(); base of the passes' classes.
// Must never know what kernels compute, nor when two of them are better as one.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sched/call_graph.h"
#include "sched/schedule.h"

namespace tuff::sched {

// Fuses some calls of a schedule: gives those that take their place, in a new order. memory: by
// slot; slots may be added.
using FuseCalls = std::vector<Call> (*)(Schedule& s, std::span<const uint32_t> memory,
                                        const TargetOf& target_of, std::span<const Call> calls);
// Has a schedule's calls fused in windows, which bound what is kept of each: what it waits for. Slots
// that no call uses any more vanish. memory: for each Input slot in order, a number that slots in
// the same allocation share.
void fuse_calls(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of,
                FuseCalls fuse);

// A kernel, or several made one.
struct SlotKernel {
  bool possible = false;      // it may become one with others
  std::vector<ir::UOp> ends;  // Params carry slots
  std::vector<uint32_t> calls, reads, writes;
  size_t nodes = 0;
};
// Of a Kernel call by its number; `possible` is for the pass to say.
SlotKernel slot_kernel(const Call& c, uint32_t number);

// Kernels that become one as they are, beside each other.
struct CallGroup {
  std::string device;
  std::vector<uint32_t> calls;
  std::set<uint32_t> slots;
  size_t nodes = 0;
};

class CallFusion {
 public:
  // memory: by slot.
  CallFusion(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of,
             std::span<const Call> calls);

 protected:
  const Target& target(uint32_t c) const { return target_of_(calls_[c].device); }
  // The kernel, of those before c, that stores a slot; empty: none does.
  std::optional<uint32_t> producer_of(uint32_t slot, uint32_t c) const;
  // Whether both lists of slots name some memory.
  bool meet(std::span<const uint32_t> a, std::span<const uint32_t> b) const;
  // What p stores c neither stores nor reads but by the same slot, and p nothing that c stores.
  bool keep_apart(const SlotKernel& p, const SlotKernel& c) const;
  // Whether c's device binds so many buffers.
  bool fits_buffers(uint32_t c, std::initializer_list<std::span<const uint32_t>> slots) const;
  bool fits_buffers(const CallGroup& g, const SlotKernel& k) const;
  // Whether anything but these calls reads a slot.
  bool is_needed(uint32_t slot, std::initializer_list<std::span<const uint32_t>> calls) const;
  // Calls of one kernel, which runs in the place of the last.
  void unite(std::span<const uint32_t> calls);
  // c's kernel is p's too; what they compute is for the pass to say.
  void unite(SlotKernel& c, SlotKernel& p);
  void add(CallGroup& g, const SlotKernel& k);
  // In an order in which they may run: calls as they are, and `fused` of those that stand for
  // several.
  std::vector<Call> ordered(const std::function<Call(uint32_t)>& fused) const;

  Schedule& s_;
  std::vector<uint32_t> memory_;  // by slot
  const TargetOf& target_of_;
  std::span<const Call> calls_;
  CallGraph graph_;
  std::vector<uint32_t> head_;  // by call: whose kernel it is in

 private:
  std::map<uint32_t, uint32_t> writer_;  // by slot, the last of the calls that writes it
};

}  // namespace tuff::sched

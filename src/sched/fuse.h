// Element-wise fusion: which nodes are realized into memory; everything between realized nodes
// becomes one kernel. Movement ops are never realized for themselves. Called by schedule() on a
// prepared graph. The cost rule: docs/design/fusion.md.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/uop.h"
#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int32_t kNone = -1;

// A graph as arrays, in topological order, with the decisions. Positions index all of them.
struct FusePlan {
  std::vector<ir::UOp> sinks;
  std::vector<const ir::Node*> nodes;
  std::unordered_map<const ir::Node*, uint32_t> position;
  std::vector<uint32_t> src_begin, src;  // sources of i: src[src_begin[i] .. src_begin[i + 1])
  std::vector<uint8_t> realized;
  // Of an Again, the node that has to be computed before; it is none of its sources here.
  std::unordered_map<uint32_t, uint32_t> earlier;
  std::vector<int32_t> stores_for;   // of a root: the Assign it stores for
  std::vector<int32_t> stored_by;    // of an Assign: the root that stores for it, or itself
  std::vector<int32_t> sink_number;  // of a root: the first sink whose Output it is
  // Where a node is computed. What is made of constants and counters alone has no device of its own
  // and is computed where it is read; null if nothing says where that is.
  std::vector<const std::string*> device;

  std::span<const uint32_t> sources(uint32_t i) const {
    return {src.data() + src_begin[i], src.data() + src_begin[i + 1]};
  }
  // The node that memory or a computation stands for below movement: realized, a leaf, or an ALU.
  uint32_t base(uint32_t i) const {
    while (ir::is_movement(nodes[i]->op) && !realized[i]) i = src[src_begin[i]];
    return i;
  }
  // The Assign whose contents one to a part keeps around it, or the Buffer.
  uint32_t version_before(uint32_t part) const { return base(src[src_begin[part]]); }
  // The device that a root's call runs on or copies to.
  const std::string& device_of(uint32_t i) const;
  // Roots and Assigns that a node is made of, or itself if it is one.
  std::vector<uint32_t> roots_of(uint32_t i) const;
  // Has a call of its own.
  bool is_root(uint32_t i) const {
    return nodes[i]->op == ir::Op::Assign ? stored_by[i] == int32_t(i) : realized[i] != 0;
  }
};

FusePlan plan_fusion(std::vector<ir::UOp> sinks, const TargetOf& target_of);

// A Copy that moves between devices (others are kernels).
bool is_transfer(const ir::Node& n);
// True where an Expand repeats something.
bool repeats(const ir::Node& n);

}  // namespace tuff::sched

// The order of calls: a topological one by structure alone, depth-first so that what a call made is
// used soon, or greedily by the memory that it frees, whichever peaks lower. Called by linearize.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tuff::sched {

struct OrderNode {
  std::vector<uint32_t> after;  // calls that must come before this one
  std::vector<uint32_t> makes;  // temporary slots it writes first
  std::vector<uint32_t> uses;   // temporary slots it reads
};

// Calls that `required` needs, in order. sizes: bytes per slot.
std::vector<uint32_t> order_calls(std::span<const OrderNode> calls,
                                  std::span<const uint32_t> required,
                                  std::span<const uint64_t> sizes);

}  // namespace tuff::sched

// Horizontal fusion: element-wise kernels and column sums of a LINEAR that do not wait for each
// other become one kernel with several outputs, as the updates of an optimizer's parameters. Called
// by schedule() before memory is planned. Knows slots and ASTs, nothing of what made them.
//
// The cost rule. A launch costs what thousands of elements cost, so:
//   1. A kernel joins the loops of another that walks the same elements and that it reads from,
//      writes behind or shares an input with: what they share is loaded once, and what one stores
//      is read by the other from a register.
//   2. Kernels of flat loops that have nothing to do with each other become loop nests beside each
//      other while each walks at most kMaxNestElements and all kMaxMergedElements: what is larger
//      fills a device by itself, and would only keep its inputs alive for longer. Where lanes take
//      their loads one by one (Target::load_cost) each walks all nests, masked: there all together
//      have only so many outputs as a launch costs.
//   3. Sums over columns, as the gradients of biases are, become nests like these, up to
//      kMaxSummedElements each: alone their few outputs leave most of a device idle. What reads
//      such a sum element by element joins its loops.
//   4. Never more buffers than Target::max_buffers, loop nests than kMaxNests or AST nodes than
//      kMaxNestNodes and kMaxMergedNodes, which bound compile time and what one loop holds.
// A nest never reads or writes memory that another nest writes: nests run in any order, beside each
// other. Within a nest memory is written at the element where it is read, or not read at all.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int64_t kMaxNestElements = int64_t(1) << 18;
inline constexpr int64_t kMaxSummedElements = int64_t(1) << 20;
inline constexpr int64_t kMaxMergedElements = int64_t(1) << 22;
inline constexpr size_t kMaxNests = 16;
inline constexpr size_t kMaxMergedNodes = 2000;
inline constexpr size_t kMaxNestNodes = 256;  // in the loops of one nest

// memory: for each Input slot in order, a number that slots in the same allocation share.
void merge_kernels(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of);

}  // namespace tuff::sched

// Loops of the graph as calls: one that stands for all steps while kernels are formed and ordered,
// then the calls of each step, whose kernels are the same. Called by fuse and linearize, which need
// to know what memory a loop reads, and by schedule(). Knows memory by slots.
#pragma once

#include <functional>
#include <span>

#include "ir/uop.h"
#include "sched/schedule.h"

namespace tuff::sched {

// The rows of a loop's sequence: in the memory of a node, from an element on.
struct LoopRows {
  const ir::Node* memory = nullptr;
  int64_t begin = 0, stride = 0;  // elements
};
// What stands in another loop's result is read there.
LoopRows loop_rows(const ir::UOp& sequence);

// The calls that compute some values; their Input slots are the given storages, in that order.
using FormCalls = std::function<Schedule(std::span<const ir::UOp> sinks,
                                         std::span<const ir::UOp> buffers)>;
// Puts the calls of their steps in the place of all Loop calls. Slots that are parts of others are
// named by Views.
void unroll_loops(Schedule& s, const FormCalls& form);

// Parts of temporaries become temporaries at their place in the arena, once it is known.
void place_parts(Schedule& s);
// By slot, the one that it is a part of, or itself.
std::vector<uint32_t> memory_of_parts(const Schedule& s);

}  // namespace tuff::sched

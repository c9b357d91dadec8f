// From a realized node to its kernel's AST: index tuples are pushed down from the output ranges,
// movement ops vanish into them, padding becomes gates. Called by linearize, once per kernel of a
// graph. Knows nothing of what runs when or of memory but slots.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/uop.h"
#include "sched/fuse.h"

namespace tuff::sched {

// What the kernel of an Assign to a part does: all of it, or, where the value reads other elements
// of the memory that it is stored in, one kernel its value and another one the store. Of a Scatter:
// one kernel its target, the next ones what is stored by index.
enum class PartStep : uint8_t { All, Value, Store, ByIndex };

// Where several elements of a Scatter's value may come to one place, each invocation goes through
// all of a run of them in order, and stores those that come to its own places: `owners` runs of the
// target's axis.
struct OrderedStep {
  int64_t owners = 1;
  ir::Dim first, count;  // of the value's axis
};

struct KernelSpec {
  uint32_t root = 0;  // position in the plan
  int32_t in_place_slot = kNone;  // input slot that the root's result may overwrite
  PartStep part_step = PartStep::All;
  int32_t value_slot = kNone;  // where the value of a part is between the two kernels
  OrderedStep ordered;         // ByIndex
  const std::vector<int32_t>* slot_of = nullptr;  // by position: of roots, Assigns and Buffers
};

struct Kernel {
  ir::UOp ast;
  std::vector<uint32_t> args;      // slots, the output first
  bool in_place = false;           // reads in_place_slot through its output argument
  bool in_place_conflict = false;  // reads in_place_slot at another element: needs a temporary
  bool leaves_as_is = false;       // stores nothing but what is there
  // A kernel that only copies: args[1] from this element on, in order.
  bool is_copy = false;
  int64_t copy_offset = 0;
};

Kernel rangeify(const FusePlan& plan, const KernelSpec& spec);

}  // namespace tuff::sched

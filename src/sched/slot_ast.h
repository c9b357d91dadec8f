// A call's AST in terms of the schedule's slots, and back: kernels that are put together must speak
// of memory alike. Called by the passes that do so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sched/schedule.h"

namespace tuff::sched {

// Params carry slots of the schedule instead of argument numbers.
ir::UOp slot_ast(const Call& c);
// The slot of an Index of such an AST.
uint32_t slot_of(const ir::UOp& index);
// A kernel of such Ends, in canonical form; what they store comes first, in their order.
Call call_of(const std::string& device, std::span<const ir::UOp> ends);
// Whether anything but these calls reads a slot.
bool is_needed(const Schedule& s, std::span<const Call* const> own, uint32_t slot);
// What was read again is read under its first name, and the calls that gave it another are gone:
// the order of the others is that of the list.
void settle_order(Schedule& s);
// Slots that no call uses any more vanish.
void drop_unused_slots(Schedule& s);

}  // namespace tuff::sched

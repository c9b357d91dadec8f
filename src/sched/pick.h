// Sums over a comparison with a counter, as gather and embedding spell them, become what is loaded
// and computed at the compared index. Called by rangeify on the value of a sum before its ranges are
// closed, and by fusion, to which such a sum of what is loaded is no reduction.
#pragma once

#include <optional>
#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

// sum over r of where(e == r, f(r), 0) is f(e) where 0 <= e < size, else 0, for whatever f computes
// of what it loads. Picked ranges are taken out of `ranges`; the value comes back unchanged where the
// form is another.
ir::UOp pick_elements(ir::UOp value, std::vector<ir::UOp>& ranges);

// A sum of a graph that pick_elements() turns into a load, one for each element of an index that is
// computed: sum over one axis of where(expand(index) == counter, memory, 0). None where the
// elements of an index pick several each, as those of an embedding do.
struct ElementPick {
  const ir::Node* index;               // without movement
  std::vector<const ir::Node*> inner;  // between the sum and that: where, comparison, movement
};
std::optional<ElementPick> element_pick(const ir::Node& sum);
// Rows of memory, for each element of an index.
std::optional<ElementPick> row_pick(const ir::Node& sum);
// The `where` of such a sum whose index may pick several elements by each of its own, and no more
// than there are to pick from. Null where the form is another.
const ir::Node* picks_of(const ir::Node& sum);
// Whether an element is picked of whatever is computed: such a sum has no parts.
bool picks_elements(const ir::Node& sum);

}  // namespace tuff::sched

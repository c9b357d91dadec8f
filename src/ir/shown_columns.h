// Which elements of a row a mask shows, as that of causal attention does: those from one on, those
// before one. Called by sched and kernel, which leave out what is hidden.
#pragma once

#include "ir/uop.h"

namespace tuff::ir {

struct ShownColumns {
  UOp begin, end;  // empty: from the first one, to the last
  friend bool operator==(const ShownColumns& a, const ShownColumns& b) {
    return a.begin == b.begin && a.end == b.end;
  }
  explicit operator bool() const { return begin || end; }
};

// The columns for which the condition is true, or those for which it is false: it compares the
// column, or compares it with what the loops over rows say. None: it is another condition.
ShownColumns shown_columns(const UOp& condition, bool is_true, const UOp& column);

// The same of scores that a mask hides: a number of -1e30 or less stands in the place of one there. A
// score is a sum of products, times a constant, and so beyond any such number.
ShownColumns shown_scores(const UOp& value, const UOp& column);

}  // namespace tuff::ir

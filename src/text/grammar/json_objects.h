// Objects of JSON as expressions. Called by the reader of schemas.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/grammar/expression.h"
#include "text/grammar/json_multiples.h"

namespace tuff::text::grammar {

// One that a schema names, as it is written: name, colon and value.
struct ObjectMember {
  Expression written;
  bool required = false;
};

struct ObjectShape {
  std::vector<ObjectMember> members;  // in their order
  std::optional<Expression> others;   // what may follow them, each
  Expression comma;
  uint32_t least = 0, most = kUnbounded;  // members in all
};

// What stands between the braces. None where no object has so many members; InvalidArgument for
// more members and bounds than rules may be made of.
std::optional<Expression> object_inside(ObjectShape shape, const AddRule& add);

}  // namespace tuff::text::grammar

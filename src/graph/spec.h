// What is legal on each floor. Checked between passes in debug builds, in tests and with
// TUFF_SPEC=1.
#pragma once

#include <span>
#include <string>

#include "graph/uop.h"

namespace tuff::graph {

bool spec_enabled();
// Throws InternalError printing the offending node if something below root is illegal on the floor.
void check_spec(const UOp& root, Floor floor, const char* after_pass);
void check_linear_spec(std::span<const UOp> list, const char* after_pass);

}  // namespace tuff::graph

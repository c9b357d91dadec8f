// The text form of the IR, both ways: used by goldens, TUFF_DEBUG and bug reports.
//   %3 = add f32 (4, 8) %1 %2
// One node per line, sources before users, numbered in order; arg in braces after the op's name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

std::string to_text(std::span<const UOp> roots);
std::string to_text(const UOp& root);
std::string list_to_text(std::span<const UOp> list);  // a linear list, in its own order
// Parses what to_text prints (Storages become fresh ones). InvalidArgument with line and reason.
std::vector<UOp> parse_text(const std::string& text);  // the roots: nodes without users, in order
std::string expression(const UOp& x);  // an index expression in one line: "(r0*4 + r1) // 3"

}  // namespace tuff::ir

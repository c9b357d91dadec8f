// What is legal on each floor. Checked between steps and passes whose options ask for it: in debug
// builds and with TUFF_SPEC=1.
#pragma once

#include <span>
#include <string>

#include "ir/uop.h"

namespace tuff::ir {

#ifdef NDEBUG
inline constexpr bool kChecksSpec = false;
#else
inline constexpr bool kChecksSpec = true;
#endif
// Throws InternalError printing the offending node if something below root is illegal on the floor.
void check_spec(const UOp& root, Floor floor, const char* after_pass);
void check_linear_spec(std::span<const UOp> list, const char* after_pass);

}  // namespace tuff::ir

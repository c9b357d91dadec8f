// Lookups: what a vector computes from numbers of 4 bits has 16 values. They are computed once, as
// a register, and each lane takes its own by one instruction, which reads no more of the number
// than those bits. Called by CKernel, and by CBody for the lanes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "render/c_body.h"

namespace tuff::render {

// What the current op gives of x, where it is a number of 4 bits, or of what is looked up by one
// already and scalars.
std::optional<CValue> looked_up(CBody& b, const ir::Node& u, const std::vector<CValue>& x);
// A value with a table as the vector of its lanes.
std::string look_up(CBody& b, const CValue& v, DType t);
// Whether all users of an op compute, so that a table may stand for its lanes; addresses, gates and
// what is stored are vectors.
bool feeds_arithmetic_alone(const CBody& b, size_t i);

}  // namespace tuff::render

// The conformance suite: every op of the tensor floor on every dtype and several shapes, and every
// function of Tensor forwards and backwards. Called by `tuff check`, which ctest runs too. Must
// never know devices: what a device lacks shows when it is asked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "check/case.h"
#include "check/values.h"

namespace tuff::check {

// All cases in a fixed order, names unique. Made once.
std::span<const Case> suite();
// The named case, or null.
const Case* find_case(const std::string& name);
// The cases whose name matches the pattern: '*' any characters, '?' one; several separated by ','.
std::vector<const Case*> matching(const std::string& pattern);

// The dtypes that every op and function has cases of: all that memory holds but the floats of 8
// bits, in the order of dtypes.def.
std::span<const DType> memory_dtypes();
// Those, computed in f32 on every device as bfloat16 is where there is none: all of their
// conversions, and few cases of what else there is.
std::span<const DType> float8_dtypes();

// The operands that an ALU op's results are promised for, as ops.def has them.
struct Domains {
  Domain first, second;
};
Domains domains_of(ir::Op op);

// The parts; appended in this order.
void append_elementwise_cases(std::vector<Case>& out);
void append_cast_cases(std::vector<Case>& out);
void append_reduce_cases(std::vector<Case>& out);
void append_movement_cases(std::vector<Case>& out);
void append_function_cases(std::vector<Case>& out);

}  // namespace tuff::check

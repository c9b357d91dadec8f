// Functions with gradients of their own: values and what a user says that their gradients are, as
// one node of the tensor floor. The gradients are graphs from the start, made of Params ("places")
// where those of the values will stand, so nothing is called back, equal functions of equal
// arguments are one node, and the node knows all that it keeps alive. Called by tensor, which
// makes rules, and by gradient_walk.cpp, which follows them. Must never know whose function it is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// What stands for a value like this one, its gradient say, while a graph is made: no other place is
// equal to it.
UOp place_like(const UOp& value);
UOp place_of(DType t, const Shape& shape, const std::string& device);

// Of a loop's body: equal bodies have equal places.
UOp body_place(int32_t number, DType t, const Shape& shape, const std::string& device);

struct RuleParts {
  std::vector<UOp> values, arguments;
  std::vector<UOp> places;     // of the values' gradients, in their order
  std::vector<UOp> gradients;  // per argument; empty where there is none
};
RuleParts parts_of(const Node& rule);
// Ruled nodes, one per value. Gradients have their argument's shape.
std::vector<UOp> ruled(const RuleParts& parts);

std::span<const UOp> arguments_of(const Node& rule);
// Per argument, its gradient given those of the values, of which empty ones are zero.
std::vector<UOp> gradients_by_rule(const UOp& rule, std::span<const UOp> of_values);

// The nodes without what only gradients ask for: Mark, Checkpoint, Ruled and Rule.
std::vector<UOp> values_alone(std::span<const UOp> roots);

// Whether a place is below, whose value nobody knows yet.
bool has_place(std::span<const UOp> roots);

}  // namespace tuff::ir

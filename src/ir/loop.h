// Loops over sequences as one node of the tensor floor: states that each step makes of those before
// it and of a row of each sequence. The body is a graph of places (rule.h) in the node's arg and
// closed: all else that it reads is a source, so that what walks a graph never comes into one.
// Called by tensor's scan() and by the passes that come to the node. Must never know recurrent
// layers.
#pragma once

#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

struct LoopSpec {
  std::vector<UOp> states;     // places
  std::vector<UOp> initial;    // what they hold before the first step, in their shapes
  std::vector<UOp> next;       // what they hold after one, made of places and of anything else
  std::vector<UOp> rows;       // places
  std::vector<UOp> sequences;  // (steps, a row's shape): row t is for step t
  Dim steps;
  bool reverse = false;        // the last row comes first
  bool ahead = true;           // what needs no state is computed for all steps at once, outside
  std::string device;
};
// All states after each step, one below the other: (steps + 1, elements). States of step t are read
// from row t and stored in row t + 1; in reverse read from row t + 1 and stored in row t. A state
// begins where any device may bind it; what is between states is undefined. States have one dtype
// and dense shapes (extents.h). There is room for the largest extents and the most steps: elements
// and rows beyond those at hand are undefined.
UOp loop(const LoopSpec& spec);

// State k before and after each step, or after all steps: (steps, its shape); its shape.
UOp states_before(const UOp& loop, size_t k);
UOp states_after(const UOp& loop, size_t k);
UOp last_state(const UOp& loop, size_t k);

// In elements.
struct LoopLayout {
  std::vector<int64_t> offsets;  // of the states in a row
  int64_t row = 0;
};
LoopLayout layout_of(const Node& loop);
std::span<const UOp> sequences_of(const Node& loop);
std::span<const UOp> constants_of(const Node& loop);
// Where in memory the first step reads, and the last one stores.
Dim first_row(const Node& loop);
Dim last_row(const Node& loop);
// The loop with memory for the last states alone: two rows in turn.
UOp with_last_states(const UOp& loop);

// What a step reads and stores, as first elements: of the result for states, of their sources for
// all other places.
struct LoopStep {
  std::vector<int64_t> reads;   // by place
  std::vector<int64_t> stores;  // by state
  Dim runs = 1;                 // 0: the loop has fewer steps
};
std::vector<LoopStep> steps_of(const Node& loop);  // the most there are, in their order of running

// What a loop does, there.
LoopArg on_device(const LoopArg& arg, const std::string& device);

// The loop with sums that its states are made of beside them, each a state that no step reads: what
// a gradient would have to compute again. Itself where there are none.
UOp with_sums(const UOp& loop);
// Whether `more` is `loop` with further states: all that is read of one is there in the other, at
// the same place.
bool has_states_of(const Node& more, const Node& loop);

// Per source its gradient, as gradient_rows.h has it: a loop that goes back.
std::vector<UOp> loop_gradients(const UOp& loop, const UOp& gradient);
// The loop for many values side by side (batch.h); sources that are the same for all have been
// repeated.
UOp loop_batched(const UOp& loop, const Dim& count, std::span<const UOp> sources);

}  // namespace tuff::ir

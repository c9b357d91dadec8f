// Reduces a failing graph to a minimal one (delta debugging; Zeller and Hildebrandt, "Simplifying
// and Isolating Failure-Inducing Input", IEEE TSE 2002): fewer sinks, nodes replaced by their
// sources, by memory or by constants, smaller extents and padding, plainer values, until nothing
// smaller that was tried fails. Called by the random graphs of `tuff check` and by tests. Must
// never know what makes a graph fail.
#pragma once

#include <functional>

#include "check/graph_case.h"

namespace tuff::check {

// Whether a graph fails as the first one did. What it is given is well formed: every sink has a
// device, every Storage's Assigns follow one another.
using Fails = std::function<bool(const GraphCase&)>;

struct Reduction {
  GraphCase graph;
  int tried = 0;          // graphs that were run
  bool finished = false;  // false: max_tries ended it
};
// `c` itself must fail.
Reduction reduce_graph(const GraphCase& c, const Fails& fails, int max_tries = 4000);

}  // namespace tuff::check

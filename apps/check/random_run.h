// A random graph that failed, reduced to a minimal graph. Called by `tuff check --random` and by
// tests. Must never know how results are shown.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/reduce_graph.h"

namespace tuff::check {

// The difference of a graph that was run, empty where it agrees.
using GraphRunner = std::function<std::string(const GraphCase&)>;
// Every graph in a child, `command` with the path of a file of the case after it; the child gives 0
// if the case agrees, and its output says what differs. A killed child is a crash, one that takes
// longer than `timeout_ns` a hang.
GraphRunner child_runner(std::vector<std::string> command, std::string folder, uint64_t timeout_ns);

struct GraphFault {
  uint64_t seed = 0;
  std::string why;  // of the graph as it was made
  Reduction minimal;
  std::string text() const;  // all of it, to be read and to be run again
};

// A graph that failed, reduced: `run_alone` runs the candidates. Once `stop` says so, the smallest
// graph found so far is the result.
GraphFault reduced_fault(const GraphCase& c, const std::string& why, const GraphRunner& run_alone,
                         const std::function<bool()>& stop = {});

// What kind of failure a difference is: a reduction must not slip from one to another.
std::string failure_kind(const std::string& difference);

}  // namespace tuff::check

// `tuff check --random`: random graphs on one device against the interpreter, a failing one reduced
// to a minimal graph. Called by cli and by tests. Must never know how results are shown.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/host_device.h"
#include "check/random_graph.h"
#include "check/reduce_graph.h"

namespace tuff::check {

// A batch of graphs to differences, empty where a graph agrees.
using GraphRunner = std::function<std::vector<std::string>(std::span<const GraphCase>)>;
// In this process: a driver that crashes or hangs takes the caller with it.
GraphRunner device_runner(std::string device);
// Without a device: schedule, lowering, interpreter.
GraphRunner host_runner(HostDevice device);
// Every batch in a child, `command` with the path of a file of one case after it; the child gives 0
// if the case agrees, and its output says what differs. A killed child is a crash, one that takes
// longer than `timeout_ns` a hang.
GraphRunner child_runner(std::vector<std::string> command, std::string folder, uint64_t timeout_ns);

struct RandomOptions {
  uint64_t seed = 0, count = 100;  // seeds seed .. seed+count-1
  size_t batch = 32;               // graphs of one realize
  size_t max_faults = 5;           // ends the run
  GraphOptions graphs;
  std::function<void(uint64_t done)> progress;  // optional
};

struct GraphFault {
  uint64_t seed = 0;
  std::string why;  // of the graph as it was made
  Reduction minimal;
  std::string text() const;  // all of it, to be read and to be run again
};

struct RandomResult {
  uint64_t graphs = 0, sinks = 0, nodes = 0;
  std::vector<GraphFault> faults;
};

// A graph that failed, reduced: `run_alone` runs the candidates. Once `stop` says so, the smallest
// graph found so far is the result.
GraphFault reduced_fault(const GraphCase& c, const std::string& why, const GraphRunner& run_alone,
                         const std::function<bool()>& stop = {});

// `run` for the batches, `run_alone` for the candidates of the reduction: the same, or one that
// survives crashes.
RandomResult run_random(const RandomOptions& o, const GraphRunner& run,
                        const GraphRunner& run_alone);

// What kind of failure a difference is: a reduction must not slip from one to another.
std::string failure_kind(const std::string& difference);

}  // namespace tuff::check

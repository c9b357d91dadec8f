// Random graphs in batches against the interpreter, failing ones reduced. Called by the tests of
// random graphs, on the host and on devices. Must never know what runs them.
#pragma once

#include "check/random_graph.h"
#include "check/random_run.h"

namespace tuff::check {

struct RandomOptions {
  uint64_t seed = 0, count = 100;  // seeds seed .. seed+count-1
  size_t batch = 32;               // graphs of one run
  size_t max_faults = 5;           // ends the run
  GraphOptions graphs;
};

struct RandomResult {
  uint64_t graphs = 0;
  std::vector<GraphFault> faults;
};

// `run`: a batch of graphs to differences, empty where a graph agrees.
template <class Run>
RandomResult run_random(const RandomOptions& o, const Run& run) {
  const auto run_alone = [&](const GraphCase& c) { return run(std::span(&c, 1)).at(0); };
  RandomResult result;
  for (uint64_t done = 0; done < o.count && result.faults.size() < o.max_faults;) {
    std::vector<GraphCase> cases;
    for (; cases.size() < o.batch && done < o.count; done++)
      cases.push_back(random_graph(o.seed + done, o.graphs));
    const std::vector<std::string> differences = run(std::span<const GraphCase>(cases));
    for (size_t i = 0; i < cases.size(); i++) {
      result.graphs++;
      if (!differences[i].empty() && result.faults.size() < o.max_faults)
        result.faults.push_back(reduced_fault(cases[i], differences[i], run_alone));
    }
  }
  return result;
}

}  // namespace tuff::check

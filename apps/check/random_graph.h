// Random tensor graphs: every op of the tensor floor, every dtype a device has, shapes with ones,
// zeros and primes, views of views, reductions, gathers, assigns in place, symbolic sizes. The same
// graph for the same seed and options. Each node is evaluated as it is made, and nodes of whose
// elements nothing could be demanded are not kept. Called by `tuff check --random` and by tests.
// Must never know what runs the graphs.
#pragma once

#include <vector>

#include "check/graph_case.h"

namespace tuff::check {

struct GraphOptions {
  std::string device = "CPU";  // of Buffers and placements
  std::vector<DType> dtypes;   // empty: all that memory can hold
  bool assigns = true;
  bool loops = true;
  bool symbolic = true;  // in one graph of six
};

GraphCase random_graph(uint64_t seed, const GraphOptions& options);

}  // namespace tuff::check

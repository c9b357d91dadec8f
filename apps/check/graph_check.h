// Whether what ran a GraphCase gave what the reference interpreter gives. Called by the random
// graphs of `tuff check`, by the reduction of a failing graph and by tests. Must never know what
// ran it.
#pragma once

#include <map>
#include <string>

#include "check/graph_case.h"

namespace tuff::check {

// What a run leaves: bytes of the sinks, at maximum extents, and of the inputs by Storage::id.
struct RunOutput {
  std::vector<std::vector<std::byte>> sinks;
  std::map<uint64_t, std::vector<std::byte>> storages;
};

// Empty if every sink has its value and every input Storage either that of the last Assign to it or
// what it held before; else the first difference in words.
std::string difference(const GraphCase& c, const RunOutput& got);

}  // namespace tuff::check

// Whether what ran a GraphCase gave what the reference interpreter gives. Called by the random
// graphs of `tuff check`, by the reduction of a failing graph and by tests. Must never know what
// ran it.
#pragma once

#include <string>

#include "check/graph_case.h"
#include "check/host_device.h"

namespace tuff::check {

// Empty if every sink has its value and every input Storage either that of the last Assign to it or
// what it held before; else the first difference in words.
std::string difference(const GraphCase& c, const RunOutput& got);

// Runs on the host and compares; what sched or kernel throw is a difference too.
std::string check_on_host(const GraphCase& c, const HostDevice& device);

}  // namespace tuff::check

// Runs GraphCases on a device through the engine: all of them in one realize, since a device
// compiles many kernels together far faster than one by one, and one schedule of many graphs packs
// its memory most tightly. Called by the random graphs of `tuff check` and by tests. Must never
// know which device it is.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "check/graph_check.h"

namespace tuff::check {

// What each case left, Storages under the ids that they have in the case. Throws what engine
// throws.
std::vector<RunOutput> run_on_device(std::span<const GraphCase> cases, const std::string& device);

// The kernels of a case, for compiling those of many cases at once.
std::vector<ir::UOp> kernels_of(const GraphCase& c, const std::string& device);

// As difference() of graph_check.h, per case; empty where it agrees. A batch that throws is halved
// until the case that throws stands alone. Throws DeviceLost: nothing more can run then.
std::vector<std::string> check_on_device(std::span<const GraphCase> cases,
                                         const std::string& device);

}  // namespace tuff::check

// Random graphs as cases of the pool: a name for each seed, run and judged like a case of the
// suite. Called by the worker and by `tuff check --random`. Must never know processes: a driver
// that crashes or hangs takes the caller with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/graph_case.h"
#include "check/run_case.h"

namespace tuff::check {

inline constexpr const char* kRandomOp = "random graph";  // their row in the summary

std::string random_case_name(uint64_t seed);                        // "random/17"
std::optional<uint64_t> random_case_seed(const std::string& name);  // none: not such a name

// The graph of the seed in the dtypes that the device is expected to run.
GraphCase random_case(uint64_t seed, const std::string& device);
// Pass, Fail with the first difference, or Crash when the device is lost.
CaseResult run_random_case(const GraphCase& c, const std::string& device);
// Writes OUT/DEVICE-random-SEED.graph, which `tuff check --graph` runs, and returns its path.
std::string write_random_case(const std::string& out, const GraphCase& c, const std::string& device,
                              const std::string& why);

}  // namespace tuff::check

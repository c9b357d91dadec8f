// Runs a GraphCase without any device: sched's LINEAR, each kernel lowered for a Target and its
// linear list run by the reference interpreter. Nothing is rendered or compiled, so thousands of
// graphs take seconds; a Target of any device can be given. Must never know a renderer or a device.
#pragma once

#include <functional>

#include "base/target.h"
#include "check/graph_check.h"

namespace tuff::check {

enum class OptChoice : uint8_t {
  Heuristics,  // as devices lower
  None,
  Random,  // legal ones, drawn from HostDevice::seed
};

struct HostDevice {
  Target target;
  OptChoice opts = OptChoice::Heuristics;
  uint64_t seed = 0;
  // Tests plant a fault here: what is lowered instead of a kernel's AST.
  std::function<ir::UOp(const ir::UOp&)> rewrite;
};

// Throws what sched and kernel throw, and InternalError for an access outside a buffer.
RunOutput run_on_host(const GraphCase& c, const HostDevice& device);
// Runs and compares; what sched or kernel throw is a difference too.
std::string check_on_host(const GraphCase& c, const HostDevice& device);

}  // namespace tuff::check

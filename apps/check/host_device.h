// Runs a GraphCase without any device: sched's LINEAR, each kernel lowered for a Target and its
// linear list run by the reference interpreter. Nothing is rendered or compiled, so thousands of
// graphs take seconds; a Target of any device can be given. Called by the random graphs of
// `tuff check` and by tests. Must never know a renderer or a device.
#pragma once

#include <functional>
#include <map>

#include "base/target.h"
#include "check/graph_case.h"

namespace tuff::check {

// What a run leaves: bytes of the sinks, at maximum extents, and of the inputs by Storage::id.
struct RunOutput {
  std::vector<std::vector<std::byte>> sinks;
  std::map<uint64_t, std::vector<std::byte>> storages;
};

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

}  // namespace tuff::check

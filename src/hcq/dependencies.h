// Which commands of a list have to come after which, for queues that are given this command by
// command. Called by devices' encoders. Sees accesses alone; must never know kernels or devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hcq/command.h"

namespace tuff::hcq {

struct Dependencies {
  std::vector<std::vector<uint32_t>> after;  // of each command: earlier ones, ascending
  std::vector<uint32_t> last;                // those that no other comes after
};

// A command comes after the earlier ones whose accesses conflict with its own (RAW, WAR, WAW by
// byte ranges), but for those that it comes after anyway by way of another. Work that names no
// access, and whatever is neither Dispatch nor Copy, comes after all before it and before all after
// it. So a Barrier between commands whose accesses say all adds nothing: leave it out.
Dependencies dependencies_of(std::span<const Command* const> commands);

}  // namespace tuff::hcq

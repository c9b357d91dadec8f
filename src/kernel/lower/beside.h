// Kernels whose nests are launches beside each other (sched/beside.h), as one list. Called by
// lower(). Must never know what a launch computes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/target.h"
#include "kernel/lowered.h"

namespace tuff::kernel {

// A launch by itself, whose workgroups are those from the given one on, along the first axis.
using LowerLaunch = std::function<LinearKernel(const ir::UOp& ast, int64_t first_group)>;

// The list, what a launch is, and the estimate; none where the launches do not agree on what a
// workgroup is, or need more than one has.
std::optional<LinearKernel> lower_beside(std::span<const ir::UOp> launches, const Target& target,
                                         const LowerLaunch& lower_launch);

}  // namespace tuff::kernel

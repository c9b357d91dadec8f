// Evaluates a LinearKernel on host memory, op by op with ir::eval_scalar: what the renderers'
// output is compared with. All invocations of a workgroup advance in lock-step.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/lowered.h"

namespace tuff::render {

using HostBuffer = std::vector<uint8_t>;

// Runs every workgroup. InternalError on an access out of bounds or a use before a definition.
void evaluate(const kernel::LinearKernel& k, std::vector<HostBuffer>& buffers,
              const std::vector<int32_t>& scalars = {});

}  // namespace tuff::render

// copy_before_texels(): a view is bound to its memory and cannot be patched, so a kernel of a
// captured graph reads an input through views from memory of the graph's own. Called by capture.cpp
// before anything else looks at the calls. Must never know Vulkan.
#pragma once

#include <span>
#include <vector>

#include "engine/realize/linear.h"

namespace tuff::engine {

// The calls with copies of inputs before the first kernel that reads them through views, and again
// after calls that write them. Such copies are kernels of the graph, whose source is patched.
std::vector<BoundCall> copy_before_texels(std::vector<BoundCall> calls,
                                          std::span<const Ref<Buffer>> inputs);

}  // namespace tuff::engine

// copy_kernel(): a copy as a kernel, for copies from or to an input of a captured graph: their
// addresses and sizes are known at replay only. Called by CapturedGraph.
#pragma once

#include "engine/program/program_cache.h"
#include "engine/device.h"

namespace tuff::engine {

// Param 0 gets `count` elements of param 1. With `counted` it has a scalar, a number up to `count`,
// and copies so many. Of 4-byte elements `t` is U32: no other type's loads can always be patched.
const LoadedKernel& copy_kernel(Device& device, DType t, int64_t count, bool counted);

}  // namespace tuff::engine

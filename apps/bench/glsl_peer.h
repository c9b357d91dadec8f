// The hand-written kernels of shaders/ as a peer of `tuff bench`, on the same device, with the same
// inputs in the same memory. Called by bench_command. Must never know Vulkan: they are loaded and
// captured as tuff's own are.
#pragma once

#include <memory>

#include "bench/bench_peer.h"
#include "bench/kernel_bench.h"

namespace tuff::bench {

// InvalidArgument saying what would be possible if there is no such kernel, or none for these
// extents or this device.
std::unique_ptr<BenchPeer> glsl_peer(const KernelRow& row, const Extents& extents,
                                     const KernelOptions& options, const KernelCase& work);

}  // namespace tuff::bench

// What the machine could do at most, measured: the floor under `tuff bench`'s fractions. Called by
// kernel_bench. Must never know a workload.
#pragma once

#include <memory>

#include "engine/device.h"

namespace tuff::bench {

// The limits of one device, or of the CPU for a device that computes on it (software Vulkan).
class MachineLimits {
 public:
  explicit MachineLimits(const engine::Device& device);
  ~MachineLimits();
  MachineLimits(const MachineLimits&) = delete;
  // f32 multiply-adds from registers on all threads, each counted as two; the best of all runs so
  // far, since nothing but other work makes them slower.
  double gflops();
  // A copy between buffers larger than the caches, with ordinary stores; bytes read plus bytes
  // written, the best median of a few runs so far.
  double gbps();

  struct Probe;

 private:
  std::unique_ptr<Probe> probe_;
  double best_gflops_ = 0, best_gbps_ = 0;
};

}  // namespace tuff::bench

// Coalescing: how many lines of memory the lanes of a subgroup touch with each access, beside the
// fewest that hold the same bytes. Exact for one subgroup of a sample of workgroups and iterations:
// offsets are evaluated for its lanes. Called by tests and `TUFF_DEBUG=3`. Must never know a
// device's name.
#pragma once

#include <string>

#include "kernel/lowered.h"

namespace tuff::kernel {

// What NVIDIA's L1 cache tags (CUDA programming guide, device memory accesses) and a line of
// RDNA's L0 to L2 caches (AMD, RDNA3 instruction set guide, 4.1).
inline constexpr int64_t kMemoryLineBytes = 128;

// What memory holds nobody knows: numbers anywhere, the same for the same element.
int64_t some_number_at(int64_t element);

// Lines, weighted by how often an access runs. Neighbours of one invocation that a Target's widest
// load takes are one access.
struct Coalescing {
  double lines = 0, least = 0;
  double ratio() const { return least > 0 ? lines / least : 1; }
};
struct KernelCoalescing {
  Coalescing loads, stores;
};
KernelCoalescing coalescing_of(const LinearKernel& k, const Target& target);
std::string to_string(const KernelCoalescing& c);  // "loads 1.0, stores 1.0"

}  // namespace tuff::kernel

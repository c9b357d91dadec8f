// Flights: the last submissions of a queue with the kernels that they run, to name what was in
// flight when something went wrong. Lists outlive their submissions; the names of one that is
// destroyed are forgotten. Used by the queues of amd, cuda and nv. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "hcq/command.h"

namespace tuff::devices {

using KernelNames = std::vector<std::string>;
// Of a list's dispatches, in order; what follows itself is there once.
KernelNames kernel_names(const hcq::CommandList& list);

class Flights {
 public:
  // `kernels` stays until forget().
  void add(uint64_t value, const KernelNames& kernels);
  void forget(const KernelNames& kernels);
  // "compute queue at 7 of 9: matmul, copy"; empty if nothing is in flight.
  std::string text(const char* queue, uint64_t reached, uint64_t last) const;

 private:
  struct Flight {
    uint64_t value = 0;
    const KernelNames* kernels = nullptr;
  };
  mutable Mutex mutex_;
  std::array<Flight, 64> flights_;
};

}  // namespace tuff::devices

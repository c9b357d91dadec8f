// HandleBinding: what stands behind the handles in a list for one of AMD's GPUs. Used by whoever
// encodes a list for a queue of theirs.
#pragma once

#include "devices/amd/encode/encode.h"

namespace tuff::devices::amd {

class HandleBinding final : public Binding {
 public:
  KernelCode kernel(const hcq::Program& program) const override;
  uint64_t signal_address(const hcq::Signal& signal) const override;
};

// The most that a lane of any of the list's kernels needs.
uint32_t private_bytes(const hcq::CommandList& list, const Binding& binding);

}  // namespace tuff::devices::amd

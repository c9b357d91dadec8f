// TUFF_CHECK_OOB: kernels that check their own accesses (kernel/lower/bounds.cpp) report into a
// buffer of each call; here it is made, read after the call has run, and told as an error.
// Called by ProgramCache, run_linear, execute and replays. Must never know how a check is rendered.
#pragma once

#include <span>

#include <tuff/error.h>

#include "engine/realize/linear.h"

namespace tuff::engine {

// A kernel accessed what is not there. Names kernel, device, buffer, element and how many it has.
class OutOfBounds : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "OutOfBounds"; }
};

// Memory for one call's report, zero.
Ref<Buffer> bounds_report(const LoadedKernel& kernel, const std::shared_ptr<Device>& device);
// Waits for calls that were submitted. Throws OutOfBounds, and clears the reports first: the next
// run reports anew.
void check_bounds(std::span<const BoundCall> calls);

}  // namespace tuff::engine

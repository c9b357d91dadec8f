// TUFF_VALIDATE: every kernel runs once more on a second device, or by the reference interpreter,
// on the same inputs, and what both store is compared within the kernel's error bound
// (graph/error_bound.h). Called by execute(). Must never know Tensors or a device's API.
#pragma once

#include <functional>

#include <tuff/error.h>

#include "engine/realize/linear.h"

namespace tuff::engine {

// Two devices disagree. Names the kernel, the element, both values, both devices and how far they
// may differ.
class ValidationFailed : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "ValidationFailed"; }
};

// Whether TUFF_VALIDATE names a judge.
bool validating();

// Submits one call and waits for it.
using RunCall = std::function<void(Device&, const BoundCall&)>;

// Runs the call and, where it is a kernel of another device than the judge, checks what it stored.
// A kernel that the judge cannot run (a dtype it lacks) is run and logged as unchecked.
// InvalidArgument if TUFF_VALIDATE names no device.
void run_validated(const BoundCall& call, const RunCall& run);

}  // namespace tuff::engine

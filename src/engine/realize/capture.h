// Capture: the bound calls that run while it is open on this thread. Opened by tensor's Jit, filled
// by run_linear. Knows no tensors and no replays.
#pragma once

#include <utility>
#include <vector>

#include "engine/realize/call_bytes.h"
#include "engine/realize/linear.h"

namespace tuff::engine {

// While alive, run_linear on this thread also appends its calls here. No nesting (InvalidArgument).
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  std::vector<BoundCall> take() { return std::move(calls_); }
  static Capture* current();  // of this thread, or null
  void append(const BoundCall& call);
  // What the calls so far have done to memory.
  const CapturedBytes& bytes() const { return bytes_; }

 private:
  std::vector<BoundCall> calls_;
  CapturedBytes bytes_;
};

}  // namespace tuff::engine

// Capture: the bound calls that run while it is open on this thread; and CapturedGraph, the calls
// as CommandGraphs that replay with other input buffers. Called by tensor's Jit. Knows no tensors.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/realize/linear.h"
#include "hcq/graph.h"

namespace tuff::engine {

// While alive, run_linear on this thread also appends its calls here. No nesting (InvalidArgument).
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  std::vector<BoundCall> take() { return std::move(calls_); }
  static Capture* current();  // of this thread, or null
  void append(const BoundCall& call) { calls_.push_back(call); }

 private:
  std::vector<BoundCall> calls_;
};

// What one replay does. rebind_copies: of inputs that are not where they were captured, on devices
// without buffer device addresses.
struct ReplayStats {
  uint32_t kernels = 0, copies = 0, submits_per_replay = 0, barriers = 0, rebind_copies = 0;
  uint64_t flops = 0, bytes = 0;
};

// The calls of a capture, with buffers in `inputs` replaced by slots. Pins every other buffer.
// Runs of calls on one device are one CommandGraph; copies between devices run on the host between.
// What kernels take of `variables` (scalars, launch sizes) is computed anew by each replay.
class CapturedGraph {
 public:
  CapturedGraph(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                std::vector<graph::UOp> variables = {});
  ~CapturedGraph();
  // Patches and submits; allocates nothing on one device that has buffer device addresses (without
  // them: see engine/jit/rebind.h). Same order as at capture, `values` by variables. An input may
  // be smaller than at capture where its extents vary: it has the elements that the values say.
  // InvalidArgument for a value outside its variable's bounds.
  void replay(std::span<const Ref<Buffer>> inputs, std::span<const int64_t> values = {});
  const ReplayStats& stats() const;
  std::vector<const hcq::CommandGraph*> graphs() const;  // in order, for the hazard checker

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::engine

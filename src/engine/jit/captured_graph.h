// CapturedGraph: the calls of a Capture as CommandGraphs that replay with other input buffers.
// Called by tensor's Jit. Knows no tensors.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/jit/segments.h"
#include "engine/realize/linear.h"
#include "hcq/graph.h"

namespace tuff::engine {

// For tests: what a real graph decides by its size, and what a device cannot do.
struct CaptureOptions {
  size_t copy_queue_bytes = kCopyQueueBytes;  // see plan.h
  bool host_waits = false;                    // as if no queue could wait for a signal
};

// The calls of a capture, with buffers in `inputs` replaced by slots. Pins every other buffer.
// Calls of one device are one CommandGraph; calls of several devices, and large copies beside
// kernels, are a SegmentedGraph. Where one of several devices has no buffer device addresses, runs
// of calls are graphs of their own and copies between devices run between them, on the host.
// What kernels take of `variables` (scalars, launch sizes) is computed anew by each replay.
class CapturedGraph {
 public:
  CapturedGraph(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                std::vector<ir::UOp> variables = {}, const CaptureOptions& options = {});
  // Patches and submits; allocates nothing on one device that has buffer device addresses (without
  // them: see engine/jit/rebind.h). Same order as at capture, `values` by variables. An input may
  // be smaller than at capture where its extents vary: it has the elements that the values say.
  // InvalidArgument for a value outside its variable's bounds. DeviceLost, naming the device, if
  // one is lost or was lost during an earlier replay.
  void replay(std::span<const Ref<Buffer>> inputs, std::span<const int64_t> values = {});
  ReplayStats stats() const { return strategy_->stats(); }
  // In order, for the hazard checker.
  std::vector<const hcq::CommandGraph*> graphs() const { return strategy_->graphs(); }
  const SegmentedGraph* segmented() const { return segmented_; }  // null on one queue

 private:
  void note_written(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs);
  void choose_strategy(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                       const CaptureOptions& options);
  [[gnu::noinline]] void require_values(std::span<const int64_t> values) const;

  std::vector<ir::UOp> variables_;
  std::unique_ptr<ReplayStrategy> strategy_;
  const SegmentedGraph* segmented_ = nullptr;  // if that is the strategy
  std::vector<BoundCall> bounded_;             // with TUFF_CHECK_OOB: what replays report
  std::vector<bool> written_;                  // by input
  std::vector<uint64_t> addresses_, sizes_;    // of one replay's inputs
  std::vector<int64_t> values_;                // the variables', then the inputs' sizes
};

}  // namespace tuff::engine

// ReplayStrategy: how a captured graph replays its calls. One of runs.h, on one queue; segments.h,
// on several; validated.h, one call at a time. Chosen and called by CapturedGraph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/buffer.h"
#include "hcq/graph.h"

namespace tuff::engine {

// What one replay does. Submissions are those to devices' queues; host_submits those to the threads
// that copy between devices, host_copies the copies they make; peer_copies are those by a device
// that reaches another. rebind_copies: of inputs that are not where they were captured, on devices
// without buffer device addresses.
struct ReplayStats {
  uint32_t kernels = 0, copies = 0, submits_per_replay = 0, host_submits_per_replay = 0,
           barriers = 0, rebind_copies = 0, host_copies = 0, peer_copies = 0;
  uint64_t flops = 0, bytes = 0;
};

// What a replay is given: the inputs' memory, and the variables' values with, behind them, the
// inputs' sizes.
struct ReplayInputs {
  std::span<const Ref<Buffer>> buffers;
  std::span<const uint64_t> addresses, sizes;
  std::span<const int64_t> values;
};

class ReplayStrategy {
 public:
  virtual ~ReplayStrategy() = default;
  virtual void replay(const ReplayInputs& inputs) = 0;
  // As things stand: what replays may change are re-bound inputs, which come to be copied, and long
  // graphs, which are cut anew.
  virtual ReplayStats stats() const = 0;
  virtual std::vector<const hcq::CommandGraph*> graphs() const = 0;  // in order
};

}  // namespace tuff::engine

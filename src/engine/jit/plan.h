// SegmentPlan: how captured calls are spread over the queues of their devices and the host's, in
// segments that are submitted whole, and which of them wait for which. Edges come from the bytes
// that calls touch, not from their order. Called by segments.cpp. Submits nothing, allocates no
// device memory, knows no signals. Its rules: docs/design/multi-device.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/realize/linear.h"

namespace tuff::engine {

enum class QueueKind : uint8_t {
  Compute,
  Copy,
  Host,  // a thread that copies into memory of the device from another's
};
struct PlannedQueue {
  QueueKind kind = QueueKind::Compute;
  Device* device = nullptr;
};

// A call, or a part of a copy between devices that neither reaches: memory without a host pointer
// goes through a staging span, which a queue of its own device fills (StageOut) or empties
// (StageIn). A copy by a device that reaches the other's memory is whole.
struct PlannedWork {
  enum class Part : uint8_t { Whole, StageOut, HostCopy, StageIn };
  size_t call = 0;
  Part part = Part::Whole;
};

struct PlannedSegment {
  // Entry: no work; stands for all that the device's compute queue had before the replay. Exit: no
  // work either; the compute queue waits for what other queues do with the device's memory, so that
  // one timeline value says when all of it is over.
  enum class Role : uint8_t { Entry, Work, Exit };
  Role role = Role::Work;
  size_t queue = 0;
  std::vector<PlannedWork> work;
  std::vector<size_t> after;  // segments of other queues, of lower index; none implies another
  // Copies of inputs by a device's queue: their addresses are known at replay only.
  bool rebinds = false;
};

struct SegmentPlan {
  std::vector<PlannedQueue> queues;
  std::vector<PlannedSegment> segments;  // in the order of submission
  bool simple() const;                   // nothing but one device's compute queue
  bool patchable() const;                // every device has buffer device addresses
};

// A copy of a device's memory from copy_queue_bytes on goes to its copy queue, if it has one and
// there are kernels that neither make what is copied nor need the copy. Calls that only
// one queue can take give that queue alone: nothing has to be found out.
SegmentPlan plan_segments(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                          size_t copy_queue_bytes = kCopyQueueBytes);

}  // namespace tuff::engine

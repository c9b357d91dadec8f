// Bound calls as hcq takes them: a Launch or a Transfer, with what lies in a graph's inputs told by
// slot. Called by execute() and by captured graphs. Knows no queues.
#pragma once

#include <span>

#include "engine/realize/linear.h"
#include "hcq/launch.h"

namespace tuff::engine {

// The slot whose memory `b` lies in, or -1.
int32_t input_slot(const Buffer& b, std::span<const Ref<Buffer>> inputs);
hcq::LaunchOperand operand_of(Buffer& b, std::span<const Ref<Buffer>> inputs, bool read, bool write);
// Scalars and launch size as they are bound.
hcq::Launch launch_of(const BoundKernel& k, std::span<const Ref<Buffer>> inputs = {});
hcq::Transfer transfer_of(const BoundCopy& copy, std::span<const Ref<Buffer>> inputs = {});

}  // namespace tuff::engine

// RawReplay: the dispatches of a captured list written directly against a device's API, the floor
// that a CommandGraph's replay is measured against. Called by replay_bench. Must never go through
// hcq's queue: that is what it is compared with.
#pragma once

#include <cstdint>
#include <memory>

#include "hcq/device.h"

namespace tuff::devices {

// The list's programs, argument blocks and memory are shared with the graph it was captured in and
// must outlive this object. While it lives no other thread may submit to the device, but the graph's
// replays may take turns with run().
class RawReplay {
 public:
  virtual ~RawReplay() = default;
  // One launch of all dispatches, until they have completed.
  virtual void run() = 0;
  // Time that submissions to the device, the graph's included, have spent inside the driver's own
  // submit call since this object was made; 0 where there is no driver.
  virtual uint64_t driver_submit_ns() const = 0;
};

// `list`: direct dispatches and barriers, captured on a device of the kind.
using MakeRawReplay = std::unique_ptr<RawReplay>(hcq::Device& device, const hcq::CommandList& list);
MakeRawReplay cpu_raw_replay, amd_raw_replay, cuda_raw_replay, nv_raw_replay;
// Throws Unsupported without synchronization2, timelineSemaphore or bufferDeviceAddress.
MakeRawReplay vulkan_raw_replay;
// Null for kinds of devices where nothing is computed, or not as fast as can be.
MakeRawReplay* raw_replay_of(const hcq::Device& device);

}  // namespace tuff::devices

// RawReplay: the dispatches of a captured list written directly against a device's API, the floor
// that a CommandGraph's replay is measured against. Made through the registry's rows by
// `tuff bench` alone. Must never go through hcq's queue: that is what it is compared with.
#pragma once

#include <cstdint>

namespace tuff::devices {

// The list's programs, argument blocks and memory are shared with the graph it was captured in and
// must outlive this object. While it lives nobody else may submit to the device, but the graph's
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

}  // namespace tuff::devices

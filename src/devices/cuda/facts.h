// Facts: what a GPU says of itself before it is opened, and the Target and the description that
// follow. Used by who lists devices and by the device. Makes no context.
#pragma once

#include <string>
#include <vector>

#include "base/target.h"
#include "devices/cuda/api.h"
#include "hcq/device.h"

namespace tuff::devices::cuda {

struct Facts {
  CUdevice device = 0;
  std::string name, uuid, missing;  // missing: why it cannot be used; empty if it can
  int capability = 0;               // compute capability, 86 for 8.6
  int driver_version = 0;           // 12040: CUDA 12.4
  int multiprocessors = 0, copy_engines = 0, l2_bytes = 0, shared_bytes = 0;
  bool integrated = false;      // its memory is the host's
  bool has_watchdog = false;    // kernels that run long are ended
  bool registered_at_host_address = false;  // registered memory has one address for both
  uint64_t memory_bytes = 0;
  bool usable() const { return missing.empty(); }
  // The built-in Target whose code it runs: the newest that is not newer.
  std::string target_name() const;
};

// Every GPU, in the driver's order. Throws Unsupported where there is none.
std::vector<Facts> list_devices(const CudaApi& api);
hcq::DeviceInfo describe(const Facts& f, const std::string& name);
Target target_of(const Facts& f);

}  // namespace tuff::devices::cuda

// Facts: what one OpenCL device says of itself, what of it tuff uses, and the Target that follows.
// Used by probe and by the device. Opens nothing: no context, no queue.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/target.h"
#include "devices/opencl/api.h"
#include "hcq/device.h"

namespace tuff::devices::opencl {

// How buffers are given to kernels.
enum class MemoryTier : uint8_t {
  Buffers,    // memory objects, bound; the host sees none of them
  CoarseSvm,  // addresses; the host sees what it maps alone
  FineSvm,    // addresses that the host shares
};
const char* name(MemoryTier tier);

// Which queues a device offers, and which of them tuff uses: TUFF_CL_QUEUE, TUFF_CL_COPY_QUEUE and
// TUFF_CL_COMMAND_BUFFER, or what is faster where that is known.
struct QueueFacts {
  bool out_of_order = false;     // commands that need not wait for one another are not ordered
  bool copy_queue = false;       // copies have a queue of their own
  bool command_buffers = false;  // graphs are recorded where cl_khr_command_buffer can
  bool has_command_buffers = false;
  // What a queue must, and may, be created with for a command buffer to be recorded for it.
  cl_command_queue_properties recording_needs = 0;
  bool records_out_of_order = false;

  const char* order() const { return out_of_order ? "out-of-order" : "in-order"; }
  bool records(cl_command_queue_properties queue) const;
};

struct Facts {
  cl_device_id id = nullptr;
  std::string name, vendor, platform, version, driver, extensions, uuid;
  uint32_t opencl_c = 0;  // 102 for OpenCL C 1.2
  cl_device_type type = 0;
  bool full_profile = false, unified_memory = false, local_is_fast = false;
  uint32_t compute_units = 1, group_multiple = 1;
  size_t max_invocations = 1;
  std::array<size_t, 3> max_local{1, 1, 1};
  uint64_t memory_bytes = 0, allocation_bytes = 0, local_bytes = 0, cache_bytes = 0;
  size_t parameter_bytes = 0;
  cl_device_fp_config f16 = 0, f32 = 0, f64 = 0;
  MemoryTier tier = MemoryTier::Buffers;
  // The driver keeps what it has compiled on disk itself, by kernel and launch. To hand out a
  // binary it compiles every kernel once more, for launches that were not asked for.
  bool keeps_programs = false;
  QueueFacts queues;
  std::string missing;  // why it cannot be used, or empty

  bool usable() const { return missing.empty(); }
  // PoCL and Oclgrind are CPUs whatever else they claim.
  bool hardware() const { return !(type & CL_DEVICE_TYPE_CPU); }
  // Halves that round as tuff's do and keep what is small: others are computed as floats.
  bool has_f16() const {
    constexpr cl_device_fp_config kNeeded = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN | CL_FP_DENORM;
    return (f16 & kNeeded) == kNeeded;
  }
  int rank() const { return !hardware() ? 40 : type & CL_DEVICE_TYPE_GPU ? 150 : 140; }
  std::string build_options() const;
};

// Facts of one device, which need not be listed (a part of one).
Facts facts_of(const ClApi& api, cl_device_id id);
// Every device of every platform, the best first. Throws Unsupported where there is none.
std::vector<Facts> list_devices(const ClApi& api);
// Index of what a selector names: "", "0", "uuid=...", "name=...". InvalidArgument, Unsupported.
size_t select_device(const std::vector<Facts>& devices, const std::string& selector);
hcq::DeviceInfo describe(const Facts& f, const std::string& name);
Target target_of(const Facts& f);

}  // namespace tuff::devices::opencl

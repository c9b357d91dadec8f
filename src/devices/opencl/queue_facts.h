// QueueFacts: which queues a device offers, and which of them tuff uses: TUFF_CL_QUEUE,
// TUFF_CL_COPY_QUEUE and TUFF_CL_COMMAND_BUFFER, or what is faster where that is known. Part of
// Facts. Opens nothing.
#pragma once

#include <string>

#include "devices/opencl/api.h"

namespace tuff::devices::opencl {

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

// `software`: the device is a CPU; `pocl`: PoCL's. InvalidArgument for a variable's value that is
// none of those there are.
QueueFacts queue_facts(const ClApi& api, cl_device_id id, bool has_command_buffers, bool software,
                       bool pocl);

}  // namespace tuff::devices::opencl

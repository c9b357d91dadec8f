#include "devices/opencl/queue_facts.h"

#include <optional>

#include "base/env.h"

namespace tuff::devices::opencl {
namespace {

// What a device does not know stays 0.
cl_bitfield bits(const ClApi& api, cl_device_id id, cl_device_info what) {
  cl_bitfield value = 0;
  if (api.clGetDeviceInfo(id, what, sizeof value, &value, nullptr) != CL_SUCCESS) return 0;
  return value;
}

// Of a variable with two values; none where it is empty.
std::optional<bool> choice(Env variable, const char* yes) {
  const std::string text = env_text(variable);
  return text.empty() ? std::nullopt : std::optional(text == yes);
}

}  // namespace

bool QueueFacts::records(cl_command_queue_properties queue) const {
  return command_buffers && (queue & recording_needs) == recording_needs &&
         (records_out_of_order || !(queue & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));
}

QueueFacts queue_facts(const ClApi& api, cl_device_id id, bool has_command_buffers, bool software,
                       bool pocl) {
  const auto order = choice(Env::TUFF_CL_QUEUE, "out-of-order");
  const auto copies = choice(Env::TUFF_CL_COPY_QUEUE, "1");
  const auto buffers = choice(Env::TUFF_CL_COMMAND_BUFFER, "1");
  QueueFacts f;
  const bool offers_any_order =
      bits(api, id, CL_DEVICE_QUEUE_PROPERTIES) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  f.out_of_order = offers_any_order && order.value_or(software);
  f.copy_queue = copies.value_or(!software);
  f.has_command_buffers = has_command_buffers;
  // PoCL enqueues a buffer's commands one by one, behind the list's checks.
  f.command_buffers = has_command_buffers && buffers.value_or(!pocl);
  if (!has_command_buffers) return f;
  f.recording_needs = bits(api, id, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR);
  f.records_out_of_order = bits(api, id, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR) &
                           CL_COMMAND_BUFFER_CAPABILITY_OUT_OF_ORDER_KHR;
  return f;
}

}  // namespace tuff::devices::opencl

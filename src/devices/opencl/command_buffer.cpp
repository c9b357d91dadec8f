#include "devices/opencl/command_buffer.h"

#include "base/log.h"

namespace tuff::devices::opencl {

CommandBuffer::CommandBuffer(std::shared_ptr<Context> context, cl_command_queue queue)
    : context_(std::move(context)) {
  const ClApi& api = context_->api;
  if (!api.clCreateCommandBufferKHR || !api.clCommandNDRangeKernelKHR ||
      !api.clFinalizeCommandBufferKHR || !api.clEnqueueCommandBufferKHR ||
      !api.clReleaseCommandBufferKHR) {
    log_warn(
        "{}: it claims cl_khr_command_buffer and lacks a function of it: graphs are enqueued "
        "kernel by kernel",
        context_->name);
    good_ = false;
    return;
  }
  cl_int code = CL_SUCCESS;
  handle_ = api.clCreateCommandBufferKHR(1, &queue, nullptr, &code);
  check(code, "clCreateCommandBufferKHR");
}

CommandBuffer::~CommandBuffer() {
  if (handle_) context_->api.clReleaseCommandBufferKHR(handle_);
}

void CommandBuffer::check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  if (code == CL_OUT_OF_HOST_MEMORY) context_->check(code, call);
  log_warn("{}: {} returned {}: graphs are enqueued kernel by kernel", context_->name, call,
           error_name(code));
  good_ = false;
}

void CommandBuffer::add(cl_kernel kernel, const size_t global[3], const size_t local[3],
                        std::span<const uint32_t> after) {
  if (!good_) return;
  std::vector<cl_sync_point_khr> waits;
  for (const uint32_t a : after) waits.push_back(points_[a]);
  cl_sync_point_khr point = 0;
  check(context_->api.clCommandNDRangeKernelKHR(
            handle_, nullptr, nullptr, kernel, 3, nullptr, global, local, cl_uint(waits.size()),
            waits.empty() ? nullptr : waits.data(), &point, nullptr),
        "clCommandNDRangeKernelKHR");
  points_.push_back(point);
}

void CommandBuffer::finish() {
  if (good_) check(context_->api.clFinalizeCommandBufferKHR(handle_), "clFinalizeCommandBufferKHR");
}

}  // namespace tuff::devices::opencl

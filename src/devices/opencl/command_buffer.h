// CommandBuffer: launches that the driver has taken down once (cl_khr_command_buffer), enqueued by
// one call. Used by ClList. Knows nothing of argument blocks: what a kernel's arguments are when it
// is added is what it runs with.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "devices/opencl/context.h"

namespace tuff::devices::opencl {

class CommandBuffer {
 public:
  // For this queue alone, which has to allow it (QueueFacts::records).
  CommandBuffer(std::shared_ptr<Context> context, cl_command_queue queue);
  ~CommandBuffer();
  CommandBuffer(const CommandBuffer&) = delete;
  // False once the driver has refused something, which the log tells; nothing is lost by that.
  // Exhausted memory is thrown as OutOfMemory.
  bool good() const { return good_; }
  // `after`: launches of this buffer, counted from 0, that have to end before. Queues with an order
  // need none.
  void add(cl_kernel kernel, const size_t global[3], const size_t local[3],
           std::span<const uint32_t> after);
  void finish();
  cl_command_buffer_khr handle() const { return handle_; }

 private:
  void check(cl_int code, const char* call);

  std::shared_ptr<Context> context_;
  cl_command_buffer_khr handle_ = nullptr;
  std::vector<cl_sync_point_khr> points_;  // of each launch
  bool good_ = true;
};

}  // namespace tuff::devices::opencl

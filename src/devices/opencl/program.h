// ClProgram: a kernel as the driver has built it; those that were loaded together share one
// cl_program. Made by the loader, named by dispatches. Knows no queue.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

#include "devices/opencl/context.h"
#include "hcq/device.h"

namespace tuff::devices::opencl {

// A cl_program, released with its last owner.
using Built = std::shared_ptr<std::remove_pointer_t<cl_program>>;

// A kernel with arguments of its own.
class KernelObject {
 public:
  KernelObject(std::shared_ptr<Context> context, Built program, const std::string& symbol);
  ~KernelObject() { context_->api.clReleaseKernel(handle_); }
  KernelObject(const KernelObject&) = delete;
  cl_kernel handle() const { return handle_; }

 private:
  std::shared_ptr<Context> context_;
  Built program_;
  cl_kernel handle_;
};

class ClProgram final : public hcq::Program {
 public:
  ClProgram(std::shared_ptr<Context> context, const render::Binary& binary, Built built)
      : Program(binary),
        context_(std::move(context)),
        built_(std::move(built)),
        symbol_(binary.symbol),
        shared_(context_, built_, symbol_) {}
  std::unique_ptr<KernelObject> new_kernel() const {
    return std::make_unique<KernelObject>(context_, built_, symbol_);
  }
  // For launches that set all arguments, under the lock, until the launch is enqueued.
  cl_kernel shared_kernel() const { return shared_.handle(); }
  std::mutex& shared_lock() const { return mutex_; }

 private:
  std::shared_ptr<Context> context_;
  Built built_;
  std::string symbol_;
  KernelObject shared_;
  mutable std::mutex mutex_;
};

// In the order given; equal kernels are built once, all in one program. Throws CompileError with
// the kernel's name, the driver's log and the line of source that it speaks of.
std::vector<std::unique_ptr<hcq::Program>> load_programs(const std::shared_ptr<Context>& context,
                                                         std::span<const render::Binary> binaries);

}  // namespace tuff::devices::opencl

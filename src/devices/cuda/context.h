// Context: a GPU that is open: functions, facts, the process's primary context on it, which others
// in the process (PyTorch, say) share. Shared by all parts of the device. Knows nothing of queues.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "base/check.h"
#include "devices/cuda/facts.h"

namespace tuff::devices::cuda {

class Context {
 public:
  Context(const CudaApi& api, Facts facts, std::string name);
  ~Context();
  Context(const Context&) = delete;
  CUcontext handle() const { return handle_; }

  // What a call returned that has done nothing where it failed. OutOfMemory, or as require().
  void check(CUresult code, const char* call) const;
  // What a call returned behind others that cannot be taken back: whatever failed, the device is
  // given up, and DeviceLost names the call.
  void require(CUresult code, const char* call) const;
  // What a call of a destructor returned. Errors that the context has had before are repeated by
  // every call: of no matter.
  void release(CUresult code, const char* call) const noexcept;
  // Told why the device is given up, before DeviceLost is thrown.
  void on_loss(std::function<void(const std::string&)> lost) { lost_ = std::move(lost); }

  // The device has been given up. Where nothing runs any more, since the context has had an error
  // that ends it, destructors go on as ever; else something may run for ever, and what would wait
  // for it (cuMemFree does) is never called: the memory stays until the process ends.
  void give_up() noexcept {
    if (!dead_.load(std::memory_order_acquire)) abandoned_.store(true, std::memory_order_release);
  }
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

  const CudaApi& api;
  const Facts facts;
  const std::string name;

 private:
  CUcontext handle_ = nullptr;
  std::function<void(const std::string&)> lost_;
  mutable std::atomic<bool> dead_{false};
  std::atomic<bool> abandoned_{false};
};

// Makes the context this thread's for the life of the object, and then what another in the process
// had made so again. A thread that had none keeps it.
class Current {
 public:
  explicit Current(const Context& context);
  // For destructors: false where there is nothing to be released any more.
  Current(const Context& context, std::nothrow_t) noexcept;
  ~Current();
  Current(const Current&) = delete;
  explicit operator bool() const { return set_; }

 private:
  CUresult set() noexcept;
  const Context& context_;
  CUcontext before_ = nullptr;
  bool set_ = false;
};

}  // namespace tuff::devices::cuda

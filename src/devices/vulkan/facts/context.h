// Context: one VkDevice with its function table, shared by everything made from it, so that the
// VkDevice goes last whatever the order of destruction. Used by memory, program and queue.
// Knows results and the lost state, nothing of buffers, kernels or lists.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "devices/vulkan/facts/facts.h"

namespace tuff::devices::vulkan {

// A VkDevice that an application lends with a queue.
struct LentDevice {
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::function<void()> lock_queue, unlock_queue;  // both or none
  bool exportable_memory = false;
};

class Context {
 public:
  // With a device of its own, or on one that is lent: it destroys neither that nor waits for
  // anything else than tuff's own work.
  Context(std::shared_ptr<Instance> instance, Facts facts, std::string name, LentDevice lent = {});
  ~Context();
  Context(const Context&) = delete;

  // VK_SUCCESS passes. DEVICE_LOST is remembered and thrown as DeviceLost, OUT_OF_* as OutOfMemory,
  // anything else as Error; the text names device, call and `what`.
  void check(VkResult result, const char* call) {
    if (result != VK_SUCCESS) throw_failed(result, call, {});
  }
  void check(VkResult result, const char* call, const std::string& what) {
    if (result != VK_SUCCESS) throw_failed(result, call, what);
  }
  void require_alive() {  // throws DeviceLost once the device has been lost
    if (lost()) throw_lost();
  }
  // Before objects are destroyed: what the driver calls lost may still be running. Waiting for a
  // lost device ends in finite time (Vulkan specification, "Lost Device").
  void settle() noexcept;
  // A device that makes no progress may never do so again, and drivers wait for it when objects are
  // destroyed: from now on nothing is destroyed any more, the instance included.
  void abandon() noexcept;
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  const std::shared_ptr<Instance> instance;
  const Facts facts;
  const std::string name;  // "VULKAN:0"
  VkApi api;
  const LentDevice lent;  // with a null device: the context's own
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;  // guarded by the Queue's lock, and by the lender's

 private:
  void create_device();
  [[noreturn]] void throw_failed(VkResult result, const char* call, const std::string& what);
  [[noreturn]] void throw_lost();
  std::atomic<bool> lost_{false}, abandoned_{false};
  std::mutex mutex_;
  std::string lost_text_;
};

// Held around what Vulkan wants synchronized for a queue.
class QueueGuard {
 public:
  explicit QueueGuard(const Context& context) : lent_(context.lent) {
    if (lent_.lock_queue) [[unlikely]]
      lent_.lock_queue();
  }
  ~QueueGuard() {
    if (lent_.unlock_queue) [[unlikely]]
      lent_.unlock_queue();
  }
  QueueGuard(const QueueGuard&) = delete;

 private:
  const LentDevice& lent_;
};

}  // namespace tuff::devices::vulkan

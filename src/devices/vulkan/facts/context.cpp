#include "devices/vulkan/facts/context.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <thread>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"

namespace tuff::devices::vulkan {

Context::Context(std::shared_ptr<Instance> shared_instance, Facts known, std::string device_name,
                 LentDevice lent_device)
    : instance(std::move(shared_instance)),
      facts(std::move(known)),
      name(std::move(device_name)),
      api(instance->api),
      lent(std::move(lent_device)),
      device(lent.device),
      queue(lent.queue) {
  if (device)
    load_device(api, instance->handle, device);
  else
    create_device();
}

void Context::create_device() {
  FeatureChain features(facts.version, facts.extensions);
  features.enable(facts.caps);
  auto extensions = extensions_to_enable(facts);
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue_info.queueFamilyIndex = facts.queue_family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features.base;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice created = VK_NULL_HANDLE;
  check(api.vkCreateDevice(facts.handle, &info, nullptr, &created), "vkCreateDevice");
  try {
    load_device(api, instance->handle, created);
  } catch (...) {
    if (api.vkDestroyDevice) api.vkDestroyDevice(created, nullptr);
    throw;
  }
  device = created;
  api.vkGetDeviceQueue(device, facts.queue_family, 0, &queue);
}

Context::~Context() {
  if (device && !lent.device) api.vkDestroyDevice(device, nullptr);
}

// Work that waits for a signal which is never raised never ends, and vkDeviceWaitIdle knows no
// time-out: a thread of its own waits, and is left behind with the device if it does not come back.
void Context::settle() noexcept {
  constexpr int64_t kPatienceMs = 5000;
  if (!lost()) return;
  // To wait for the whole device takes all of its queues, of which the others are the lender's.
  if (lent.device) return abandon();
  try {
    auto idle = std::make_shared<std::promise<void>>();
    std::future<void> ended = idle->get_future();
    std::thread([wait = api.vkDeviceWaitIdle, handle = device, idle] {
      wait(handle);
      idle->set_value();
    }).detach();
    const std::chrono::milliseconds limit(std::min(env_int(Env::TUFF_TIMEOUT_MS), kPatienceMs));
    if (ended.wait_for(limit) == std::future_status::ready) return;
    log_warn("{}: its driver holds work that does not end; the device is abandoned", name);
  } catch (const std::exception&) {
    // No thread to be had: not waiting is the safe side.
  }
  abandon();
}

void Context::abandon() noexcept {
  abandoned_.store(true, std::memory_order_release);
  // Its threads stay in the driver, which is unloaded with its last instance: one is never let go.
  (void)new (std::nothrow) std::shared_ptr<Instance>(instance);
  api.vkDeviceWaitIdle = [](VkDevice) { return VK_ERROR_DEVICE_LOST; };
  api.vkDestroyDevice = [](auto...) {};
  api.vkFreeMemory = [](auto...) {};
  api.vkUnmapMemory = [](auto...) {};
  api.vkDestroyBuffer = [](auto...) {};
  api.vkDestroyShaderModule = [](auto...) {};
  api.vkDestroyPipelineLayout = [](auto...) {};
  api.vkDestroyPipelineCache = [](auto...) {};
  api.vkDestroyPipeline = [](auto...) {};
  api.vkDestroyCommandPool = [](auto...) {};
  api.vkDestroyQueryPool = [](auto...) {};
  api.vkDestroySemaphore = [](auto...) {};
  api.vkDestroyFence = [](auto...) {};
  api.vkDestroyDescriptorPool = [](auto...) {};
  api.vkDestroyDescriptorSetLayout = [](auto...) {};
}

void Context::throw_lost() {
  std::lock_guard lock(mutex_);
  throw DeviceLost(lost_text_);
}

void Context::throw_failed(VkResult result, const char* call, const std::string& what) {
  std::string text = fmt::format("{} ({}): {} returned {}{}", name, facts.properties.deviceName,
                                 call, result_name(result), what.empty() ? "" : " for " + what);
  if (result == VK_ERROR_DEVICE_LOST) {
    {
      std::lock_guard lock(mutex_);
      if (lost_text_.empty())
        lost_text_ = text + "; the device stays lost until it is opened again";
    }
    lost_.store(true, std::memory_order_release);
    throw_lost();
  }
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_TOO_MANY_OBJECTS) {
    throw OutOfMemory(text);
  }
  if (result == VK_ERROR_FEATURE_NOT_PRESENT) throw Unsupported(text);
  throw Error(text);
}

}  // namespace tuff::devices::vulkan

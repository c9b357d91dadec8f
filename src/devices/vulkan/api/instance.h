// Instance: the Vulkan loader and one VkInstance, shared by all devices that are open at a time.
// Used by device selection and Context. Knows of layers and messages, nothing of compute.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/vulkan/api/api.h"

namespace tuff::devices::vulkan {

class Instance {
 public:
  // The live instance, or a new one. Throws Unsupported with reason and remedy where the loader or
  // every driver is missing.
  static std::shared_ptr<Instance> acquire();
  // A new one through the first of these loader libraries; for acquire() and tests.
  static std::shared_ptr<Instance> open(std::span<const std::string> loader_names, bool validation);
  // Over an application's VkInstance, which it destroys itself; `entry` may be null. Throws
  // Unsupported where the loader or a function is missing.
  static std::shared_ptr<Instance> adopt(VkInstance handle, uint32_t api_version,
                                         PFN_vkGetInstanceProcAddr entry);
  Instance() = default;
  ~Instance();
  Instance(const Instance&) = delete;

  VkApi api;  // global and instance levels
  VkInstance handle = VK_NULL_HANDLE;
  uint32_t version = VK_API_VERSION_1_0;
  bool debug_utils = false;
  bool validation = false;
  bool owned = true;

 private:
  void create(bool want_validation);
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
};

uint64_t validation_message_count();

}  // namespace tuff::devices::vulkan

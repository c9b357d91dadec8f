// VkApi: the table of Vulkan functions, loaded at run time level by level.
// Every call in this driver goes through one; tests exchange entries to count or to fail them.
// Must never link against the loader, and holds no state but pointers.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <string>

#include "devices/vulkan/api/cooperative_matrix.h"

namespace tuff::devices {

struct VkApi {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
#define TUFF_VK_GLOBAL(name) PFN_##name name = nullptr;
#define TUFF_VK_INSTANCE(name) PFN_##name name = nullptr;
#define TUFF_VK_INSTANCE_OPTIONAL(name, suffix) PFN_##name name = nullptr;
#define TUFF_VK_DEVICE(name) PFN_##name name = nullptr;
#define TUFF_VK_DEVICE_OPTIONAL(name, suffix) PFN_##name name = nullptr;
#include "devices/vulkan/api/functions.def"
#undef TUFF_VK_GLOBAL
#undef TUFF_VK_INSTANCE
#undef TUFF_VK_INSTANCE_OPTIONAL
#undef TUFF_VK_DEVICE
#undef TUFF_VK_DEVICE_OPTIONAL
};

namespace vulkan {

// Each throws Unsupported naming the first function that must be there and is not.
void load_global(VkApi& api, PFN_vkGetInstanceProcAddr entry);
void load_instance(VkApi& api, VkInstance instance);
void load_device(VkApi& api, VkInstance instance, VkDevice device);

std::string result_name(VkResult result);

}  // namespace vulkan
}  // namespace tuff::devices

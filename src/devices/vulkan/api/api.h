// VkApi: the table of Vulkan functions, loaded at run time level by level.
// Every call in this driver goes through one; tests exchange entries to count or to fail them.
// Must never link against the loader, and holds no state but pointers.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/cooperative_matrix.h"

namespace tuff::devices {

struct VkApi {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
#define TUFF_VK(level, name, otherwise) PFN_##name name = nullptr;
#include "devices/vulkan/api/functions.def"
};

namespace vulkan {

// Each throws Unsupported naming the first function that must be there and is not.
void load_global(VkApi& api, PFN_vkGetInstanceProcAddr entry);
void load_instance(VkApi& api, VkInstance instance);
void load_device(VkApi& api, VkInstance instance, VkDevice device);

std::string result_name(VkResult result);

// What a call gives that is asked first for the number of elements and then for them; `empty` is an
// element before it is filled.
template <class T, class Call>
std::vector<T> enumerate(Call&& call, const T& empty = {}) {
  uint32_t count = 0;
  call(&count, static_cast<T*>(nullptr));
  std::vector<T> all(count, empty);
  call(&count, all.data());
  all.resize(std::min<size_t>(count, all.size()));
  return all;
}

}  // namespace vulkan
}  // namespace tuff::devices

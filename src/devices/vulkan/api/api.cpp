#include "devices/vulkan/api/api.h"

#include "base/check.h"

namespace tuff::devices::vulkan {
namespace {

template <class Get, class Fn>
void load_one(Get&& get, Fn& slot, const char* name, const char* suffix, bool required) {
  slot = reinterpret_cast<Fn>(get(name));
  if (!slot && suffix && *suffix)
    slot = reinterpret_cast<Fn>(get((std::string(name) + suffix).c_str()));
  if (!slot && required) fail<Unsupported>("the Vulkan driver lacks the function {}", name);
}

}  // namespace

#define TUFF_VK_GLOBAL(name)
#define TUFF_VK_INSTANCE(name)
#define TUFF_VK_INSTANCE_OPTIONAL(name, suffix)
#define TUFF_VK_DEVICE(name)
#define TUFF_VK_DEVICE_OPTIONAL(name, suffix)

void load_global(VkApi& api, PFN_vkGetInstanceProcAddr entry) {
  api.vkGetInstanceProcAddr = entry;
  auto get = [&](const char* name) { return entry(nullptr, name); };
#undef TUFF_VK_GLOBAL
#define TUFF_VK_GLOBAL(name) load_one(get, api.name, #name, nullptr, true);
#include "devices/vulkan/api/functions.def"
#undef TUFF_VK_GLOBAL
#define TUFF_VK_GLOBAL(name)
}

void load_instance(VkApi& api, VkInstance instance) {
  auto get = [&](const char* name) { return api.vkGetInstanceProcAddr(instance, name); };
#undef TUFF_VK_INSTANCE
#undef TUFF_VK_INSTANCE_OPTIONAL
#define TUFF_VK_INSTANCE(name) load_one(get, api.name, #name, nullptr, true);
#define TUFF_VK_INSTANCE_OPTIONAL(name, suffix) load_one(get, api.name, #name, suffix, false);
#include "devices/vulkan/api/functions.def"
#undef TUFF_VK_INSTANCE
#undef TUFF_VK_INSTANCE_OPTIONAL
#define TUFF_VK_INSTANCE(name)
#define TUFF_VK_INSTANCE_OPTIONAL(name, suffix)
}

void load_device(VkApi& api, VkInstance instance, VkDevice device) {
  // Functions of debug_utils belong to an instance extension; some loaders give them only there.
  auto get = [&](const char* name) -> PFN_vkVoidFunction {
    if (auto fn = api.vkGetDeviceProcAddr(device, name)) return fn;
    bool debug_utils = std::string(name).find("DebugUtils") != std::string::npos;
    return debug_utils ? api.vkGetInstanceProcAddr(instance, name) : nullptr;
  };
#undef TUFF_VK_DEVICE
#undef TUFF_VK_DEVICE_OPTIONAL
#define TUFF_VK_DEVICE(name) load_one(get, api.name, #name, nullptr, true);
#define TUFF_VK_DEVICE_OPTIONAL(name, suffix) load_one(get, api.name, #name, suffix, false);
#include "devices/vulkan/api/functions.def"
}

std::string result_name(VkResult result) {
  switch (result) {
#define TUFF_VK_RESULT(name) \
  case name: return #name;
    TUFF_VK_RESULT(VK_SUCCESS)
    TUFF_VK_RESULT(VK_NOT_READY)
    TUFF_VK_RESULT(VK_TIMEOUT)
    TUFF_VK_RESULT(VK_INCOMPLETE)
    TUFF_VK_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    TUFF_VK_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    TUFF_VK_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    TUFF_VK_RESULT(VK_ERROR_DEVICE_LOST)
    TUFF_VK_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    TUFF_VK_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    TUFF_VK_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    TUFF_VK_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    TUFF_VK_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    TUFF_VK_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    TUFF_VK_RESULT(VK_ERROR_FRAGMENTED_POOL)
    TUFF_VK_RESULT(VK_ERROR_UNKNOWN)
    TUFF_VK_RESULT(VK_ERROR_INVALID_SHADER_NV)
    TUFF_VK_RESULT(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)
    TUFF_VK_RESULT(VK_PIPELINE_COMPILE_REQUIRED)
#undef TUFF_VK_RESULT
    default: return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

}  // namespace tuff::devices::vulkan

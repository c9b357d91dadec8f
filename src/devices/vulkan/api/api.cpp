#include "devices/vulkan/api/api.h"

#include <utility>

#include "base/check.h"

namespace tuff::devices::vulkan {
namespace {

enum class Level : uint8_t { Global, Instance, Device };
constexpr const char* kRequired = nullptr;

template <class Get, class Fn>
void load_one(Get&& get, Fn& slot, const char* name, const char* otherwise) {
  slot = reinterpret_cast<Fn>(get(name));
  if (!slot && otherwise && *otherwise)
    slot = reinterpret_cast<Fn>(get((std::string(name) + otherwise).c_str()));
  if (!slot && !otherwise) fail<Unsupported>("the Vulkan driver lacks the function {}", name);
}

template <Level kLevel, class Get>
void load(VkApi& api, Get&& get) {
#define TUFF_VK(level, name, otherwise) \
  if constexpr (Level::level == kLevel) load_one(get, api.name, #name, otherwise);
#include "devices/vulkan/api/functions.def"
}

}  // namespace

void load_global(VkApi& api, PFN_vkGetInstanceProcAddr entry) {
  api.vkGetInstanceProcAddr = entry;
  load<Level::Global>(api, [&](const char* name) { return entry(nullptr, name); });
}

void load_instance(VkApi& api, VkInstance instance) {
  load<Level::Instance>(
      api, [&](const char* name) { return api.vkGetInstanceProcAddr(instance, name); });
}

void load_device(VkApi& api, VkInstance instance, VkDevice device) {
  // Functions of debug_utils belong to an instance extension; some loaders give them only there.
  load<Level::Device>(api, [&](const char* name) -> PFN_vkVoidFunction {
    if (auto fn = api.vkGetDeviceProcAddr(device, name)) return fn;
    bool debug_utils = std::string(name).find("DebugUtils") != std::string::npos;
    return debug_utils ? api.vkGetInstanceProcAddr(instance, name) : nullptr;
  });
}

std::string result_name(VkResult result) {
#define TUFF_VK_RESULT(name) {name, #name}
  static constexpr std::pair<VkResult, const char*> kNames[] = {
      TUFF_VK_RESULT(VK_SUCCESS), TUFF_VK_RESULT(VK_NOT_READY), TUFF_VK_RESULT(VK_TIMEOUT),
      TUFF_VK_RESULT(VK_INCOMPLETE), TUFF_VK_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY),
      TUFF_VK_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY), TUFF_VK_RESULT(VK_ERROR_INITIALIZATION_FAILED),
      TUFF_VK_RESULT(VK_ERROR_DEVICE_LOST), TUFF_VK_RESULT(VK_ERROR_MEMORY_MAP_FAILED),
      TUFF_VK_RESULT(VK_ERROR_LAYER_NOT_PRESENT), TUFF_VK_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT),
      TUFF_VK_RESULT(VK_ERROR_FEATURE_NOT_PRESENT), TUFF_VK_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER),
      TUFF_VK_RESULT(VK_ERROR_TOO_MANY_OBJECTS), TUFF_VK_RESULT(VK_ERROR_FRAGMENTED_POOL),
      TUFF_VK_RESULT(VK_ERROR_UNKNOWN), TUFF_VK_RESULT(VK_ERROR_INVALID_SHADER_NV),
      TUFF_VK_RESULT(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS),
      TUFF_VK_RESULT(VK_PIPELINE_COMPILE_REQUIRED)};
#undef TUFF_VK_RESULT
  for (const auto& [code, name] : kNames)
    if (code == result) return name;
  return fmt::format("VkResult {}", static_cast<int>(result));
}

}  // namespace tuff::devices::vulkan

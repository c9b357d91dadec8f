#include "devices/vulkan/api/instance.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

namespace tuff::devices::vulkan {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
std::atomic<uint64_t> g_messages{0};

std::vector<std::string> loaders() { return {"libvulkan.so.1", "libvulkan.so"}; }

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  g_messages.fetch_add(1, std::memory_order_relaxed);
  bool error = severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  log_line(error ? LogLevel::Error : LogLevel::Warn,
           fmt::format("vulkan validation: {}", data->pMessage));
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info() {
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  // GENERAL messages speak of the loader and of drivers that are not ours to mend.
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  return info;
}

bool has_layer(const VkApi& api, const char* name) {
  return std::ranges::any_of(enumerate<VkLayerProperties>(api.vkEnumerateInstanceLayerProperties),
                             [&](const auto& l) { return !std::strcmp(l.layerName, name); });
}

PFN_vkGetInstanceProcAddr open_loader(std::span<const std::string> names) {
  std::string why;
  auto library = os::Library::open(names, &why);
  if (!library) {
    fail<Unsupported>("no Vulkan loader: install libvulkan1 (Debian, Ubuntu) or vulkan-loader ({})",
                      why);
  }
  auto entry =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(library->symbol("vkGetInstanceProcAddr"));
  if (!entry)
    fail<Unsupported>("the Vulkan loader exports no vkGetInstanceProcAddr: reinstall libvulkan1");
  return entry;
}

}  // namespace

uint64_t validation_message_count() { return g_messages.load(std::memory_order_relaxed); }

std::shared_ptr<Instance> Instance::acquire() {
  static std::mutex mutex;
  // The first one without validation lives as long as the process, on purpose: NVIDIA's driver can
  // be loaded and unloaded some 15 times, after which the loader finds none (580.159).
  static auto& kept = *new std::shared_ptr<Instance>;
  static std::weak_ptr<Instance> validating;
  std::lock_guard lock(mutex);
  if (!kept) kept = open(loaders(), false);
  if (!env_flag(Env::TUFF_VK_VALIDATION)) return kept;
  auto instance = validating.lock();
  if (!instance) validating = instance = open(loaders(), true);
  return instance;
}

std::shared_ptr<Instance> Instance::open(std::span<const std::string> loader_names,
                                         bool validation) {
  auto instance = std::make_shared<Instance>();
  load_global(instance->api, open_loader(loader_names));
  instance->create(validation);
  load_instance(instance->api, instance->handle);
  if (instance->validation && instance->api.vkCreateDebugUtilsMessengerEXT) {
    const auto info = messenger_info();
    instance->api.vkCreateDebugUtilsMessengerEXT(instance->handle, &info, nullptr,
                                                 &instance->messenger_);
  }
  return instance;
}

std::shared_ptr<Instance> Instance::adopt(VkInstance handle, uint32_t api_version,
                                          PFN_vkGetInstanceProcAddr entry) {
  auto instance = std::make_shared<Instance>();
  instance->owned = false;
  instance->handle = handle;
  instance->version = api_version;
  instance->api.vkGetInstanceProcAddr = entry ? entry : open_loader(loaders());
  load_instance(instance->api, handle);
  return instance;
}

void Instance::create(bool want_validation) {
  api.vkEnumerateInstanceVersion(&version);
  validation = want_validation && has_layer(api, kValidationLayer);
  if (want_validation && !validation) {
    log_warn("TUFF_VK_VALIDATION: {} is not installed (Debian: vulkan-validationlayers)",
             kValidationLayer);
  }
  const auto found = enumerate<VkExtensionProperties>([&](uint32_t* count, auto* all) {
    return api.vkEnumerateInstanceExtensionProperties(nullptr, count, all);
  });
  std::vector<const char*> names;
  const auto take = [&](const char* name) {
    const bool offered = std::ranges::any_of(
        found, [&](const auto& e) { return !std::strcmp(e.extensionName, name); });
    if (offered) names.push_back(name);
    return offered;
  };
  debug_utils = take(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  const bool portability = take(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);

  VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  app.pApplicationName = app.pEngineName = "tuff";
  app.apiVersion = std::min<uint32_t>(version, VK_API_VERSION_1_3);
  // Also covers vkCreateInstance and vkDestroyInstance themselves.
  auto messages = messenger_info();
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pNext = validation && debug_utils ? &messages : nullptr;
  info.flags = portability ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0;
  info.pApplicationInfo = &app;
  info.enabledLayerCount = validation ? 1 : 0;
  info.ppEnabledLayerNames = &kValidationLayer;
  info.enabledExtensionCount = static_cast<uint32_t>(names.size());
  info.ppEnabledExtensionNames = names.data();
  VkResult result = api.vkCreateInstance(&info, nullptr, &handle);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    fail<Unsupported>(
        "the Vulkan loader found no driver (ICD): install mesa-vulkan-drivers or the GPU vendor's "
        "driver");
  }
  if (result != VK_SUCCESS) fail<Unsupported>("vkCreateInstance returned {}", result_name(result));
}

Instance::~Instance() {
  if (messenger_) api.vkDestroyDebugUtilsMessengerEXT(handle, messenger_, nullptr);
  if (handle && owned) api.vkDestroyInstance(handle, nullptr);
}

}  // namespace tuff::devices::vulkan

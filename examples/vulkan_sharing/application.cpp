#include "vulkan_sharing/application.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <stdexcept>

#include "line.spv.h"

#include <tuff/interop/vulkan.h>

namespace application {
namespace {

constexpr uint32_t kVersion = VK_API_VERSION_1_3;
std::atomic<uint64_t> message_count{0};

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  message_count++;
  std::fprintf(stderr, "validation: %s\n", data->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info() {
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  return info;
}

// A type that the host sees and that may lie beneath the buffer.
uint32_t host_type(const Application& app, uint32_t type_bits) {
  constexpr VkMemoryPropertyFlags kWanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkPhysicalDeviceMemoryProperties memory{};
  app.vk.vkGetPhysicalDeviceMemoryProperties(app.physical_device, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
    if ((type_bits & (1u << i)) && (memory.memoryTypes[i].propertyFlags & kWanted) == kWanted)
      return i;
  }
  throw std::runtime_error("no memory that the host sees");
}

}  // namespace

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS)
    throw std::runtime_error(std::string(call) + " returned " + std::to_string(result));
}

uint64_t Application::messages() { return message_count; }

Application::Application(const Options& options) : options_(options) {
  void* loader = ::dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!loader) throw std::runtime_error("no Vulkan loader: install libvulkan1");
  entry_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(::dlsym(loader, "vkGetInstanceProcAddr"));
  create_instance();
  uint32_t count = 1;
  vk.vkEnumeratePhysicalDevices(instance, &count, &physical_device);
  if (count == 0) throw std::runtime_error("no Vulkan device: install a Vulkan driver");
  create_device();
}

void Application::create_instance() {
  VkApplicationInfo app{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  app.pApplicationName = "application";
  app.apiVersion = kVersion;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  const VkDebugUtilsMessengerCreateInfoEXT messages = messenger_info();
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &app;
  if (options_.validation) {
    info.pNext = &messages;
    info.enabledLayerCount = info.enabledExtensionCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.ppEnabledExtensionNames = &extension;
  }
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(entry_(VK_NULL_HANDLE, "vkCreateInstance"));
  check(create(&info, nullptr, &instance), "vkCreateInstance");
#define X(name) vk.name = reinterpret_cast<PFN_##name>(entry_(instance, #name));
#include "vulkan_sharing/functions.def"
#undef X
  if (!options_.validation) return;
  const auto watch = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      entry_(instance, "vkCreateDebugUtilsMessengerEXT"));
  check(watch(instance, &messages, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

// The part that concerns tuff: its extensions and features are enabled beside the application's.
void Application::create_device() {
  needs = tuff::interop::vulkan_needs(instance, physical_device, kVersion);
  extensions_ = needs.extensions;
  enabled_ = needs.features;
  const auto has = [this](const char* name) {
    return std::count(needs.feature_names.begin(), needs.feature_names.end(), name) > 0;
  };
  if (options_.features == Options::Features::Timeline) {
    timeline_ = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, nullptr, VK_TRUE};
    enabled_ = &timeline_;
  } else if (options_.features == Options::Features::None) {
    enabled_ = nullptr;
  } else if (options_.by_version) {
    features13_ = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    features13_.synchronization2 = has("synchronization2");
    features12_ = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &features13_};
    features12_.timelineSemaphore = has("timelineSemaphore");
    features12_.bufferDeviceAddress = has("bufferDeviceAddress");
    features12_.shaderFloat16 = has("shaderFloat16");
    features12_.shaderInt8 = has("shaderInt8");
    features12_.storageBuffer8BitAccess = has("storageBuffer8BitAccess");
    features11_ = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &features12_};
    features11_.storageBuffer16BitAccess = has("storageBuffer16BitAccess");
    features2_ = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &features11_,
                  needs.features->features};
    enabled_ = &features2_;
  }
  const float priority = 1;
  VkDeviceQueueCreateInfo queues{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queues.queueFamilyIndex = needs.queue_family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = enabled_;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queues;
  info.enabledExtensionCount = uint32_t(extensions_.size());
  info.ppEnabledExtensionNames = extensions_.data();
  check(vk.vkCreateDevice(physical_device, &info, nullptr, &device), "vkCreateDevice");
  vk.vkGetDeviceQueue(device, needs.queue_family, 0, &queue);
}

tuff::interop::VulkanApplication Application::lend() {
  tuff::interop::VulkanApplication a;
  a.instance = instance;
  a.physical_device = physical_device;
  a.device = device;
  a.queue = queue;
  a.queue_family = needs.queue_family;
  a.api_version = kVersion;
  a.extensions.assign(extensions_.begin(), extensions_.end());
  a.features = enabled_;
  a.lock_queue = [this] {
    queue_mutex.lock();
    locks++;
  };
  a.unlock_queue = [this] { queue_mutex.unlock(); };
  a.exportable_memory = options_.exportable_memory;
  return a;
}

Application::~Application() {
  for (VkSemaphore s : semaphores_) vk.vkDestroySemaphore(device, s, nullptr);
  if (device) vk.vkDestroyDevice(device, nullptr);
  if (messenger_) {
    reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        entry_(instance, "vkDestroyDebugUtilsMessengerEXT"))(instance, messenger_, nullptr);
  }
  if (instance) vk.vkDestroyInstance(instance, nullptr);
}

VkSemaphore Application::create_timeline() {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  check(vk.vkCreateSemaphore(device, &info, nullptr, &semaphore), "vkCreateSemaphore");
  semaphores_.push_back(semaphore);
  return semaphore;
}

void Application::wait(tuff::interop::VulkanPoint point) const {
  constexpr uint64_t kTimeoutNs = 60'000'000'000;
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &point.semaphore;
  info.pValues = &point.value;
  check(vk.vkWaitSemaphores(device, &info, kTimeoutNs), "vkWaitSemaphores");
}

void Application::raise(tuff::interop::VulkanPoint point) const {
  VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
  info.semaphore = point.semaphore;
  info.value = point.value;
  check(vk.vkSignalSemaphore(device, &info), "vkSignalSemaphore");
}

Buffer::Buffer(Application& app, size_t bytes, VkBufferUsageFlags flags, size_t at)
    : size_bytes(bytes), memory_offset(at), usage(flags), app_(app) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size_bytes;
  info.usage = usage;
  check(app.vk.vkCreateBuffer(app.device, &info, nullptr, &buffer), "vkCreateBuffer");
  VkMemoryRequirements wanted{};
  app.vk.vkGetBufferMemoryRequirements(app.device, buffer, &wanted);
  VkMemoryAllocateFlagsInfo flags_info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags_info.flags = app.needs.allocate_flags;
  VkMemoryAllocateInfo allocation{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  if (usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) allocation.pNext = &flags_info;
  allocation.allocationSize = memory_bytes = wanted.size + memory_offset;
  allocation.memoryTypeIndex = type_index = host_type(app, wanted.memoryTypeBits);
  check(app.vk.vkAllocateMemory(app.device, &allocation, nullptr, &memory), "vkAllocateMemory");
  check(app.vk.vkBindBufferMemory(app.device, buffer, memory, memory_offset), "vkBindBufferMemory");
  check(app.vk.vkMapMemory(app.device, memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
}

Buffer::~Buffer() {
  app_.vk.vkDestroyBuffer(app_.device, buffer, nullptr);
  app_.vk.vkFreeMemory(app_.device, memory, nullptr);
}

tuff::interop::VulkanBuffer Buffer::lend(size_t offset) const {
  tuff::interop::VulkanBuffer b;
  b.buffer = buffer;
  b.size_bytes = size_bytes;
  b.usage = usage;
  b.offset = offset;
  b.memory = memory;
  return b;
}

Shader::Shader(Application& app, const Buffer& buffer) : app_(app) {
  create_pipeline();
  bind(buffer);
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = app_.needs.queue_family;
  check(app_.vk.vkCreateCommandPool(app_.device, &pool, nullptr, &commands_),
        "vkCreateCommandPool");
}

void Shader::create_pipeline() {
  VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                       VK_SHADER_STAGE_COMPUTE_BIT};
  VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = 1;
  set.pBindings = &binding;
  check(app_.vk.vkCreateDescriptorSetLayout(app_.device, &set, nullptr, &set_layout_),
        "vkCreateDescriptorSetLayout");
  const VkPushConstantRange constants{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Line)};
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &constants;
  check(app_.vk.vkCreatePipelineLayout(app_.device, &layout, nullptr, &layout_),
        "vkCreatePipelineLayout");
  VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  code.codeSize = sizeof line_spv;
  code.pCode = line_spv;
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  info.layout = layout_;
  check(app_.vk.vkCreateShaderModule(app_.device, &code, nullptr, &info.stage.module),
        "vkCreateShaderModule");
  check(
      app_.vk.vkCreateComputePipelines(app_.device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_),
      "vkCreateComputePipelines");
  app_.vk.vkDestroyShaderModule(app_.device, info.stage.module, nullptr);
}

void Shader::bind(const Buffer& buffer) {
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
  VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  pool.maxSets = pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  check(app_.vk.vkCreateDescriptorPool(app_.device, &pool, nullptr, &sets_),
        "vkCreateDescriptorPool");
  VkDescriptorSetAllocateInfo sets{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  sets.descriptorPool = sets_;
  sets.descriptorSetCount = 1;
  sets.pSetLayouts = &set_layout_;
  check(app_.vk.vkAllocateDescriptorSets(app_.device, &sets, &set_), "vkAllocateDescriptorSets");
  const VkDescriptorBufferInfo whole{buffer.buffer, 0, VK_WHOLE_SIZE};
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.dstSet = set_;
  write.descriptorCount = 1;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = &whole;
  app_.vk.vkUpdateDescriptorSets(app_.device, 1, &write, 0, nullptr);
}

VkCommandBuffer Shader::record(const Line& line) {
  VkCommandBufferAllocateInfo allocation{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocation.commandPool = commands_;
  allocation.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocation.commandBufferCount = 1;
  VkCommandBuffer out = VK_NULL_HANDLE;
  check(app_.vk.vkAllocateCommandBuffers(app_.device, &allocation, &out),
        "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(app_.vk.vkBeginCommandBuffer(out, &begin), "vkBeginCommandBuffer");
  app_.vk.vkCmdBindPipeline(out, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  app_.vk.vkCmdBindDescriptorSets(out, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0,
                                  nullptr);
  app_.vk.vkCmdPushConstants(out, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof line, &line);
  app_.vk.vkCmdDispatch(out, (line.count + 63) / 64, 1, 1);
  // For the host, which reads mapped memory; queues see each other's work by the semaphores.
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                          VK_ACCESS_HOST_READ_BIT};
  app_.vk.vkCmdPipelineBarrier(out, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  check(app_.vk.vkEndCommandBuffer(out), "vkEndCommandBuffer");
  return out;
}

void Shader::run(const Line& line, tuff::interop::VulkanPoint before,
                 tuff::interop::VulkanPoint after) {
  const VkCommandBuffer commands = record(line);
  const uint32_t waits = before.semaphore != VK_NULL_HANDLE,
                 raises = after.semaphore != VK_NULL_HANDLE;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.waitSemaphoreValueCount = waits;
  values.pWaitSemaphoreValues = &before.value;
  values.signalSemaphoreValueCount = raises;
  values.pSignalSemaphoreValues = &after.value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.waitSemaphoreCount = waits;
  info.pWaitSemaphores = &before.semaphore;
  info.pWaitDstStageMask = &stage;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  info.signalSemaphoreCount = raises;
  info.pSignalSemaphores = &after.semaphore;
  const std::lock_guard lock(app_.queue_mutex);
  check(app_.vk.vkQueueSubmit(app_.queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
}

// After its work has ended: the application waits for it.
Shader::~Shader() {
  app_.vk.vkDestroyCommandPool(app_.device, commands_, nullptr);
  app_.vk.vkDestroyPipeline(app_.device, pipeline_, nullptr);
  app_.vk.vkDestroyPipelineLayout(app_.device, layout_, nullptr);
  app_.vk.vkDestroyDescriptorPool(app_.device, sets_, nullptr);
  app_.vk.vkDestroyDescriptorSetLayout(app_.device, set_layout_, nullptr);
}

}  // namespace application

// A small Vulkan program as others write them: instance, device, one queue, buffers and a compute
// shader over a buffer. It knows nothing of tuff but what tuff needs of its device.
// Used by the example beside it and by tests of interop/vulkan.h.
#pragma once

#include <tuff/interop/vulkan_device.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace application {

struct Functions {
#define X(name) PFN_##name name = nullptr;
#include "vulkan_sharing/functions.def"
#undef X
};

struct Options {
  bool validation = false;
  // What is enabled of tuff's needs: everything, timelineSemaphore alone, nothing.
  enum class Features { All, Timeline, None } features = Features::All;
  // In the structures of versions 1.2 and 1.3 instead of one structure each.
  bool by_version = false;
  bool exportable_memory = false;
};

// Throws std::runtime_error with what a function returned.
void check(VkResult result, const char* call);

class Application {
 public:
  explicit Application(const Options& options = {});
  ~Application();  // after tuff has closed the device
  Application(const Application&) = delete;
  // What tuff is given; its submissions lock queue_mutex.
  tuff::interop::VulkanApplication lend();
  // Messages of the validation layer since the start.
  static uint64_t messages();

  VkSemaphore create_timeline();
  void wait(tuff::interop::VulkanPoint point) const;   // on the host
  void raise(tuff::interop::VulkanPoint point) const;  // from the host

  Functions vk;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::mutex queue_mutex;
  tuff::interop::VulkanNeeds needs;
  uint64_t locks = 0;  // under queue_mutex: by tuff

 private:
  void create_instance();
  void create_device();
  Options options_;
  PFN_vkGetInstanceProcAddr entry_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  // As vkCreateDevice got them, for lend().
  VkPhysicalDeviceVulkan13Features features13_{};
  VkPhysicalDeviceVulkan12Features features12_{};
  VkPhysicalDeviceVulkan11Features features11_{};
  VkPhysicalDeviceFeatures2 features2_{};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline_{};
  const void* enabled_ = nullptr;
  std::vector<const char*> extensions_;
  std::vector<VkSemaphore> semaphores_;
};

// A buffer in memory that the host sees.
class Buffer {
 public:
  Buffer(Application& app, size_t size_bytes, VkBufferUsageFlags usage, size_t memory_offset = 0);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  float* floats() const { return static_cast<float*>(mapped) + memory_offset / 4; }
  tuff::interop::VulkanBuffer lend(size_t offset = 0) const;

  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  void* mapped = nullptr;
  size_t size_bytes, memory_bytes = 0, memory_offset;
  VkBufferUsageFlags usage;
  uint32_t type_index = 0;

 private:
  Application& app_;
};

// The shader of this example, which draws nothing: every element of the buffer becomes
// element * scale + offset + index * slope.
struct Line {
  uint32_t count = 0;
  float scale = 1, offset = 0, slope = 0;
};

class Shader {
 public:
  Shader(Application& app, const Buffer& buffer);
  ~Shader();
  Shader(const Shader&) = delete;
  // Begins when `before` is reached and raises `after`; semaphores may be null.
  void run(const Line& line, tuff::interop::VulkanPoint before, tuff::interop::VulkanPoint after);

 private:
  void create_pipeline();
  void bind(const Buffer& buffer);
  VkCommandBuffer record(const Line& line);
  Application& app_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkDescriptorPool sets_ = VK_NULL_HANDLE;
  VkDescriptorSet set_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkCommandPool commands_ = VK_NULL_HANDLE;
};

}  // namespace application

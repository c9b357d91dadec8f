// A Vulkan layer that plants faults in a driver, so that tests see whether the conformance suite
// finds them. Loaded by the loader through VK_LAYER_PATH and VK_INSTANCE_LAYERS; no part of tuff.
//   TUFF_TEST_FAULT=flip     a module that contains the opcode gets another one: its results are
//   wrong TUFF_TEST_FAULT=crash    making a pipeline of such a module ends the process
//   TUFF_TEST_FAULT=hang     a submission after such a pipeline was bound never returns
//   TUFF_TEST_FAULT=refuse   making a pipeline of such a module gives VK_ERROR_FEATURE_NOT_PRESENT
//   TUFF_TEST_OPCODE=133     the SPIR-V opcode (decimal) that modules are told by
// Follows the loader's "Loader Interface for Layers", interface version 2.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr uint32_t kSpirvHeaderWords = 5;
constexpr uint32_t kOpFMul = 133, kOpFAdd = 129;

struct Next {
  PFN_vkGetInstanceProcAddr instance_proc = nullptr;
  PFN_vkGetDeviceProcAddr device_proc = nullptr;
  PFN_vkCreateShaderModule create_module = nullptr;
  PFN_vkCreateComputePipelines create_pipelines = nullptr;
  PFN_vkCmdBindPipeline bind = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  PFN_vkQueueSubmit2 submit2 = nullptr;
};

// One instance and one device at a time are all that the tests open.
struct State {
  std::mutex mutex;
  VkInstance instance = VK_NULL_HANDLE;
  Next next;
  std::set<VkShaderModule> modules;  // that contain the opcode
  std::set<VkPipeline> pipelines;    // made of those
  bool armed = false;                // one of them was bound
};
State& state() {
  static State s;
  return s;
}

bool fault_is(const char* name) {
  const char* text = std::getenv("TUFF_TEST_FAULT");
  return text && std::strcmp(text, name) == 0;
}

uint32_t opcode() {
  const char* text = std::getenv("TUFF_TEST_OPCODE");
  return text ? uint32_t(std::strtoul(text, nullptr, 10)) : 0;
}

// Where the instructions with the opcode start.
std::vector<size_t> occurrences(const std::vector<uint32_t>& words) {
  std::vector<size_t> out;
  for (size_t i = kSpirvHeaderWords; i < words.size(); i += words[i] >> 16) {
    if ((words[i] & 0xffff) == opcode()) out.push_back(i);
    if (words[i] >> 16 == 0) break;  // malformed: leave it to the driver
  }
  return out;
}

VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                                             const VkAllocationCallbacks* memory,
                                             VkShaderModule* module) {
  std::vector<uint32_t> words(info->pCode, info->pCode + info->codeSize / 4);
  const std::vector<size_t> found = occurrences(words);
  VkShaderModuleCreateInfo changed = *info;
  changed.pCode = words.data();
  if (fault_is("flip")) {
    const uint32_t other = opcode() == kOpFMul ? kOpFAdd : kOpFMul;
    for (const size_t i : found) words[i] = (words[i] & 0xffff0000u) | other;
  }
  const VkResult result = state().next.create_module(device, &changed, memory, module);
  std::lock_guard lock(state().mutex);
  if (result == VK_SUCCESS) {
    state().modules.erase(*module);  // the handle of a destroyed one may come again
    if (!found.empty()) state().modules.insert(*module);
  }
  return result;
}

bool is_marked(const VkComputePipelineCreateInfo& info) {
  std::lock_guard lock(state().mutex);
  return state().modules.count(info.stage.module) > 0;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
                                                uint32_t count,
                                                const VkComputePipelineCreateInfo* infos,
                                                const VkAllocationCallbacks* memory,
                                                VkPipeline* pipelines) {
  for (uint32_t i = 0; i < count; i++) {
    if (!is_marked(infos[i])) continue;
    if (fault_is("crash")) std::abort();
    if (!fault_is("refuse")) continue;
    std::fill(pipelines, pipelines + count, VkPipeline(VK_NULL_HANDLE));
    return VK_ERROR_FEATURE_NOT_PRESENT;
  }
  const VkResult result =
      state().next.create_pipelines(device, cache, count, infos, memory, pipelines);
  for (uint32_t i = 0; i < count; i++) {
    const bool marked = is_marked(infos[i]);
    std::lock_guard lock(state().mutex);
    state().pipelines.erase(pipelines[i]);
    if (marked) state().pipelines.insert(pipelines[i]);
  }
  return result;
}

VKAPI_ATTR void VKAPI_CALL bind(VkCommandBuffer list, VkPipelineBindPoint point,
                                VkPipeline pipeline) {
  {
    std::lock_guard lock(state().mutex);
    if (state().pipelines.count(pipeline)) state().armed = true;
  }
  state().next.bind(list, point, pipeline);
}

void hang_if_armed() {
  bool armed;
  {
    std::lock_guard lock(state().mutex);
    armed = state().armed;
  }
  while (armed && fault_is("hang")) std::this_thread::sleep_for(std::chrono::hours(1));
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                      VkFence fence) {
  hang_if_armed();
  return state().next.submit(queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL submit2(VkQueue queue, uint32_t count, const VkSubmitInfo2* infos,
                                       VkFence fence) {
  hang_if_armed();
  return state().next.submit2(queue, count, infos, fence);
}

// The loader's link for this layer in a pNext chain.
template <class Info>
Info* link_info(const void* chain, VkStructureType type) {
  auto* at = static_cast<const VkBaseInStructure*>(chain);
  for (; at; at = at->pNext) {
    auto* info = reinterpret_cast<const Info*>(at);
    if (at->sType == type && info->function == VK_LAYER_LINK_INFO) return const_cast<Info*>(info);
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* memory,
                                               VkInstance* instance) {
  auto* link = link_info<VkLayerInstanceCreateInfo>(info->pNext,
                                                    VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = PFN_vkCreateInstance(get(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, memory, instance);
  if (result == VK_SUCCESS) {
    state().next.instance_proc = get;
    state().instance = *instance;
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* memory,
                                             VkDevice* device) {
  auto* link =
      link_info<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  const PFN_vkGetInstanceProcAddr get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = PFN_vkCreateDevice(get_instance(state().instance, "vkCreateDevice"));
  const VkResult result = create(physical, info, memory, device);
  if (result != VK_SUCCESS) return result;
  Next& n = state().next;
  n.device_proc = get;
  n.create_module = PFN_vkCreateShaderModule(get(*device, "vkCreateShaderModule"));
  n.create_pipelines = PFN_vkCreateComputePipelines(get(*device, "vkCreateComputePipelines"));
  n.bind = PFN_vkCmdBindPipeline(get(*device, "vkCmdBindPipeline"));
  n.submit = PFN_vkQueueSubmit(get(*device, "vkQueueSubmit"));
  n.submit2 = PFN_vkQueueSubmit2(get(*device, "vkQueueSubmit2"));
  if (!n.submit2) n.submit2 = PFN_vkQueueSubmit2(get(*device, "vkQueueSubmit2KHR"));
  return result;
}

PFN_vkVoidFunction own(const char* name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc(VkDevice device, const char* name) {
  const PFN_vkVoidFunction mine = own(name);
  return mine ? mine : state().next.device_proc(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction mine = own(name);
  if (mine || !state().next.instance_proc) return mine;
  return state().next.instance_proc(instance, name);
}

PFN_vkVoidFunction own(const char* name) {
  struct Row {
    const char* name;
    PFN_vkVoidFunction function;
  };
  static const Row rows[] = {
      {"vkGetInstanceProcAddr", PFN_vkVoidFunction(get_instance_proc)},
      {"vkGetDeviceProcAddr", PFN_vkVoidFunction(get_device_proc)},
      {"vkCreateInstance", PFN_vkVoidFunction(create_instance)},
      {"vkCreateDevice", PFN_vkVoidFunction(create_device)},
      {"vkCreateShaderModule", PFN_vkVoidFunction(create_module)},
      {"vkCreateComputePipelines", PFN_vkVoidFunction(create_pipelines)},
      {"vkCmdBindPipeline", PFN_vkVoidFunction(bind)},
      {"vkQueueSubmit", PFN_vkVoidFunction(submit)},
      {"vkQueueSubmit2", PFN_vkVoidFunction(submit2)},
      {"vkQueueSubmit2KHR", PFN_vkVoidFunction(submit2)},
  };
  for (const Row& r : rows) {
    if (std::strcmp(r.name, name) == 0) return r.function;
  }
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* interface) {
  if (interface->loaderLayerInterfaceVersion > 2) interface->loaderLayerInterfaceVersion = 2;
  interface->pfnGetInstanceProcAddr = get_instance_proc;
  interface->pfnGetDeviceProcAddr = get_device_proc;
  interface->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

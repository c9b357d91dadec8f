#include "devices/vulkan/program/loader.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "base/os.h"
#include "base/parallel.h"
#include "devices/vulkan/program/executables.h"

namespace tuff::devices::vulkan {
namespace {

constexpr uint32_t kSpirvMagic = 0x07230203;
constexpr size_t kMaxThreads = 16;

// A handle that goes when the scope ends; modules are not needed once their pipeline exists.
struct ModuleScope {
  Context& context;
  VkShaderModule module;
  ~ModuleScope() { context.api.vkDestroyShaderModule(context.device, module, nullptr); }
};

}  // namespace

Loader::Loader(std::shared_ptr<Context> context, const Target& target)
    : context_(std::move(context)), target_(target), cache_(context_) {}

Loader::~Loader() {
  const VkApi& api = context_->api;
  for (const auto& [count, layout] : layouts_) {
    api.vkDestroyPipelineLayout(context_->device, layout.pipeline, nullptr);
    if (layout.set) api.vkDestroyDescriptorSetLayout(context_->device, layout.set, nullptr);
  }
}

VkDescriptorSetLayout Loader::create_set_layout(uint32_t binding_count) {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (uint32_t i = 0; i < binding_count; ++i)
    bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, {}});
  VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  info.bindingCount = binding_count;
  info.pBindings = bindings.data();
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  context_->check(context_->api.vkCreateDescriptorSetLayout(context_->device, &info, nullptr, &set),
                  "vkCreateDescriptorSetLayout");
  return set;
}

KernelLayout Loader::layout_for(const render::ArgLayout& args) {
  const bool addresses = context_->facts.caps.bufferDeviceAddress;
  const uint32_t bindings = addresses ? 0 : args.buffer_count + 1;
  std::lock_guard lock(layouts_mutex_);
  KernelLayout& layout = layouts_[bindings];
  if (layout.pipeline) return layout;
  if (bindings && !layout.set) layout.set = create_set_layout(bindings);
  const uint32_t push_bytes = addresses ? sizeof(VkDeviceAddress) : sizeof(uint32_t);
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = layout.set ? 1 : 0;
  info.pSetLayouts = &layout.set;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  context_->check(
      context_->api.vkCreatePipelineLayout(context_->device, &info, nullptr, &layout.pipeline),
      "vkCreatePipelineLayout");
  return layout;
}

void Loader::check_binary(const render::Binary& b) const {
  if (b.format != render::BinaryFormat::SpirV) {
    fail<CompileError>("{}: kernel \"{}\" is not SPIR-V", context_->name, b.name);
  }
  uint32_t magic = 0;
  if (b.bytes && b.bytes->size() >= 20) std::memcpy(&magic, b.bytes->data(), sizeof magic);
  if (magic != kSpirvMagic || b.bytes->size() % 4) {
    fail<CompileError>("{}: kernel \"{}\" is not a SPIR-V module ({} bytes)", context_->name,
                       b.name, b.bytes ? b.bytes->size() : 0);
  }
  uint64_t invocations = uint64_t{b.local[0]} * b.local[1] * b.local[2];
  for (int i = 0; i < 3; ++i) {
    if (b.local[i] == 0 || b.local[i] > target_.max_local[i] ||
        invocations > target_.max_invocations) {
      fail<CompileError>(
          "{}: kernel \"{}\" has local size ({},{},{}); the device allows ({},{},{}) and {} in all",
          context_->name, b.name, b.local[0], b.local[1], b.local[2], target_.max_local[0],
          target_.max_local[1], target_.max_local[2], target_.max_invocations);
    }
  }
  if (!target_.features.device_address && b.args.buffer_count > target_.max_buffers) {
    fail<CompileError>("{}: kernel \"{}\" takes {} buffers, the device binds {}", context_->name,
                       b.name, b.args.buffer_count, target_.max_buffers);
  }
  if (b.shared_bytes > target_.shared_bytes) {
    fail<CompileError>("{}: kernel \"{}\" uses {} bytes of shared memory, the device has {}",
                       context_->name, b.name, b.shared_bytes, target_.shared_bytes);
  }
}

VkShaderModule Loader::create_module(const render::Binary& b) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = b.bytes->size();
  info.pCode = reinterpret_cast<const uint32_t*>(b.bytes->data());  // a vector's storage is aligned
  VkShaderModule module = VK_NULL_HANDLE;
  VkResult result = context_->api.vkCreateShaderModule(context_->device, &info, nullptr, &module);
  if (result == VK_ERROR_INVALID_SHADER_NV || result == VK_ERROR_UNKNOWN) {
    fail<CompileError>("{}: the driver refused the module of kernel \"{}\"", context_->name,
                       b.name);
  }
  context_->check(result, "vkCreateShaderModule", "kernel \"" + b.name + "\"");
  return module;
}

std::unique_ptr<hcq::Program> Loader::load_one(const render::Binary& b) {
  check_binary(b);
  Context& c = *context_;
  ModuleScope scope{c, create_module(b)};
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = scope.module;
  info.stage.pName = b.symbol.c_str();
  if (b.subgroup_size > 0 && c.facts.caps.computeFullSubgroups)
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  if (debug_level() >= 7) info.flags = describable(c);
  const KernelLayout layout = layout_for(b.args);
  info.layout = layout.pipeline;
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkResult result =
      c.api.vkCreateComputePipelines(c.device, cache_.handle(), 1, &info, nullptr, &pipeline);
  if (result == VK_ERROR_INVALID_SHADER_NV || result == VK_ERROR_UNKNOWN ||
      (result == VK_SUCCESS && !pipeline)) {
    fail<CompileError>("{}: the driver could not compile kernel \"{}\": {}", c.name, b.name,
                       result_name(result));
  }
  c.check(result, "vkCreateComputePipelines", "kernel \"" + b.name + "\"");
  auto program = std::make_unique<VulkanProgram>(context_, b, pipeline, layout);
  if (info.flags) debug_line(fmt::format("driver {}: {}", b.name, described(c, pipeline)));
  return program;
}

std::vector<std::unique_ptr<hcq::Program>> Loader::load(std::span<const render::Binary> binaries) {
  context_->require_alive();
  std::vector<std::unique_ptr<hcq::Program>> programs(binaries.size());
  parallel_for(binaries.size(), std::min<size_t>(os::core_count(), kMaxThreads),
               [&](size_t i) { programs[i] = load_one(binaries[i]); });
  cache_.added(binaries.size());
  return programs;
}

}  // namespace tuff::devices::vulkan

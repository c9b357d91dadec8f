// Loader: SPIR-V binaries become compute pipelines. The only interface of a kernel is a push
// constant of 8 bytes, the address of its argument block; where there are no addresses it is one
// descriptor set of storage buffers (see render::kBindingAlignment). No specialization. Used by the
// device. Knows nothing of queues.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/target.h"
#include "devices/vulkan/program/cache.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

struct KernelLayout {
  VkDescriptorSetLayout set = VK_NULL_HANDLE;  // null if nothing is bound
  VkPipelineLayout pipeline = VK_NULL_HANDLE;
};

class VulkanProgram final : public hcq::Program {
 public:
  VulkanProgram(std::shared_ptr<Context> context, const render::Binary& binary, VkPipeline pipeline,
                const KernelLayout& layout)
      : Program(binary),
        context_(std::move(context)),
        pipeline_(pipeline),
        layout_(layout),
        by_user_(binary.by_user) {}
  ~VulkanProgram() override {
    context_->api.vkDestroyPipeline(context_->device, pipeline_, nullptr);
  }
  VkPipeline pipeline() const { return pipeline_; }
  VkPipelineLayout layout() const { return layout_.pipeline; }
  VkDescriptorSetLayout set_layout() const { return layout_.set; }
  const Context* context() const { return context_.get(); }
  bool by_user() const { return by_user_; }  // see render::Binary

 private:
  std::shared_ptr<Context> context_;
  VkPipeline pipeline_;
  KernelLayout layout_;  // the Loader's
  bool by_user_;
};

class Loader {
 public:
  Loader(std::shared_ptr<Context> context, const Target& target);
  ~Loader();
  std::vector<std::unique_ptr<hcq::Program>> load(std::span<const render::Binary> binaries);
  PipelineCache& cache() { return cache_; }

 private:
  std::unique_ptr<hcq::Program> load_one(const render::Binary& binary);
  void check_binary(const render::Binary& binary) const;
  VkShaderModule create_module(const render::Binary& binary);
  KernelLayout layout_for(const render::ArgLayout& args);
  VkDescriptorSetLayout create_set_layout(uint32_t binding_count);

  std::shared_ptr<Context> context_;
  const Target& target_;
  PipelineCache cache_;
  std::mutex layouts_mutex_;
  std::map<uint32_t, KernelLayout> layouts_;  // by bindings
};

}  // namespace tuff::devices::vulkan

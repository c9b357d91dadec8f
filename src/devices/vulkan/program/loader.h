// Loader: SPIR-V binaries become compute pipelines. The only interface of a kernel is a push
// constant of 8 bytes, the address of its argument block; there are no descriptor sets and no
// specialization. Used by the device. Knows nothing of queues.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/target.h"
#include "devices/vulkan/program/cache.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

class VulkanProgram final : public hcq::Program {
 public:
  VulkanProgram(std::shared_ptr<Context> context, const render::Binary& binary, VkPipeline pipeline,
                VkPipelineLayout layout)
      : Program(binary), context_(std::move(context)), pipeline_(pipeline), layout_(layout) {}
  ~VulkanProgram() override {
    context_->api.vkDestroyPipeline(context_->device, pipeline_, nullptr);
  }
  VkPipeline pipeline() const { return pipeline_; }
  VkPipelineLayout layout() const { return layout_; }
  const Context* context() const { return context_.get(); }

 private:
  std::shared_ptr<Context> context_;
  VkPipeline pipeline_;
  VkPipelineLayout layout_;
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

  std::shared_ptr<Context> context_;
  const Target& target_;
  PipelineCache cache_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
};

}  // namespace tuff::devices::vulkan

// VulkanDevice: hcq::Device over a Context, its blocks, loader and queue.
// Made by vulkan_open. Only puts the parts together.
#pragma once

#include <memory>

#include "base/check.h"
#include "devices/vulkan/facts/context.h"
#include "devices/vulkan/memory/blocks.h"
#include "devices/vulkan/program/loader.h"
#include "devices/vulkan/queue/queue.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

class VulkanDevice final : public hcq::Device, private hcq::Adoption {
 public:
  explicit VulkanDevice(std::shared_ptr<Context> context);
  ~VulkanDevice() override;
  const hcq::DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  hcq::MemoryBlock map_block(size_t size_bytes, hcq::MemoryKind kind) override {
    fail_if_lost();
    return blocks_.map(size_bytes, kind);
  }
  void unmap_block(const hcq::MemoryBlock& block) noexcept override { blocks_.unmap(block); }
  std::vector<std::unique_ptr<hcq::Program>> load(
      std::span<const render::Binary> binaries) override {
    fail_if_lost();
    return loader_.load(binaries);
  }
  hcq::Queue& compute_queue() override { return queue_; }
  // Throws Unsupported without timeline semaphores: no list can wait for anything then.
  std::unique_ptr<hcq::Signal> create_signal(uint64_t value) override {
    if (!context_->facts.caps.timelineSemaphore)
      fail<Unsupported>("{}: a signal besides the queue's takes timelineSemaphore", info().name);
    return std::make_unique<TimelineSignal>(context_, value);
  }
  hcq::Adoption* adoption() override { return this; }
  void check_status() override { context_->require_alive(); }
  void settle() noexcept override { context_->settle(); }
  const std::shared_ptr<Context>& context() const { return context_; }
  Loader& loader() { return loader_; }
  Blocks& blocks() { return blocks_; }
  // Null without timelineSemaphore.
  VkSemaphore timeline_semaphore() const { return queue_.semaphore(); }

 protected:
  void on_lost() noexcept override { context_->abandon(); }

 private:
  std::optional<hcq::ForeignMemory> over_host(void* data, size_t size_bytes) override;
  std::optional<NativeMemory> over_native(uint64_t handle) override;
  std::shared_ptr<Context> context_;
  hcq::DeviceInfo info_;
  Target target_;
  Blocks blocks_;
  Loader loader_;
  VulkanQueue queue_;  // last: closed first, while memory and kernels in flight still exist
};

// InvalidArgument for any other device.
VulkanDevice& native(hcq::Device& device);

}  // namespace tuff::devices::vulkan

// Bindings: what a dispatch is given. Where there are buffer device addresses its block's address;
// where there are none a descriptor set of its buffers and, behind them, its argument block (the
// rule stands at render::kBindingAlignment). Called by the encoder and the queue. Knows nothing of
// pipelines or submission.
#pragma once

#include <vector>

#include "devices/vulkan/program/loader.h"
#include "devices/vulkan/queue/recorder.h"
#include "hcq/command.h"

namespace tuff::devices::vulkan {

// What a recorder has to hold for the list.
BindingCount bindings_of(const Context& context, const hcq::CommandList& list);

// Allocates, writes and binds the set of one dispatch, if it has one, and pushes where its block
// begins. InvalidArgument if the dispatch names other buffers than its program takes, or one that
// is larger than a descriptor can bind.
class Binder {
 public:
  Binder(Context& context, Recorder& recorder) : c_(context), recorder_(recorder) {}
  void bind(const VulkanProgram& program, const hcq::Span& args,
            const std::vector<hcq::Span>& buffers);

 private:
  void bind_buffers(const VulkanProgram& program, const hcq::Span& args,
                    const std::vector<hcq::Span>& buffers);
  void add(const VulkanProgram& program, const hcq::Span& span);
  void bind_set(const VulkanProgram& program, VkWriteDescriptorSet write);
  Context& c_;
  Recorder& recorder_;
  std::vector<VkDescriptorBufferInfo> infos_;
};

}  // namespace tuff::devices::vulkan

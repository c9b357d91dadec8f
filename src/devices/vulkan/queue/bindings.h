// Bindings: where there are no buffer device addresses, a descriptor set per dispatch with its
// buffers and, behind them, its argument block (the rule stands at render::kBindingAlignment).
// Called by the encoder and the queue. Knows nothing of pipelines or submission.
#pragma once

#include <vector>

#include "devices/vulkan/program/loader.h"
#include "devices/vulkan/queue/recorder.h"
#include "hcq/command.h"

namespace tuff::devices::vulkan {

// What a recorder has to hold for the list; nothing on a device with addresses.
BindingCount bindings_of(const Context& context, const hcq::CommandList& list);

// Allocates, writes and binds the set of one dispatch, and pushes where its block begins.
class Binder {
 public:
  Binder(Context& context, const Recorder& recorder) : c_(context), recorder_(recorder) {}
  // InvalidArgument if the dispatch names other buffers than its program takes, or one that is
  // larger than a descriptor can bind.
  void bind(const VulkanProgram& program, const hcq::Span& args,
            const std::vector<hcq::Span>& buffers);

 private:
  void add(const VulkanProgram& program, const hcq::Span& span);
  Context& c_;
  const Recorder& recorder_;
  std::vector<VkDescriptorBufferInfo> infos_;
};

}  // namespace tuff::devices::vulkan

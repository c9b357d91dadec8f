#include "devices/vulkan/queue/bindings.h"

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"
#include "devices/vulkan/memory/blocks.h"

namespace tuff::devices::vulkan {
namespace {

// Kernels with narrow elements access whole words, and those with wide ones words of a pair.
constexpr VkDeviceSize kRangeAlignment = 16;


}  // namespace

BindingCount bindings_of(const Context& context, const hcq::CommandList& list) {
  BindingCount count;
  if (context.facts.caps.bufferDeviceAddress) return count;
  for (const hcq::Command& command : list.commands) {
    const auto* dispatch = std::get_if<hcq::DispatchCmd>(&command.body);
    if (!dispatch) continue;
    count.sets++;
    count.buffers += dispatch->program->args().buffer_count + 1;
  }
  return count;
}

void Binder::bind(const VulkanProgram& program, const hcq::Span& args,
                  const std::vector<hcq::Span>& buffers) {
  const bool addresses = c_.facts.caps.bufferDeviceAddress;
  if (!addresses && (buffers.size() != program.args().buffer_count || !args)) {
    fail<InvalidArgument>("{}: kernel \"{}\" takes {} buffers and an argument block; {} given",
                          c_.name, program.name(), program.args().buffer_count, buffers.size());
  }
  if (!addresses) bind_buffers(program, args, buffers);
  const VkDeviceAddress address = args ? args.address() : 0;
  const uint32_t first_word = static_cast<uint32_t>(args.offset % render::kBindingAlignment) / 4;
  const void* push = addresses ? static_cast<const void*>(&address) : &first_word;
  c_.api.vkCmdPushConstants(recorder_.buffer, program.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            addresses ? sizeof address : sizeof first_word, push);
}

void Binder::bind_set(const VulkanProgram& program, VkWriteDescriptorSet write) {
  VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  const VkDescriptorSetLayout layout = program.set_layout();
  allocate.descriptorPool = recorder_.descriptors;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  c_.check(c_.api.vkAllocateDescriptorSets(c_.device, &allocate, &set), "vkAllocateDescriptorSets");
  write.dstSet = set;
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  c_.api.vkUpdateDescriptorSets(c_.device, 1, &write, 0, nullptr);
  c_.api.vkCmdBindDescriptorSets(recorder_.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, program.layout(),
                                 0, 1, &set, 0, nullptr);
}

void Binder::add(const VulkanProgram& program, const hcq::Span& span) {
  const VkDeviceSize begin = span.offset / render::kBindingAlignment * render::kBindingAlignment;
  const VkDeviceSize end = std::min<VkDeviceSize>(
      align_up(span.offset + span.size_bytes, kRangeAlignment), span.block->size_bytes);
  if (end - begin > c_.facts.properties.limits.maxStorageBufferRange) {
    fail<InvalidArgument>("{}: kernel \"{}\" takes a buffer of {} bytes; a descriptor binds {}",
                          c_.name, program.name(), span.size_bytes,
                          c_.facts.properties.limits.maxStorageBufferRange);
  }
  infos_.push_back({buffer_of(*span.block), begin, std::max<VkDeviceSize>(end - begin, 4)});
}

void Binder::bind_buffers(const VulkanProgram& program, const hcq::Span& args,
                          const std::vector<hcq::Span>& buffers) {
  infos_.clear();
  for (const hcq::Span& span : buffers) add(program, span);
  add(program, args);
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.pBufferInfo = infos_.data();
  write.descriptorCount = static_cast<uint32_t>(infos_.size());  // consecutive, of one kind
  bind_set(program, write);
}

}  // namespace tuff::devices::vulkan

#include "devices/vulkan/queue/bindings.h"

#include <algorithm>

#include "base/check.h"
#include "devices/vulkan/memory/blocks.h"

namespace tuff::devices::vulkan {
namespace {

// Kernels with narrow elements access whole words, and those with wide ones words of a pair.
constexpr VkDeviceSize kRangeAlignment = 16;

VkDeviceSize align_up(VkDeviceSize n, VkDeviceSize to) { return (n + to - 1) / to * to; }

}  // namespace

BindingCount bindings_of(const Context& context, const hcq::CommandList& list) {
  BindingCount count;
  const bool addresses = context.facts.caps.bufferDeviceAddress;
  for (const hcq::Command& command : list.commands) {
    const auto* dispatch = std::get_if<hcq::DispatchCmd>(&command.body);
    if (!dispatch) continue;
    const render::ArgLayout& args = dispatch->program->args();
    const auto bound =
        addresses ? static_cast<uint32_t>(args.texels.size()) : args.buffer_count + 1;
    count.sets += bound ? 1 : 0;
    count.buffers += bound;
  }
  return count;
}

void Binder::bind(const VulkanProgram& program, const hcq::Span& args,
                  const std::vector<hcq::Span>& buffers) {
  const bool addresses = c_.facts.caps.bufferDeviceAddress;
  const bool bound = !addresses || !program.args().texels.empty();
  if ((bound && buffers.size() != program.args().buffer_count) || (!addresses && !args)) {
    fail<InvalidArgument>("{}: kernel \"{}\" takes {} buffers and an argument block; {} given",
                          c_.name, program.name(), program.args().buffer_count, buffers.size());
  }
  if (bound) addresses ? bind_texels(program, buffers) : bind_buffers(program, args, buffers);
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
  write.descriptorType = bound_type(c_);
  c_.api.vkUpdateDescriptorSets(c_.device, 1, &write, 0, nullptr);
  c_.api.vkCmdBindDescriptorSets(recorder_.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, program.layout(),
                                 0, 1, &set, 0, nullptr);
}

// ---- texel buffers --------------------------------------------------------------------------

void Binder::bind_texels(const VulkanProgram& program, const std::vector<hcq::Span>& buffers) {
  views_.clear();
  for (const render::TexelView& t : program.args().texels)
    views_.push_back(view(program, buffers.at(t.argument), t.components));
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
  write.pTexelBufferView = views_.data();
  write.descriptorCount = static_cast<uint32_t>(views_.size());
  bind_set(program, write);
}

// Of whole texels: the last one may reach past the buffer, never past its memory, which comes in
// multiples of 64 bytes.
VkBufferView Binder::view(const VulkanProgram& program, const hcq::Span& span,
                          uint32_t components) {
  const VkDeviceSize texel = 4 * components;
  const VkDeviceSize range = std::min<VkDeviceSize>(align_up(span.size_bytes, texel),
                                                    span.block->size_bytes - span.offset);
  const VkPhysicalDeviceLimits& limits = c_.facts.properties.limits;
  if (range / texel > limits.maxTexelBufferElements ||
      span.offset % limits.minTexelBufferOffsetAlignment || range < texel) {
    fail<InvalidArgument>(
        "{}: kernel \"{}\" reads {} bytes at {} as texels of {} bytes; a view has {} at most, and "
        "begins at a multiple of {}",
        c_.name, program.name(), span.size_bytes, span.offset, texel, limits.maxTexelBufferElements,
        limits.minTexelBufferOffsetAlignment);
  }
  VkBufferViewCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
  info.buffer = buffer_of(*span.block);
  info.format = components == 4   ? VK_FORMAT_R32G32B32A32_UINT
                : components == 2 ? VK_FORMAT_R32G32_UINT
                                  : VK_FORMAT_R32_UINT;
  info.offset = span.offset;
  info.range = range / texel * texel;
  VkBufferView view = VK_NULL_HANDLE;
  recorder_.views.reserve(recorder_.views.size() + 1);
  c_.check(c_.api.vkCreateBufferView(c_.device, &info, nullptr, &view), "vkCreateBufferView");
  recorder_.views.push_back(view);
  return view;
}

// ---- storage buffers ------------------------------------------------------------------------

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

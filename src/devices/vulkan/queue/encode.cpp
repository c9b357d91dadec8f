#include <algorithm>

#include "base/arith.h"
#include "base/check.h"
#include "devices/vulkan/memory/blocks.h"
#include "devices/vulkan/program/loader.h"
#include "devices/vulkan/queue/encoded.h"

namespace tuff::devices::vulkan {
namespace {

struct Scope {
  VkPipelineStageFlags2 stages;
  VkAccessFlags2 accesses;
};

// Work between two barriers. Drivers pay for what a barrier names: on NVIDIA's a dependent kernel
// costs 4 us behind one that names copies and indirect launches too, 2 behind one of kernels alone
// (bench/results/gpu-h200-2026-11-26.md).
struct Work {
  bool kernels = false, copies = false, indirect = false;
  bool any() const { return kernels || copies || indirect; }
};
constexpr Work kAnyWork{true, true, true};

// The indirect stage is here for its reads: what was launched from a buffer before it is
// overwritten.
Scope writes_of(const Work& w) {
  Scope s{};
  if (w.kernels)
    s.stages |= VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, s.accesses |= VK_ACCESS_2_SHADER_WRITE_BIT;
  if (w.copies)
    s.stages |= VK_PIPELINE_STAGE_2_TRANSFER_BIT, s.accesses |= VK_ACCESS_2_TRANSFER_WRITE_BIT;
  if (w.indirect) s.stages |= VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT;
  return s;
}
Scope accesses_of(const Work& w) {
  Scope s = writes_of(w);
  if (w.kernels) s.accesses |= VK_ACCESS_2_SHADER_READ_BIT;
  if (w.copies) s.accesses |= VK_ACCESS_2_TRANSFER_READ_BIT;
  if (w.indirect) s.accesses |= VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT;
  return s;
}
// What the host writes while a list waits for it: a submission covers earlier writes alone.
constexpr Scope kHostWrites{VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_WRITE_BIT};
constexpr Scope kHostReads{VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT};

// Kernels with narrow elements access whole words, and those with wide ones words of a pair.
constexpr VkDeviceSize kRangeAlignment = 16;

// Records one list; a visitor over command bodies.
class Encoder {
 public:
  Encoder(Context& context, const hcq::CommandList& list, VkSemaphore timeline,
          EncodedVulkanList& out)
      : c_(context),
        api_(context.api),
        list_(list),
        out_(out),
        buffer_(out.recorder.buffer),
        timeline_(timeline) {}

  void run() {
    begin();
    for (const hcq::Command& command : list_.commands) {
      command_ = &command;
      note(command, since_);
      std::visit([&](const auto& body) { record(body); }, command.body);
    }
    // Makes results visible to a host that reads mapped memory after the timeline value has passed.
    barrier(writes_of(kAnyWork), kHostReads);
    c_.check(api_.vkEndCommandBuffer(buffer_), "vkEndCommandBuffer");
    out_.submission.seal(timeline_, buffer_);
  }

 private:
  void begin() {
    VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    info.flags = out_.use == hcq::EncodeUse::Once ? VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT : 0;
    c_.check(api_.vkBeginCommandBuffer(buffer_, &info), "vkBeginCommandBuffer");
    if (list_.timestamp_count) {
      api_.vkCmdResetQueryPool(buffer_, out_.recorder.queries, 0, list_.timestamp_count);
    }
    // Against everything submitted to this queue before: lists say nothing about each other.
    Scope before = writes_of(kAnyWork);
    if (waits()) {
      before.stages |= kHostWrites.stages;
      before.accesses |= kHostWrites.accesses;
    }
    barrier(before, accesses_of(kAnyWork));
  }
  static void note(const hcq::Command& command, Work& work) {
    if (const auto* dispatch = std::get_if<hcq::DispatchCmd>(&command.body)) {
      work.kernels = true;
      work.indirect |= bool(dispatch->indirect);
    }
    work.copies |= std::holds_alternative<hcq::CopyCmd>(command.body);
  }
  // Up to the next barrier.
  Work work_ahead() const {
    Work work;
    const hcq::Command* const end = list_.commands.data() + list_.commands.size();
    for (const hcq::Command* c = command_ + 1; c != end; c++) {
      if (std::holds_alternative<hcq::BarrierCmd>(c->body)) break;
      note(*c, work);
    }
    return work;
  }
  bool waits() const {
    return !list_.commands.empty() &&
           std::holds_alternative<hcq::WaitCmd>(list_.commands.front().body);
  }

  void barrier(const Scope& from, const Scope& to) {
    if (c_.facts.caps.synchronization2) {
      VkMemoryBarrier2 memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER_2};
      memory.srcStageMask = from.stages;
      memory.srcAccessMask = from.accesses;
      memory.dstStageMask = to.stages;
      memory.dstAccessMask = to.accesses;
      VkDependencyInfo info{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
      info.memoryBarrierCount = 1;
      info.pMemoryBarriers = &memory;
      api_.vkCmdPipelineBarrier2(buffer_, &info);
      return;
    }
    // The bits used here have the same values in the 32-bit masks.
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = static_cast<VkAccessFlags>(from.accesses);
    memory.dstAccessMask = static_cast<VkAccessFlags>(to.accesses);
    api_.vkCmdPipelineBarrier(buffer_, static_cast<VkPipelineStageFlags>(from.stages),
                              static_cast<VkPipelineStageFlags>(to.stages), 0, 1, &memory, 0,
                              nullptr, 0, nullptr);
  }

  VkSemaphore semaphore_of(hcq::Signal* signal, uint32_t slot) {
    if (!c_.facts.caps.timelineSemaphore) {
      fail<Unsupported>(
          "{}: without timelineSemaphore a list can neither wait on a signal nor raise one; wait "
          "on the host between two lists",
          c_.name);
    }
    auto* timeline = dynamic_cast<TimelineSignal*>(signal);
    if (!timeline || timeline->context() != &c_) {
      fail<Unsupported>("{}: a list can wait on and signal only signals of this device", c_.name);
    }
    if (slot >= list_.slot_count) {
      fail<InvalidArgument>("{}: value slot {} in a list with {} slots", c_.name, slot,
                            list_.slot_count);
    }
    return timeline->semaphore();
  }

  void record(const hcq::WaitCmd& wait) {
    if (work_seen_ || signal_seen_) {
      fail<Unsupported>("{}: a Vulkan queue cannot wait in mid-list; cut the list before this Wait",
                        c_.name);
    }
    out_.submission.add_wait(semaphore_of(wait.signal, wait.value_slot), wait.value_slot);
  }

  void record(const hcq::SignalCmd& signal) {
    out_.submission.add_signal(semaphore_of(signal.signal, signal.value_slot), signal.value_slot);
    signal_seen_ = true;
  }

  void work() {
    if (signal_seen_) {
      fail<Unsupported>(
          "{}: a Vulkan queue cannot signal in mid-list; cut the list after the Signal", c_.name);
    }
    work_seen_ = true;
  }

  void record(const hcq::TimestampCmd& timestamp) {
    work();
    if (timestamp.index >= list_.timestamp_count) {
      fail<InvalidArgument>("{}: timestamp {} in a list with {} timestamps", c_.name,
                            timestamp.index, list_.timestamp_count);
    }
    api_.vkCmdWriteTimestamp(buffer_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, out_.recorder.queries,
                             timestamp.index);
  }

  void record(const hcq::BarrierCmd&) {
    work();
    const Work ahead = work_ahead();
    if (!since_.any() || !ahead.any()) return;
    // Reads before writes need execution order alone, which the stages give. What lies further back
    // is ordered by the chain: the barrier before this one ends at the stages that this one begins
    // at.
    barrier(writes_of(since_), accesses_of(ahead));
    since_ = {};
  }

  void record(const hcq::DispatchCmd& dispatch) {
    work();
    const auto* program = dynamic_cast<const VulkanProgram*>(dispatch.program);
    if (!program || program->context() != &c_) {
      fail<InvalidArgument>("{}: dispatch of a program that was not loaded on this device",
                            c_.name);
    }
    begin_label(program->name());
    if (program->pipeline() != bound_) {
      bound_ = program->pipeline();
      api_.vkCmdBindPipeline(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
    }
    const VkDeviceAddress address = dispatch.args ? dispatch.args.address() : 0;
    TUFF_CHECK(address % 16 == 0, "{}: argument block at {:#x}", program->name(), address);
    if (c_.facts.caps.bufferDeviceAddress) {
      push(*program, address);
    } else {
      bind_buffers(*program, dispatch.args);
      // Where the block begins in its binding, in words.
      push(*program, static_cast<uint32_t>(dispatch.args.offset % render::kBindingAlignment) / 4);
    }
    if (dispatch.indirect) {
      dispatch_indirect(dispatch.indirect);
    } else {
      dispatch_direct(*program, dispatch.groups);
    }
    end_label();
  }

  template <class Value>
  void push(const VulkanProgram& program, const Value& value) {
    api_.vkCmdPushConstants(buffer_, program.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            sizeof value, &value);
  }

  // Without buffer device addresses: a descriptor set of the dispatch's buffers and, behind them,
  // its argument block (the rule stands at render::kBindingAlignment).
  void bind_buffers(const VulkanProgram& program, const hcq::Span& args) {
    const std::vector<hcq::Span>& buffers = command_->buffers;
    if (buffers.size() != program.args().buffer_count || !args)
      fail<InvalidArgument>("{}: kernel \"{}\" takes {} buffers and an argument block; {} given",
                            c_.name, program.name(), program.args().buffer_count, buffers.size());
    bindings_.clear();
    for (const hcq::Span& span : buffers)
      program.by_user() ? add_whole_binding(program, span) : add_binding(program, span);
    add_binding(program, args);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    const VkDescriptorSetLayout layout = program.set_layout();
    allocate.descriptorPool = out_.recorder.descriptors;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    c_.check(api_.vkAllocateDescriptorSets(c_.device, &allocate, &set), "vkAllocateDescriptorSets");
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.descriptorCount = static_cast<uint32_t>(bindings_.size());  // consecutive, of one kind
    write.pBufferInfo = bindings_.data();
    api_.vkUpdateDescriptorSets(c_.device, 1, &write, 0, nullptr);
    api_.vkCmdBindDescriptorSets(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, program.layout(), 0, 1,
                                 &set, 0, nullptr);
  }

  void add_binding(const VulkanProgram& program, const hcq::Span& span) {
    const VkDeviceSize begin = span.offset / render::kBindingAlignment * render::kBindingAlignment;
    const VkDeviceSize end = std::min<VkDeviceSize>(
        align_up(span.offset + span.size_bytes, kRangeAlignment), span.block->size_bytes);
    if (end - begin > c_.facts.properties.limits.maxStorageBufferRange)
      fail<InvalidArgument>("{}: kernel \"{}\" takes a buffer of {} bytes; a descriptor binds {}",
                            c_.name, program.name(), span.size_bytes,
                            c_.facts.properties.limits.maxStorageBufferRange);
    bindings_.push_back({buffer_of(*span.block), begin, std::max<VkDeviceSize>(end - begin, 4)});
  }

  // A user's kernel knows of no block that says where in a binding its buffer begins.
  void add_whole_binding(const VulkanProgram& program, const hcq::Span& span) {
    const VkDeviceSize alignment = c_.facts.properties.limits.minStorageBufferOffsetAlignment;
    if (span.offset % alignment != 0)
      fail<Unsupported>(
          "{}: kernel \"{}\" reads memory that begins at byte {} of its allocation; without buffer "
          "device addresses this device binds multiples of {}: give it a clone()",
          c_.name, program.name(), span.offset, alignment);
    bindings_.push_back(
        {buffer_of(*span.block), span.offset, std::max<VkDeviceSize>(span.size_bytes, 4)});
  }

  void dispatch_direct(const VulkanProgram& program, const std::array<uint32_t, 3>& groups) {
    const uint32_t* limits = c_.facts.properties.limits.maxComputeWorkGroupCount;
    if (groups[0] > limits[0] || groups[1] > limits[1] || groups[2] > limits[2]) {
      fail<InvalidArgument>(
          "{}: kernel \"{}\" launched with ({},{},{}) groups; the limit is ({},{},{})", c_.name,
          program.name(), groups[0], groups[1], groups[2], limits[0], limits[1], limits[2]);
    }
    api_.vkCmdDispatch(buffer_, groups[0], groups[1], groups[2]);
  }

  void dispatch_indirect(const hcq::Span& span) {
    TUFF_CHECK(span.size_bytes >= 12 && span.offset % 4 == 0, "indirect span of {} bytes at {}",
               span.size_bytes, span.offset);
    api_.vkCmdDispatchIndirect(buffer_, buffer_of(*span.block), span.offset);
  }

  void record(const hcq::CopyCmd& copy) {
    work();
    if (copy.dst.size_bytes != copy.src.size_bytes) {
      fail<InvalidArgument>("{}: copy of {} bytes into {} bytes", c_.name, copy.src.size_bytes,
                            copy.dst.size_bytes);
    }
    if (copy.src.size_bytes == 0) return;
    begin_label("copy");
    VkBufferCopy region{copy.src.offset, copy.dst.offset, copy.src.size_bytes};
    api_.vkCmdCopyBuffer(buffer_, buffer_of(*copy.src.block), buffer_of(*copy.dst.block), 1,
                         &region);
    end_label();
  }

  void record(const hcq::HostCallCmd&) {
    fail<Unsupported>("{}: a Vulkan queue cannot call the host; cut the list there", c_.name);
  }

  void begin_label(const std::string& otherwise) {
    if (!c_.facts.caps.debugUtils || !api_.vkCmdBeginDebugUtilsLabelEXT) return;
    VkDebugUtilsLabelEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
    info.pLabelName = command_->label.empty() ? otherwise.c_str() : command_->label.c_str();
    api_.vkCmdBeginDebugUtilsLabelEXT(buffer_, &info);
  }
  void end_label() {
    if (c_.facts.caps.debugUtils && api_.vkCmdEndDebugUtilsLabelEXT)
      api_.vkCmdEndDebugUtilsLabelEXT(buffer_);
  }

  Context& c_;
  const VkApi& api_;
  const hcq::CommandList& list_;
  EncodedVulkanList& out_;
  VkCommandBuffer buffer_;
  VkSemaphore timeline_;
  std::vector<VkDescriptorBufferInfo> bindings_;  // of the dispatch that is being recorded
  VkPipeline bound_ = VK_NULL_HANDLE;
  const hcq::Command* command_ = nullptr;
  Work since_;  // the last barrier
  bool work_seen_ = false, signal_seen_ = false;
};

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

void encode_list(Context& context, const hcq::CommandList& list, VkSemaphore timeline,
                 EncodedVulkanList& out) {
  Encoder(context, list, timeline, out).run();
}

}  // namespace tuff::devices::vulkan

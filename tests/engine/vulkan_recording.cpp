#include "engine/vulkan_recording.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/check.h"
#include "devices/vulkan/program/loader.h"
#include "devices/vulkan/vulkan.h"
#include "ir/interpret.h"
#include "kernel/lowered.h"

namespace tuff::engine {

using hcq::Span;

namespace {

VulkanRecording* recording = nullptr;  // the hooks take no context

constexpr VkFlags64 kStages =
    VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_TRANSFER_BIT;
constexpr VkFlags64 kWrites = VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
constexpr VkFlags64 kIndirect = VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT;

bool has(VkFlags64 flags, VkFlags64 all) { return (flags & all) == all; }

}  // namespace

// The functions that stand in the table.
struct RecordingHooks {
  using R = VulkanRecording;
  static R::Buffer& at(VkCommandBuffer b) { return recording->buffers_[b]; }

  // A neutral Barrier orders everything. A recorded one has to name all work up to the one before
  // it, used() sees to what follows; the first one, all that other submissions may have done.
  static void barrier(VkCommandBuffer b, VkFlags64 from, VkFlags64 from_access, VkFlags64 to,
                      VkFlags64 to_access) {
    const bool host = has(from, kStages) && has(from_access, kWrites) &&
                      has(to, VK_PIPELINE_STAGE_2_HOST_BIT) &&
                      has(to_access, VK_ACCESS_2_HOST_READ_BIT);
    R::Buffer& buffer = at(b);
    if (!host) {
      const bool first = buffer.calls.empty();
      const VkFlags64 stages = first ? kStages | kIndirect : buffer.stages;
      ASSERT_TRUE(has(from, stages) && has(from_access, first ? kWrites : buffer.writes))
          << "a barrier that does not name the work before it";
      buffer.stages = buffer.writes = 0;
      buffer.open_stages = to;
      buffer.open_accesses = to_access;
      recording->barriers_++;
    }
    buffer.calls.push_back({.kind = host ? R::Native::HostBarrier : R::Native::Barrier});
  }
  static void used(VkCommandBuffer b, VkFlags64 stage, VkFlags64 reads, VkFlags64 writes) {
    R::Buffer& buffer = at(b);
    EXPECT_TRUE(has(buffer.open_stages, stage) && has(buffer.open_accesses, reads | writes))
        << "work that the barrier before it does not name";
    buffer.stages |= stage;
    buffer.writes |= writes;
  }
  static void used_by_kernel(VkCommandBuffer b) {
    used(b, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_READ_BIT,
         VK_ACCESS_2_SHADER_WRITE_BIT);
  }

  static VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer b,
                                              const VkCommandBufferBeginInfo* info) {
    at(b) = {};
    EXPECT_FALSE(info->flags & VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
    return recording->real_.vkBeginCommandBuffer(b, info);
  }
  static VKAPI_ATTR void VKAPI_CALL barrier2(VkCommandBuffer b, const VkDependencyInfo* info) {
    for (uint32_t i = 0; i < info->memoryBarrierCount; i++) {
      const VkMemoryBarrier2& m = info->pMemoryBarriers[i];
      barrier(b, m.srcStageMask, m.srcAccessMask, m.dstStageMask, m.dstAccessMask);
    }
    recording->real_.vkCmdPipelineBarrier2(b, info);
  }
  static VKAPI_ATTR void VKAPI_CALL barrier1(VkCommandBuffer b, VkPipelineStageFlags from,
                                             VkPipelineStageFlags to, VkDependencyFlags flags,
                                             uint32_t count, const VkMemoryBarrier* memory,
                                             uint32_t buffers, const VkBufferMemoryBarrier* buffer,
                                             uint32_t images, const VkImageMemoryBarrier* image) {
    for (uint32_t i = 0; i < count; i++)
      barrier(b, from, memory[i].srcAccessMask, to, memory[i].dstAccessMask);
    recording->real_.vkCmdPipelineBarrier(b, from, to, flags, count, memory, buffers, buffer,
                                          images, image);
  }
  static VKAPI_ATTR void VKAPI_CALL bind(VkCommandBuffer b, VkPipelineBindPoint point,
                                         VkPipeline pipeline) {
    at(b).bound = pipeline;
    recording->real_.vkCmdBindPipeline(b, point, pipeline);
  }
  static VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer b, VkPipelineLayout layout,
                                         VkShaderStageFlags stages, uint32_t offset, uint32_t size,
                                         const void* values) {
    ASSERT_EQ(offset, 0u);
    ASSERT_EQ(size, 8u);
    std::memcpy(&at(b).args, values, 8);
    recording->real_.vkCmdPushConstants(b, layout, stages, offset, size, values);
  }
  static VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer b, uint32_t x, uint32_t y,
                                             uint32_t z) {
    used_by_kernel(b);
    at(b).calls.push_back({.kind = R::Native::Dispatch,
                           .pipeline = at(b).bound,
                           .args = at(b).args,
                           .groups = {x, y, z}});
    recording->real_.vkCmdDispatch(b, x, y, z);
  }
  static VKAPI_ATTR void VKAPI_CALL dispatch_indirect(VkCommandBuffer b, VkBuffer buffer,
                                                      VkDeviceSize offset) {
    used_by_kernel(b);
    used(b, kIndirect, VK_ACCESS_2_INDIRECT_COMMAND_READ_BIT, 0);
    at(b).calls.push_back({.kind = R::Native::Dispatch,
                           .pipeline = at(b).bound,
                           .args = at(b).args,
                           .indirect = buffer,
                           .region = {offset, 0, 12}});
    recording->real_.vkCmdDispatchIndirect(b, buffer, offset);
  }
  static VKAPI_ATTR void VKAPI_CALL copy(VkCommandBuffer b, VkBuffer src, VkBuffer dst,
                                         uint32_t count, const VkBufferCopy* regions) {
    used(b, VK_PIPELINE_STAGE_2_TRANSFER_BIT, VK_ACCESS_2_TRANSFER_READ_BIT,
         VK_ACCESS_2_TRANSFER_WRITE_BIT);
    for (uint32_t i = 0; i < count; i++)
      at(b).calls.push_back(
          {.kind = R::Native::Copy, .src = src, .dst = dst, .region = regions[i]});
    recording->real_.vkCmdCopyBuffer(b, src, dst, count, regions);
  }
  static VKAPI_ATTR VkResult VKAPI_CALL submit2(VkQueue queue, uint32_t count,
                                                const VkSubmitInfo2* infos, VkFence fence) {
    for (uint32_t i = 0; i < count; i++) {
      std::vector<std::pair<VkSemaphore, uint64_t>> waits, signals;
      for (uint32_t k = 0; k < infos[i].waitSemaphoreInfoCount; k++)
        waits.emplace_back(infos[i].pWaitSemaphoreInfos[k].semaphore,
                           infos[i].pWaitSemaphoreInfos[k].value);
      for (uint32_t k = 0; k < infos[i].signalSemaphoreInfoCount; k++)
        signals.emplace_back(infos[i].pSignalSemaphoreInfos[k].semaphore,
                             infos[i].pSignalSemaphoreInfos[k].value);
      EXPECT_EQ(infos[i].commandBufferInfoCount, 1u);
      recording->submitted(infos[i].pCommandBufferInfos[0].commandBuffer, waits, signals);
    }
    return recording->real_.vkQueueSubmit2(queue, count, infos, fence);
  }
  static VKAPI_ATTR VkResult VKAPI_CALL wait(VkDevice device, const VkSemaphoreWaitInfo* info,
                                             uint64_t timeout) {
    const VkResult result = recording->real_.vkWaitSemaphores(device, info, timeout);
    for (uint32_t i = 0; result == VK_SUCCESS && i < info->semaphoreCount; i++)
      recording->waited(info->pSemaphores[i], info->pValues[i]);
    return result;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL value(VkDevice device, VkSemaphore semaphore,
                                              uint64_t* value) {
    const VkResult result = recording->real_.vkGetSemaphoreCounterValue(device, semaphore, value);
    if (result == VK_SUCCESS && *value) recording->waited(semaphore, *value);
    return result;
  }
};

VulkanRecording::VulkanRecording(Device& device) : device_(device) {
  TUFF_CHECK(!recording, "one recording at a time");
  recording = this;
  devices::VkApi& api = devices::vulkan_api(device.hcq());
  real_ = api;
  api.vkBeginCommandBuffer = RecordingHooks::begin;
  api.vkCmdPipelineBarrier = RecordingHooks::barrier1;
  api.vkCmdPipelineBarrier2 = RecordingHooks::barrier2;
  api.vkCmdBindPipeline = RecordingHooks::bind;
  api.vkCmdPushConstants = RecordingHooks::push;
  api.vkCmdDispatch = RecordingHooks::dispatch;
  api.vkCmdDispatchIndirect = RecordingHooks::dispatch_indirect;
  api.vkCmdCopyBuffer = RecordingHooks::copy;
  api.vkQueueSubmit2 = RecordingHooks::submit2;
  api.vkWaitSemaphores = RecordingHooks::wait;
  api.vkGetSemaphoreCounterValue = RecordingHooks::value;
  know(*device.args().allocate(16).block);  // eager argument blocks
}

VulkanRecording::~VulkanRecording() {
  device_.queue().wait_idle();
  devices::vulkan_api(device_.hcq()) = real_;
  recording = nullptr;
}

void VulkanRecording::know(const hcq::MemoryBlock& block) {
  blocks_.insert_or_assign(block.address, block);
}

void VulkanRecording::know(std::span<const BoundCall> calls) {
  for (const BoundCall& c : calls) {
    if (const auto* k = std::get_if<BoundKernel>(&c)) {
      for (const Ref<engine::Buffer>& b : k->buffers) know(*b->span().block);
      const auto* program =
          dynamic_cast<const devices::vulkan::VulkanProgram*>(k->kernel->program.get());
      ASSERT_NE(program, nullptr);
      kernels_[program->pipeline()] = k->kernel;
    } else {
      know(*std::get<BoundCopy>(c).dst->span().block);
      know(*std::get<BoundCopy>(c).src->span().block);
    }
  }
}

void VulkanRecording::host(const Span& span, bool write, const std::string& label) {
  know(*span.block);
  events_.emplace_back(hcq::HostAccess{{{span_at(span.address(), span.size_bytes), write}}, label});
}

void VulkanRecording::clear() {
  events_.clear();
  lists_.clear();
  written_.clear();
}

hcq::Trace VulkanRecording::trace() const {
  hcq::Trace t;
  t.events = events_;
  t.order = hcq::SubmissionOrder::Overlapping;
  // Timelines stand where the first events found them.
  for (const hcq::TraceEvent& e : events_) {
    const auto* s = std::get_if<hcq::Submission>(&e);
    if (s && s->timeline && !t.reached.count(s->timeline)) t.reached[s->timeline] = s->value - 1;
  }
  return t;
}

std::vector<const hcq::CommandList*> VulkanRecording::lists() const {
  std::vector<const hcq::CommandList*> out;
  for (const hcq::CommandList& list : lists_) out.push_back(&list);
  return out;
}

const hcq::Signal* VulkanRecording::signal(VkSemaphore s) { return &semaphores_[s]; }

void VulkanRecording::waited(VkSemaphore semaphore, uint64_t value) {
  events_.emplace_back(hcq::HostWait{signal(semaphore), value});
}

Span VulkanRecording::span_at(uint64_t address, size_t size_bytes) const {
  auto it = blocks_.upper_bound(address);
  TUFF_CHECK(it != blocks_.begin(), "address {:#x} is in no block", address);
  const hcq::MemoryBlock& b = (--it)->second;
  const size_t offset = address - b.address;
  TUFF_CHECK(offset + size_bytes <= b.size_bytes, "{} bytes at {:#x} are in no block", size_bytes,
             address);
  return {&b, offset, size_bytes};
}

Span VulkanRecording::span_of(VkBuffer buffer, size_t offset, size_t size_bytes) const {
  for (const auto& [address, b] : blocks_)
    if (b.native == reinterpret_cast<uint64_t>(buffer)) return {&b, offset, size_bytes};
  TUFF_CHECK(false, "a buffer that is not known");
  return {};
}

// What one submission says: its waits, its calls, its signals; the last signal is the timeline's.
void VulkanRecording::submitted(VkCommandBuffer buffer,
                                std::span<const std::pair<VkSemaphore, uint64_t>> waits,
                                std::span<const std::pair<VkSemaphore, uint64_t>> signals) {
  ASSERT_FALSE(signals.empty());
  hcq::CommandList& list = lists_.emplace_back();
  hcq::Submission s{.list = &list};
  auto slot = [&](uint64_t value) {
    s.slots.push_back(value);
    return list.slot_count++;
  };
  for (const auto& [semaphore, value] : waits)
    list.commands.push_back(
        {hcq::WaitCmd{const_cast<hcq::Signal*>(signal(semaphore)), slot(value)}, {}, "wait"});
  for (const Native& call : buffers_.at(buffer).calls) decode(call, list);
  for (size_t i = 0; i + 1 < signals.size(); i++)
    list.commands.push_back({hcq::SignalCmd{const_cast<hcq::Signal*>(signal(signals[i].first)),
                                            slot(signals[i].second)},
                             {},
                             "signal"});
  s.timeline = signal(signals.back().first);
  s.value = signals.back().second;
  events_.emplace_back(std::move(s));
}

void VulkanRecording::decode(const Native& call, hcq::CommandList& list) {
  const std::string number = std::to_string(list.commands.size());
  switch (call.kind) {
    case Native::Barrier:
      list.commands.push_back({hcq::BarrierCmd{}, {}, number + " barrier"});
      break;
    case Native::Copy: {
      const Span src = span_of(call.src, call.region.srcOffset, call.region.size);
      const Span dst = span_of(call.dst, call.region.dstOffset, call.region.size);
      list.commands.push_back(
          {hcq::CopyCmd{dst, src}, {{src, false}, {dst, true}}, number + " copy"});
      break;
    }
    case Native::Dispatch: decode_dispatch(call, list); break;
    case Native::HostBarrier:
    case Native::Timestamp: break;
  }
}

void VulkanRecording::decode_dispatch(const Native& call, hcq::CommandList& list) {
  const auto it = kernels_.find(call.pipeline);
  ASSERT_NE(it, kernels_.end()) << "a pipeline that is not known";
  const LoadedKernel& k = *it->second;
  const Span args = span_at(call.args, k.program->args().size_bytes());
  hcq::DispatchCmd d;
  d.program = k.program.get();
  d.args = args;
  d.groups = call.groups;
  note_host_writes(args);
  std::vector<hcq::Access> accesses{{args, false}};
  if (call.indirect) {
    d.indirect = span_of(call.indirect, call.region.srcOffset, 12);
    note_host_writes(d.indirect);
    std::memcpy(d.groups.data(), d.indirect.host(), 12);
    accesses.push_back({d.indirect, false});
  }
  for (const Launch::Range& r : launch(k, args.host(), d.groups).ranges) {
    uint64_t address = 0;
    std::memcpy(&address, args.host() + 8 * r.argument, 8);
    accesses.push_back({span_at(address + r.begin, r.end - r.begin), r.write});
  }
  list.commands.push_back(
      {d, std::move(accesses), std::to_string(list.commands.size()) + " " + k.name});
}

// Bytes that differ from when they were last submitted: only the host can have written them.
void VulkanRecording::note_host_writes(const Span& args) {
  std::vector<std::byte>& last = written_[args.address()];
  const std::byte* now = args.host();
  hcq::HostAccess patch{{}, "host writes arguments"};
  for (size_t i = 0; i < args.size_bytes; i += 4) {
    const size_t n = std::min<size_t>(4, args.size_bytes - i);
    if (last.size() != args.size_bytes || std::memcmp(&last[i], now + i, n) != 0)
      patch.accesses.push_back({args.sub(i, n), true});
  }
  last.assign(now, now + args.size_bytes);
  if (!patch.accesses.empty()) events_.emplace_back(std::move(patch));
}

// Runs the kernel's list on copies of the memory that its arguments name.
const VulkanRecording::Launch& VulkanRecording::launch(const LoadedKernel& k, const std::byte* args,
                                                       const std::array<uint32_t, 3>& groups) {
  const size_t scalars_at = k.program->args().scalar_offset(0);
  std::string key = fmt::format("{} {} {} {}", k.name, groups[0], groups[1], groups[2]);
  key.append(reinterpret_cast<const char*>(args + scalars_at), 4 * k.variables.size());
  auto [it, fresh] = launches_.try_emplace(key);
  if (!fresh) return it->second;

  const kernel::LinearKernel linear = kernel::lower(k.ast, device_.target());
  std::vector<std::vector<std::byte>> memory;
  std::map<int32_t, size_t> argument;
  ir::LinearRun run;
  for (size_t i = 0; i < linear.buffers.size(); i++) {
    const kernel::LinearKernel::Argument& a = linear.buffers[i];
    const size_t bytes = size_t(a.count) * size_bytes(a.dtype);
    uint64_t address = 0;
    std::memcpy(&address, args + 8 * i, 8);
    const Span at = span_at(address, bytes);
    // What the host does not see is taken for zeros: indices among it stay within their tables.
    memory.emplace_back(bytes);
    if (at.host()) std::memcpy(memory.back().data(), at.host(), bytes);
    argument[a.slot] = i;
    run.buffers.resize(std::max(run.buffers.size(), size_t(a.slot) + 1));
    run.buffers[size_t(a.slot)] = memory.back();
  }
  for (size_t i = 0; i < k.variables.size(); i++) {
    int32_t value = 0;
    std::memcpy(&value, args + k.program->args().scalar_offset(uint32_t(i)), 4);
    run.variables[k.variables[i]->get<ir::VariableArg>().name] = value;
  }
  run.groups = groups;
  run.local = linear.local;
  run.subgroup_size = linear.subgroup_size;
  std::map<std::pair<size_t, bool>, std::set<int64_t>> elements;
  run.on_access = [&](const ir::LinearAccess& a) {
    const size_t at = argument.at(a.slot);
    const auto n = int64_t(a.bytes / size_bytes(linear.buffers[at].dtype));
    for (int64_t e = 0; e < n; e++) elements[{at, a.write}].insert(a.element * n + e);
  };
  ir::interpret_linear(linear.ops, run);
  for (const auto& [where, touched] : elements) {
    const size_t size = size_bytes(linear.buffers[where.first].dtype);
    for (auto e = touched.begin(); e != touched.end();) {
      const size_t begin = size_t(*e) * size;
      size_t end = begin;
      for (; e != touched.end() && size_t(*e) * size == end; ++e) end += size;
      it->second.ranges.push_back({where.first, begin, end, where.second});
    }
  }
  return it->second;
}

}  // namespace tuff::engine

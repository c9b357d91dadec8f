// What Vulkan was really told: calls are recorded beneath a device's function table and decoded
// back to neutral commands, with accesses that follow from the recorded addresses, launch sizes and
// scalars and from running the kernels' linear lists in the interpreter. Nothing that tuff's own
// builders claim of a list is used. Used by the tests of command lists.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "devices/vulkan/api/api.h"
#include "engine/device.h"
#include "engine/realize/linear.h"
#include "hcq/hazards.h"

namespace tuff::engine {

class VulkanRecording {
 public:
  // Exchanges entries of the device's function table until it goes; one at a time in a process.
  explicit VulkanRecording(Device& device);
  ~VulkanRecording();
  VulkanRecording(const VulkanRecording&) = delete;

  // Before their first use: memory and kernels that recorded addresses and pipelines stand for.
  void know(const hcq::MemoryBlock& block);
  void know(std::span<const BoundCall> calls);
  // What the host itself does, which no call shows.
  void host(const hcq::Span& span, bool write, const std::string& label);
  // Forgets events, not command buffers.
  void clear();

  // All since the beginning, in the host's order. A queue may overlap submissions here: what orders
  // them has to have been recorded.
  hcq::Trace trace() const;
  // Of trace(): the lists of its submissions.
  std::vector<const hcq::CommandList*> lists() const;
  size_t barriers() const { return barriers_; }  // recorded, in all command buffers

 private:
  friend struct RecordingHooks;
  struct Native {  // one call of a command buffer
    enum Kind { Barrier, HostBarrier, Dispatch, Copy, Timestamp } kind;
    VkPipeline pipeline = VK_NULL_HANDLE;
    uint64_t args = 0;
    std::array<uint32_t, 3> groups{1, 1, 1};
    VkBuffer indirect = VK_NULL_HANDLE, src = VK_NULL_HANDLE, dst = VK_NULL_HANDLE;
    VkBufferCopy region{};
  };
  struct Buffer {  // a command buffer being recorded
    std::vector<Native> calls;
    VkPipeline bound = VK_NULL_HANDLE;
    uint64_t args = 0;
    VkFlags64 stages = 0, writes = 0;  // of the work since the last barrier
    VkFlags64 open_stages = 0, open_accesses = 0;  // what that barrier lets follow it
  };
  struct Launch {  // what one launch of a kernel touches, as bytes of its buffer arguments
    struct Range {
      size_t argument, begin, end;
      bool write;
    };
    std::vector<Range> ranges;
  };
  struct Semaphore final : hcq::Signal {  // stands for one in traces
    uint64_t value() const override { return 0; }
    bool wait(uint64_t, uint64_t) override { return false; }
    void set(uint64_t) override {}
  };

  void submitted(VkCommandBuffer buffer, std::span<const std::pair<VkSemaphore, uint64_t>> waits,
                 std::span<const std::pair<VkSemaphore, uint64_t>> signals);
  void waited(VkSemaphore semaphore, uint64_t value);
  void decode(const Native& call, hcq::CommandList& list);
  void decode_dispatch(const Native& call, hcq::CommandList& list);
  void note_host_writes(const hcq::Span& args);
  const Launch& launch(const LoadedKernel& k, const std::byte* args,
                       const std::array<uint32_t, 3>& groups);
  hcq::Span span_at(uint64_t address, size_t size_bytes) const;
  hcq::Span span_of(VkBuffer buffer, size_t offset, size_t size_bytes) const;
  const hcq::Signal* signal(VkSemaphore s);

  Device& device_;
  devices::VkApi real_;
  std::map<uint64_t, hcq::MemoryBlock> blocks_;  // by address
  std::map<VkPipeline, const LoadedKernel*> kernels_;
  std::map<VkCommandBuffer, Buffer> buffers_;
  std::map<VkSemaphore, Semaphore> semaphores_;
  std::map<std::string, Launch> launches_;
  std::map<uint64_t, std::vector<std::byte>> written_;  // argument blocks as last submitted
  std::list<hcq::CommandList> lists_;
  std::vector<hcq::TraceEvent> events_;
  size_t barriers_ = 0;
};

}  // namespace tuff::engine

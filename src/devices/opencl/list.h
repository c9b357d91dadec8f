// ClList: a command list as calls of OpenCL, with kernel objects whose arguments stand. Made by
// ClQueue::encode(), submitted by the same queue. Does not know how it is enqueued.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "devices/driver_list.h"
#include "devices/opencl/program.h"
#include "devices/opencl/signal.h"
#include "hcq/device.h"

namespace tuff::devices::opencl {

// Launches that the driver has taken down once (cl_khr_command_buffer), enqueued by one call. Knows
// nothing of argument blocks: what a kernel's arguments are when it is added is what it runs with.
class CommandBuffer {
 public:
  // For this queue alone, which has to allow it (QueueFacts::records).
  CommandBuffer(std::shared_ptr<Context> context, cl_command_queue queue);
  ~CommandBuffer();
  CommandBuffer(const CommandBuffer&) = delete;
  // False once the driver has refused something, which the log tells; nothing is lost by that.
  // Exhausted memory is thrown as OutOfMemory.
  bool good() const { return good_; }
  // `after`: launches of this buffer, counted from 0, that have to end before. Queues with an order
  // need none.
  void add(cl_kernel kernel, const size_t global[3], const size_t local[3],
           std::span<const uint32_t> after);
  void finish();
  cl_command_buffer_khr handle() const { return handle_; }

 private:
  void check(cl_int code, const char* call);

  std::shared_ptr<Context> context_;
  cl_command_buffer_khr handle_ = nullptr;
  std::vector<cl_sync_point_khr> points_;  // of each launch
  bool good_ = true;
};

struct ClLaunch {
  const ClProgram* program = nullptr;
  std::unique_ptr<KernelObject> own;  // of lists that are replayed
  const std::byte* block = nullptr;   // the arguments as they should be
  std::vector<std::byte> set;         // as they were set last
  bool is_set = false;                // once
  bool keeps_args = false;            // the block stays as it is
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::array<int32_t, 3> group_slots{-1, -1, -1};

  // Work-items in all and of a group; false: there are none.
  bool sizes(std::span<const uint64_t> slots, size_t global[3], size_t local[3]) const;
  // Whether each submission enqueues the same.
  bool is_fixed() const;
};
// Launches that the driver has taken down.
struct RecordedLaunches {
  std::unique_ptr<CommandBuffer> buffer;
  std::vector<ClLaunch> launches;
};
struct ClCopy {
  hcq::Span dst, src;
};
struct QueueWait {
  ClSignal* signal = nullptr;
  uint32_t slot = 0;
};
// For an application's event, which lives until the list is submitted.
struct EventWait {
  cl_event event = nullptr;
};
// Done by the host in the stream's order: whatever follows waits for it.
struct HostAction {
  hcq::Signal* signal = nullptr;  // to raise, or
  uint32_t slot = 0;
  void (*fn)(void*) = nullptr;  // to call
  void* context = nullptr;
  // For its submission in flight:
  const ClApi* api = nullptr;
  uint64_t value = 0;
  cl_event done = nullptr;
};
struct TimeMark {};

struct ClCommand {
  std::variant<ClLaunch, RecordedLaunches, ClCopy, QueueWait, EventWait, HostAction, TimeMark> body;
  int32_t timestamp = -1;  // taken when it ends
  // On an out-of-order queue: commands of the list that have to end before. None: those of the
  // submission before.
  std::vector<uint32_t> after = {};
};

class ClList final : public DriverList {
 public:
  ClList(hcq::Queue& queue, hcq::EncodeUse use, const hcq::CommandList& list,
         std::shared_ptr<Context> context)
      : DriverList(queue, use, list), context(std::move(context)), times(list.timestamp_count) {}
  ~ClList() override;
  void release_times() noexcept { release(times); }
  void release_ends() noexcept { release(ends); }
  // Runs of launches that are the same at each submission become command buffers for the queue, if
  // the driver takes them; false once it has refused.
  bool record(cl_command_queue handle);

  const std::shared_ptr<Context> context;
  std::vector<ClCommand> commands;
  std::vector<cl_event> times;
  // On an out-of-order queue:
  std::vector<cl_event> ends;  // of each command, while the list is enqueued
  std::vector<uint32_t> last;  // commands that no other comes after

 private:
  void release(std::vector<cl_event>& events) noexcept;
  std::unique_ptr<CommandBuffer> record_run(cl_command_queue handle, size_t begin, size_t end);
};

}  // namespace tuff::devices::opencl

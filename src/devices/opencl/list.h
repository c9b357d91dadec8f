// ClList: a command list as calls of OpenCL, with kernel objects whose arguments stand. Made by
// ClQueue::encode(), submitted by the same queue. Does not know how it is enqueued.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "devices/opencl/command_buffer.h"
#include "devices/opencl/program.h"
#include "devices/opencl/signal.h"
#include "hcq/device.h"

namespace tuff::devices::opencl {

struct Launch {
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
struct Recorded {
  std::unique_ptr<CommandBuffer> buffer;
  std::vector<Launch> launches;
};
struct Transfer {
  hcq::Span dst, src;
};
struct QueueWait {
  ClSignal* signal = nullptr;
  uint32_t slot = 0;
};
// Of an application's event, which lives until the list is submitted.
struct EventWait {
  cl_event event = nullptr;
};
// Done by the host in the stream's order: whatever follows waits for it.
struct HostAction {
  hcq::Signal* signal = nullptr;  // to raise, or
  uint32_t slot = 0;
  void (*fn)(void*) = nullptr;  // to call
  void* context = nullptr;
  // Of its submission in flight:
  const ClApi* api = nullptr;
  uint64_t value = 0;
  cl_event done = nullptr;
};
struct TimeMark {};

struct ClCommand {
  std::variant<Launch, Recorded, Transfer, QueueWait, EventWait, HostAction, TimeMark> body;
  int32_t timestamp = -1;  // taken when it ends
  // Of a queue without an order: commands of the list that have to end before. None: those of the
  // submission before.
  std::vector<uint32_t> after = {};
};

class ClList final : public hcq::EncodedList {
 public:
  ClList(hcq::Queue& queue, std::shared_ptr<Context> context, hcq::EncodeUse use)
      : queue(queue), context(std::move(context)), use(use) {}
  ~ClList() override;
  ClList(const ClList&) = delete;
  void release_times() noexcept { release(times); }
  void release_ends() noexcept { release(ends); }
  // Runs of launches that are the same at each submission become command buffers for the queue, if
  // the driver takes them; false once it has refused.
  bool record(cl_command_queue handle);

  hcq::Queue& queue;
  const std::shared_ptr<Context> context;
  const hcq::EncodeUse use;
  std::vector<ClCommand> commands;
  std::vector<cl_event> times;
  // Of a queue without an order:
  std::vector<cl_event> ends;  // of each command, while the list is enqueued
  std::vector<uint32_t> last;  // commands that no other comes after
  uint32_t slot_count = 0;
  uint64_t last_value = 0;  // of its last submission

 private:
  void release(std::vector<cl_event>& events) noexcept;
  std::unique_ptr<CommandBuffer> record_run(cl_command_queue handle, size_t begin, size_t end);
};

}  // namespace tuff::devices::opencl

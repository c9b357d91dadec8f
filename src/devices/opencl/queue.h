// ClQueue: an in-order cl_command_queue with one timeline. An encoded list is a list of calls with
// kernel objects whose arguments stand; submitting it again sets the arguments whose words in the
// argument block have changed and enqueues. Arguments are read from the block at submission.
// Called through hcq::Queue. Knows nothing of how programs were built.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "devices/opencl/memory.h"
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
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::array<int32_t, 3> group_slots{-1, -1, -1};
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
  std::variant<Launch, Transfer, QueueWait, EventWait, HostAction, TimeMark> body;
  int32_t timestamp = -1;  // taken when it ends
};

class ClList final : public hcq::EncodedList {
 public:
  ClList(hcq::Queue& queue, std::shared_ptr<Context> context, hcq::EncodeUse use)
      : queue(queue), context(std::move(context)), use(use) {}
  ~ClList() override { release_times(); }
  ClList(const ClList&) = delete;
  void release_times() noexcept;

  hcq::Queue& queue;
  const std::shared_ptr<Context> context;
  const hcq::EncodeUse use;
  std::vector<ClCommand> commands;
  std::vector<cl_event> times;
  uint32_t slot_count = 0;
  uint64_t last_value = 0;  // of its last submission
};

class ClQueue final : public hcq::Queue {
 public:
  // On a queue of its own, or on one that an application lends, which it retains.
  ClQueue(hcq::Device& device, std::shared_ptr<Context> context,
          std::shared_ptr<WaitingEvents> events, const Memory& memory, cl_command_queue lent);
  ~ClQueue() override;
  std::unique_ptr<hcq::EncodedList> encode(const hcq::CommandList& list,
                                           hcq::EncodeUse use) override;
  uint64_t submit(hcq::EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(hcq::EncodedList& list) override;
  hcq::Signal& timeline() override { return timeline_; }
  bool takes_group_slots() const override { return true; }
  uint64_t last_submitted() const override { return last_.load(std::memory_order_acquire); }
  std::string in_flight() const override;
  cl_command_queue handle() const { return handle_; }
  // The caller's; completes behind all that was submitted.
  cl_event marker();
  // The submission ends when the event has completed, and what is submitted later begins then.
  uint64_t submit_wait(cl_event event);
  // What runs or waits is given up: its ends say nothing any more.
  void abandon() noexcept { abandoned_.store(true, std::memory_order_release); }
  void finish();  // what was enqueued, callbacks too

 private:
  // One submission on its way, for the driver's callback.
  struct Flights;
  struct Flight {
    Flights* flights = nullptr;
    uint64_t value = 0;
  };
  static constexpr uint64_t kFlights = 1024;
  struct Flights {
    std::mutex mutex;          // of callbacks, which come one by one; guards `queue`
    ClQueue* queue = nullptr;  // null once it is gone
    std::array<Flight, kFlights> all;
    std::atomic<uint32_t> owed{0};  // callbacks that the driver still owes
  };
  static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* flight);
  static void CL_CALLBACK on_action(cl_event event, cl_int status, void* action);

  ClList& own(hcq::EncodedList& list) const;
  void encode_launch(const hcq::Command& command, const hcq::DispatchCmd& d, ClList& list) const;
  void check(cl_int code, const char* call) const;
  void enqueue(ClList& list, std::span<const uint64_t> slots, uint64_t value);
  void launch(Launch& l, std::span<const uint64_t> slots, cl_event* event);
  void set_arguments(Launch& l, cl_kernel kernel);
  void set_buffer(cl_kernel kernel, uint32_t index, uint64_t address,
                  std::optional<uint64_t> before);
  void wait_for(cl_event event);
  void transfer(const Transfer& t, cl_event* event);
  void wait_for(const QueueWait& w, std::span<const uint64_t> slots);
  void act(HostAction& a, std::span<const uint64_t> slots);
  void mark(cl_event* event);
  void completed(uint64_t value, cl_int status);
  void measure_clock();

  std::shared_ptr<Context> context_;
  std::shared_ptr<WaitingEvents> events_;
  const Memory& memory_;
  ClSignal timeline_;
  cl_command_queue handle_ = nullptr;
  bool has_times_ = true;
  std::mutex mutex_;  // of submissions
  std::atomic<uint64_t> last_{0};
  std::atomic<bool> abandoned_{false};
  Flights* const flights_;
  std::mutex clock_mutex_;
  std::optional<int64_t> clock_offset_ns_;  // from the device's time to the host's
};

}  // namespace tuff::devices::opencl

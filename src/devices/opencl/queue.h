// ClQueue: a cl_command_queue with one timeline. Submitting a list sets the arguments whose words
// in the argument block are others than last time and enqueues its calls. On a queue without an
// order each waits for the events of those that it comes after, and a submission's first ones for
// the event that the one before ends with; the driver's barriers are not used, which PoCL takes 0.1
// ms for. Called through hcq::Queue. Knows nothing of how programs were built.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "devices/opencl/list.h"
#include "devices/opencl/memory.h"
#include "hcq/device.h"

namespace tuff::devices::opencl {

class ClQueue final : public hcq::Queue {
 public:
  // On a queue of its own, or on one that an application lends, which it retains; in the order that
  // it has.
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
    cl_event end = nullptr;  // until it has come
  };
  static constexpr uint64_t kFlights = 1024;
  struct Flights {
    std::mutex mutex;          // of callbacks, which come one by one; guards `queue` and ends
    ClQueue* queue = nullptr;  // null once it is gone
    std::array<Flight, kFlights> all;
    std::atomic<uint32_t> owed{0};  // callbacks that the driver still owes
  };
  class Timeline final : public ClSignal {
   public:
    Timeline(std::shared_ptr<WaitingEvents> events, const ClQueue& queue)
        : ClSignal(std::move(events), 0), queue_(queue) {}
    EventRef event_at(uint64_t value) const override { return queue_.end_of(value); }

   private:
    const ClQueue& queue_;
  };
  static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* flight);
  static void CL_CALLBACK on_action(cl_event event, cl_int status, void* action);

  ClCommand encoded_launch(const hcq::Command& command, const hcq::DispatchCmd& d,
                           const ClList& list) const;
  void encode(const hcq::Command& command, ClList& list, std::vector<const hcq::Command*>& sources);
  void encode_timestamp(const hcq::TimestampCmd& t, ClList& list);
  void order(ClList& list, std::span<const hcq::Command* const> sources) const;
  void record(ClList& list);
  void check(cl_int code, const char* call) const;
  // Null where the submission has ended, or is none.
  EventRef end_of(uint64_t value) const;
  EventRef retained(cl_event event) const;
  void enqueue(ClList& list, std::span<const uint64_t> slots, uint64_t value);
  void enqueue(ClCommand& c, std::span<const uint64_t> slots, cl_event* event);
  void collect_waits(const ClList& list, std::span<const uint32_t> after, cl_event before);
  EventRef enqueue_end(const ClList& list, cl_event before);
  void launch(ClLaunch& l, std::span<const uint64_t> slots, cl_event* event);
  void run(const RecordedLaunches& r, cl_event* event);
  void set_arguments(ClLaunch& l, cl_kernel kernel);
  void set_buffer(cl_kernel kernel, uint32_t index, uint64_t address,
                  std::optional<uint64_t> before);
  void transfer(const ClCopy& t, cl_event* event);
  EventRef awaited(const QueueWait& w, std::span<const uint64_t> slots) const;
  void wait_for(cl_event other, cl_event* event);
  void act(HostAction& a, std::span<const uint64_t> slots, cl_event* event);
  void mark(cl_event* event);
  cl_uint wait_count() const { return cl_uint(waits_.size()); }
  const cl_event* wait_list() const { return waits_.empty() ? nullptr : waits_.data(); }
  void completed(uint64_t value, cl_int status);
  int64_t end_ns_of(cl_event event) const;
  void measure_clock();

  std::shared_ptr<Context> context_;
  std::shared_ptr<WaitingEvents> events_;
  const Memory& memory_;
  Timeline timeline_;
  cl_command_queue handle_ = nullptr;
  bool in_order_ = true, has_times_ = true;
  std::atomic<bool> records_{false};  // graphs, in command buffers
  std::mutex mutex_;                  // of submissions
  std::vector<cl_event> waits_;       // of the command that is being enqueued
  std::atomic<uint64_t> last_{0};
  std::atomic<bool> abandoned_{false};
  Flights* const flights_;
  std::mutex clock_mutex_;
  std::optional<int64_t> clock_offset_ns_;  // from the device's time to the host's
};

}  // namespace tuff::devices::opencl

// The CPU's queue: a ring of fixed-size entries, each naming an encoded list of packets, consumed
// in order by one thread at a time: the queue's own, or one that waits for it (which saves waking a
// thread). Called through hcq::Queue. Knows nothing of how programs were loaded.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "devices/cpu/cpu.h"
#include "devices/cpu/cpu_pool.h"
#include "devices/cpu_signal.h"
#include "devices/cpu_program.h"
#include "hcq/device.h"

namespace tuff::devices {

// One command in native form: one cache line.
struct alignas(64) CpuPacket {
  enum class Kind : uint32_t {
    DispatchOne,
    Dispatch,
    DispatchIndirect,
    Copy,
    Wait,
    Signal,
    Timestamp,
    HostCall
  };
  struct Dispatch {
    render::CpuKernelFn fn;
    const void* args;
    const uint32_t* indirect;
    std::atomic<uint32_t>* cost_ns;
    CpuGrid grid;
  };
  struct Copy {
    void* dst;
    const void* src;
    size_t size_bytes;
  };
  struct Sync {
    hcq::Signal* signal;
    uint32_t slot;
  };
  struct Time {
    uint32_t index;
  };
  struct Call {
    void (*fn)(void*);
    void* context;
  };
  Kind kind = Kind::DispatchOne;
  union {
    Dispatch dispatch;
    Copy copy;
    Sync sync;
    Time time;
    Call call;
  };
  CpuPacket() : dispatch{} {}
};
static_assert(sizeof(CpuPacket) == 64);

class CpuList final : public hcq::EncodedList {
 public:
  std::vector<CpuPacket> packets;
  std::vector<uint64_t> slots, times;
};

class CpuQueue final : public hcq::Queue {
 public:
  CpuQueue(hcq::Device& device, const CpuApi& api, uint32_t threads);
  ~CpuQueue() override;
  void halt() noexcept;  // the stream runs no further; waits shortly for a kernel that is running
  void stop() noexcept;  // ends the threads; what is left in the ring stays undone
  std::unique_ptr<hcq::EncodedList> encode(const hcq::CommandList& list,
                                           hcq::EncodeUse use) override;
  uint64_t submit(hcq::EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(hcq::EncodedList& list) override;
  hcq::Signal& timeline() override { return timeline_; }
  uint64_t last_submitted() const override { return submitted_.load(std::memory_order_acquire); }
  uint64_t progress() const override { return shared_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kRingEntries = 256;

  // The queue's timeline. Who waits for it from the host works instead of sleeping.
  class Timeline final : public CpuSignal {
   public:
    explicit Timeline(CpuQueue& q) : queue_(q) {}
    bool wait(uint64_t value, uint64_t timeout_ns) override;

   private:
    CpuQueue& queue_;
  };

  // In a child of fork() the waiting thread runs what there is, alone. Called before the state is
  // looked at.
  void note_fork() {
    if (process_.load(std::memory_order_acquire) != os::forks()) [[unlikely]]
      leave_threads();
  }
  void leave_threads();
  bool has_thread() const { return process_.load(std::memory_order_relaxed) == started_at_; }

  enum class Progress { Empty, Blocked, Reached, Failed, Late };
  enum class Ended { Whole, Blocked, Late };
  bool take_role() { return !consuming_.exchange(true, std::memory_order_seq_cst); }
  void leave_role();
  // Late: it is past `end_ns`, or what comes next would take long. For who waits and has to look
  // elsewhere now and then, for a Ctrl-C: what is left is the queue's own thread's.
  Progress consume(uint64_t until, uint64_t end_ns = UINT64_MAX);
  bool is_late(const CpuPacket& next, uint64_t end_ns);
  void note_progress() {  // by the consumer alone
    shared_.store(shared_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void declare_failed() noexcept;  // without the consumer's role
  Ended run(CpuList& list, uint64_t end_ns);
  void ring_doorbell();
  bool has_work() const;
  void serve();
  void serve_stream();
  void sleep_until_rung();

  const CpuApi& api_;
  Timeline timeline_;
  CpuSignal never_;  // what a list that hangs waits for
  CpuPool pool_;
  std::mutex submit_mutex_;
  std::array<CpuList*, kRingEntries> ring_{};  // entry v % kRingEntries belongs to value v
  alignas(64) std::atomic<uint64_t> submitted_{0};
  alignas(64) std::atomic<bool> consuming_{false};  // the consumer's role is taken
  std::atomic<uint64_t> shared_{0};                 // launches of several groups that have ended
  size_t cursor_ = 0;                               // of the consumer: next packet of its list
  uint32_t packets_ = 0;                            // that it has run; the clock costs 20 ns
  struct {
    hcq::Signal* signal;
    uint64_t value;
  } blocked_on_{};  // of the consumer: its head's Wait
  alignas(64) std::atomic<uint32_t> doorbell_{0};
  std::atomic<bool> asleep_{false}, stop_{false};
  // The last list was run by who waited for it, before the thread was there: waking it, which takes
  // the submitter 3 to 12 us, was for nothing. It naps then, and is not woken: a list without a
  // waiter starts late by a nap at most, and the one after it in time.
  std::atomic<bool> waiter_runs_{false};
  std::atomic<uint32_t> naps_{0};
  std::mutex fork_mutex_;
  const uint32_t started_at_ = os::forks();    // of thread_ and the pool's
  std::atomic<uint32_t> process_{started_at_};  // that has been seen
  std::thread thread_;
};

}  // namespace tuff::devices

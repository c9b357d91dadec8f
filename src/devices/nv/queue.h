// NvQueue: a channel with one timeline, a semaphore that each submission releases. A list's
// pushbuffer and the QMDs of its launches lie in memory for the list's whole life; submitting it
// again patches words in them, writes one GPFIFO entry and rings the doorbell. Called through
// hcq::Queue. Knows no ioctls.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "devices/driver_list.h"
#include "devices/flights.h"
#include "devices/nv/program.h"
#include "devices/nv/rm/channel.h"
#include "devices/nv/signal.h"

namespace tuff::devices::nv {

// What stands behind the handles in a list for one of NVIDIA's GPUs.
class HandleBinding final : public Binding {
 public:
  explicit HandleBinding(const SemaphorePages& pages) : pages_(pages) {}
  KernelCode kernel(const hcq::Program& program) const override;
  uint64_t signal_address(const hcq::Signal& signal) const override;

 private:
  const SemaphorePages& pages_;
};

class NvList final : public DriverList {
 public:
  using DriverList::DriverList;
  ~NvList() override;
  // Asks for what a submission changes.
  void prefetch_patched() const;

  Encoded encoded;
  hcq::Span methods, launches, times;
  std::vector<uint64_t> values;
  KernelNames kernels;  // that it runs, for errors
};

enum class ChannelUse : uint8_t { Compute, Copy };

class NvQueue final : public hcq::Queue {
 public:
  NvQueue(hcq::Device& device, ChannelGroup& group, SemaphorePages& pages, ChannelUse use,
          std::function<void()> ask);
  ~NvQueue() override { collect(true); }
  // Once the group runs: the methods that a channel is given before all else.
  void start();
  std::unique_ptr<hcq::EncodedList> encode(const hcq::CommandList& list,
                                           hcq::EncodeUse use) override;
  uint64_t submit(hcq::EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(hcq::EncodedList& list) override;
  hcq::Signal& timeline() override { return timeline_; }
  bool takes_group_slots() const override { return use_ == ChannelUse::Compute; }
  uint64_t last_submitted() const override { return last_.load(std::memory_order_acquire); }
  std::string in_flight() const override;
  Flights& flights() { return flights_; }
  const Channel& channel() const { return *channel_; }

 private:
  const GpuFacts& facts() const { return group_.space().facts(); }
  const Generation& generation() const { return *facts().generation; }
  void place(NvList& list);
  void provide_local_memory(const hcq::CommandList& list);
  void set_up(const PacketStream& methods);
  uint64_t reserve_entry();
  void fill(NvList& list, std::span<const uint64_t> slots, uint64_t value);

  ChannelGroup& group_;
  SemaphorePages& pages_;
  const ChannelUse use_;
  NvSignal timeline_;
  const std::unique_ptr<Channel> channel_;
  Mutex mutex_;  // of submissions
  std::atomic<uint64_t> last_{0};
  Flights flights_;
  std::mutex local_mutex_;
  uint32_t local_bytes_ = 0;  // of a thread, that there is memory for
  // What the channel was told of stays: earlier launches may run on.
  std::vector<std::unique_ptr<Buffer>> kept_;
};

}  // namespace tuff::devices::nv

// AmdQueue: command lists as packets in a hardware queue's ring. A list's indirect buffer lies in
// memory for the list's whole life; submitting it again patches words in it, puts one packet into
// the ring and rings the doorbell (PM4). Copies and AQL go into the ring as they are.
// Called through hcq::Queue. Knows no ioctls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "devices/amd/encode/values.h"
#include "devices/amd/gpu_state.h"
#include "devices/amd/signal.h"
#include "devices/driver_list.h"
#include "devices/flights.h"
#include "hcq/device.h"

namespace tuff::devices::amd {

// What stands behind the handles in a list for one of AMD's GPUs.
class HandleBinding final : public Binding {
 public:
  KernelCode kernel(const hcq::Program& program) const override;
  uint64_t signal_address(const hcq::Signal& signal) const override;
};
// The most that a lane of any of the list's kernels needs.
uint32_t private_bytes(const hcq::CommandList& list, const Binding& binding);

class AmdQueue;

class AmdList final : public DriverList {
 public:
  using DriverList::DriverList;
  ~AmdList() override;
  uint32_t* ib_host() const { return reinterpret_cast<uint32_t*>(ib.host()); }

  Encoded encoded;
  hcq::Span ib, times;
  PacketStream jump;             // of PM4: what the ring is given
  std::vector<uint32_t> staged;  // of the others: the ring's dwords, patched
  std::vector<uint64_t> values;
  std::vector<AmdSignal*> signals;         // of encoded.words
  std::vector<const SignalEpoch*> epochs;  // theirs
  std::shared_ptr<const Scratch> scratch;  // what its packets name
  KernelNames kernels;                     // that it runs, for errors
};

class AmdQueue final : public hcq::Queue {
 public:
  AmdQueue(hcq::Device& device, GpuState& gpu, const HardwareQueueSetup& setup, const char* name);
  ~AmdQueue() override;
  std::unique_ptr<hcq::EncodedList> encode(const hcq::CommandList& list,
                                           hcq::EncodeUse use) override;
  uint64_t submit(hcq::EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(hcq::EncodedList& list) override;
  hcq::Signal& timeline() override { return *timeline_; }
  bool takes_group_slots() const override { return type_ == QueueType::Aql; }
  void wait(uint64_t value) override;
  uint64_t last_submitted() const override {
    return submission_.last.load(std::memory_order_acquire);
  }
  Flights& flights() { return flights_; }

  // Nothing runs from here on.
  void stop() noexcept { hardware_->stop(); }
  std::string in_flight() const override;

 private:
  void place(AmdList& list);
  void prepare_scratch(AmdList& list, const hcq::CommandList& commands);
  void fill(AmdList& list, std::span<const uint64_t> slots, uint64_t value);
  void rebase(AmdList& list, const SubmissionValues& given, const SignalEpoch* epoch);
  void push(const PacketStream& stream, std::span<const uint32_t> dwords);
  void wait_for_room(uint64_t since_ns);

  GpuState& gpu_;
  const QueueType type_;
  const char* name_;
  const std::unique_ptr<Interrupt> interrupt_;
  std::optional<AmdSignal> timeline_;
  const std::unique_ptr<HardwareQueue> hardware_;
  Ring& ring_;                                  // its own
  std::shared_ptr<const Scratch> aql_scratch_;  // what the queue itself names
  // Side by side, so that a submission comes to few lines of memory.
  struct Submission {
    Mutex mutex;
    std::atomic<uint64_t> last{0};
    uint32_t number = 0;  // of the queue, in the QueueTable
  };
  mutable Submission submission_;
  Flights flights_;
};

}  // namespace tuff::devices::amd

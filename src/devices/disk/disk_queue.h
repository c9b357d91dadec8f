// The queue of a DISK device: a thread that takes lists in order and hands the copies between two
// barriers to the kernel together, so that all their requests are in flight. The thread starts with
// the first list.
//
// A copy that fails is not the device's end: the list's other copies may be undone too, its signals
// are raised, and a wait for its value throws the IoError.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/os_fork.h"
#include "base/os_transfer.h"
#include "devices/disk/disk_memory.h"
#include "hcq/device.h"
#include "hcq/host_queue.h"

namespace tuff::devices {

class DiskQueue final : public hcq::Queue {
 public:
  explicit DiskQueue(hcq::Device& device) : Queue(device) {}
  ~DiskQueue() override { stop(); }
  void stop() noexcept;  // what was submitted runs first
  std::unique_ptr<hcq::EncodedList> encode(const hcq::CommandList& list,
                                           hcq::EncodeUse use) override;
  uint64_t submit(hcq::EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(hcq::EncodedList& list) override;
  hcq::Signal& timeline() override { return timeline_; }
  uint64_t last_submitted() const override { return submitted_.load(std::memory_order_acquire); }
  // Without a limit: a disk may take long, and what it fills cannot be taken back.
  void wait(uint64_t value) override;

 private:
  struct List;
  struct Entry {
    List* list = nullptr;
    std::vector<uint64_t> slots;
  };
  // Copies that nothing orders.
  struct Batch {
    std::vector<os::Transfer> transfers;
    std::vector<const DiskMemory*> read;
    void add(const hcq::CopyCmd& copy);
    void run();
  };
  void serve();
  void run(Entry& entry, uint64_t value);
  void tell(const hcq::CommandList& list, uint64_t value, const std::string& reason);
  void run(List& list, const std::vector<uint64_t>& slots, size_t& next);

  hcq::HostTimeline timeline_;
  std::mutex mutex_;
  std::condition_variable doorbell_;
  std::deque<Entry> waiting_;
  std::map<uint64_t, std::string> failures_;  // by value; the last ones not asked for yet
  std::atomic<uint64_t> submitted_{0};
  bool stop_ = false;
  const uint32_t started_at_ = os::forks();
  std::thread thread_;
};

}  // namespace tuff::devices

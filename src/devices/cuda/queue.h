// CudaQueue: a stream with one timeline, a word of pinned memory that the stream writes behind each
// submission. Submitting a list makes its calls, of which a replayed one has few: a graph's launch
// and the write. Called through hcq::Queue. Knows nothing of how kernels were compiled.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "devices/cuda/list.h"
#include "hcq/device.h"

namespace tuff::devices::cuda {

class CudaQueue final : public hcq::Queue {
 public:
  CudaQueue(hcq::Device& device, std::shared_ptr<Context> context,
            std::shared_ptr<SignalWords> words, const char* name);
  ~CudaQueue() override;
  std::unique_ptr<hcq::EncodedList> encode(const hcq::CommandList& list,
                                           hcq::EncodeUse use) override;
  uint64_t submit(hcq::EncodedList& list, std::span<const uint64_t> slots) override;
  std::vector<uint64_t> timestamps(hcq::EncodedList& list) override;
  hcq::Signal& timeline() override { return timeline_; }
  bool takes_group_slots() const override { return true; }
  uint64_t last_submitted() const override { return last_.load(std::memory_order_acquire); }
  std::string in_flight() const override;
  Flights& flights() { return flights_; }
  CUstream stream() const { return stream_; }

 private:
  CudaLaunch launch_of(const hcq::DispatchCmd& d, const CudaList& list) const;
  const CudaSignal& own_signal(const hcq::Signal* signal) const;
  void encode(const hcq::Command& command, CudaList& list) const;
  void encode_graphs(const hcq::CommandList& list, CudaList& out) const;
  void enqueue(CudaList& list, std::span<const uint64_t> slots);
  void enqueue(const CudaLaunch& launch, std::span<const uint64_t> slots);
  void ask() const;
  uint64_t marked_ns(CUevent event, CUevent now, uint64_t now_ns) const;

  std::shared_ptr<Context> context_;
  const char* name_;
  CudaSignal timeline_;
  CUstream stream_ = nullptr, clock_ = nullptr;
  Mutex mutex_;  // of submissions
  std::atomic<uint64_t> last_{0};
  Flights flights_;
};

}  // namespace tuff::devices::cuda

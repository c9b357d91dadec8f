// CudaSignal: a 64-bit word of pinned memory, which the host and the streams of every GPU read and
// write: streams wait for it and raise it by memory operations, so no event is needed and values
// are never reset. Used by queues and by threads that wait for them. Knows no commands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "devices/cuda/context.h"
#include "hcq/device.h"

namespace tuff::devices::cuda {

// Words of pinned memory, each on a cache line of its own.
class SignalWords {
 public:
  explicit SignalWords(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~SignalWords();
  uint64_t* take();
  void give_back(uint64_t* word) noexcept;

 private:
  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::vector<void*> pages_;
  std::vector<uint64_t*> free_;
};

class CudaSignal final : public hcq::Signal {
 public:
  // `ask`: whether the device still works, throws DeviceLost if not; called now and then while a
  // thread waits. May be empty.
  CudaSignal(std::shared_ptr<SignalWords> words, uint64_t value, std::function<void()> ask = {});
  ~CudaSignal() override { words_->give_back(word_); }
  uint64_t value() const override;
  bool wait(uint64_t value, uint64_t timeout_ns) override;
  void set(uint64_t value) override;
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(word_); }

 private:
  std::shared_ptr<SignalWords> words_;
  uint64_t* word_;
  std::function<void()> ask_;
};

}  // namespace tuff::devices::cuda

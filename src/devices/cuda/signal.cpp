#include "devices/cuda/signal.h"

#include <atomic>

#include "devices/word_wait.h"

namespace tuff::devices::cuda {
namespace {

constexpr size_t kWordsBytes = 4096, kWordStride = 64;

}  // namespace

SignalWords::~SignalWords() {
  const Context& c = *context_;
  const Current current(c, std::nothrow);
  if (!current) return;
  for (void* page : pages_) c.release(c.api.MemFreeHost(page), "cuMemFreeHost");
}

uint64_t* SignalWords::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    const Context& c = *context_;
    const Current current(c);
    void* page = nullptr;
    c.check(c.api.MemHostAlloc(&page, kWordsBytes,
                               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
            "cuMemHostAlloc");
    pages_.push_back(page);
    for (size_t at = kWordsBytes; at > 0; at -= kWordStride)
      free_.push_back(
          reinterpret_cast<uint64_t*>(static_cast<std::byte*>(page) + at - kWordStride));
  }
  uint64_t* word = free_.back();
  free_.pop_back();
  return word;
}

// A stream of a device that was given up may still wait for the word: it stays as it is.
void SignalWords::give_back(uint64_t* word) noexcept {
  if (context_->abandoned()) return;
  std::lock_guard lock(mutex_);
  free_.push_back(word);
}

CudaSignal::CudaSignal(std::shared_ptr<SignalWords> words, uint64_t value,
                       std::function<void()> ask)
    : words_(std::move(words)), word_(words_->take()), ask_(std::move(ask)) {
  set(value);
}

[[gnu::hot]]
uint64_t CudaSignal::value() const {
  return std::atomic_ref(*word_).load(std::memory_order_acquire);
}

void CudaSignal::set(uint64_t value) {
  std::atomic_ref(*word_).store(value, std::memory_order_release);
}

bool CudaSignal::wait(uint64_t value, uint64_t timeout_ns) {
  return wait_for_word(*word_, value, timeout_ns, ask_);
}

}  // namespace tuff::devices::cuda

#include "devices/nv/signal.h"

#include <atomic>

#include "devices/word_wait.h"

namespace tuff::devices::nv {
namespace {

constexpr size_t kSemaphorePageBytes = 64 << 10, kSemaphoreStride = 64;

}  // namespace

SemaphorePages::Word SemaphorePages::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    auto page = space_.allocate(kSemaphorePageBytes, MemoryDomain::System);
    for (size_t at = kSemaphorePageBytes; at > 0; at -= kSemaphoreStride) {
      const size_t begin = at - kSemaphoreStride;
      free_.push_back({reinterpret_cast<uint64_t*>(page->host() + begin), page->address() + begin});
    }
    pages_.push_back(std::move(page));
  }
  const Word word = free_.back();
  free_.pop_back();
  return word;
}

void SemaphorePages::give_back(const Word& word) noexcept {
  std::lock_guard lock(mutex_);
  free_.push_back(word);
}

void SemaphorePages::map_for(const Word& word, Space& space) {
  std::lock_guard lock(mutex_);
  for (const auto& page : pages_)
    if (word.address - page->address() < page->size_bytes()) page->map_for(space);
}

NvSignal::NvSignal(SemaphorePages& pages, uint64_t value, std::function<void()> ask)
    : pages_(pages), word_(pages.take()), ask_(std::move(ask)) {
  set(value);
}

[[gnu::hot]]
uint64_t NvSignal::value() const {
  return std::atomic_ref(*word_.host).load(std::memory_order_acquire);
}

void NvSignal::set(uint64_t value) {
  std::atomic_ref(*word_.host).store(value, std::memory_order_release);
}

bool NvSignal::wait(uint64_t value, uint64_t timeout_ns) {
  return wait_for_word(*word_.host, value, timeout_ns, ask_);
}

}  // namespace tuff::devices::nv

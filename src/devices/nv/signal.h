// NvSignal: a 64-bit word of the host's memory that host and GPU read and write: channels wait for
// it and raise it by semaphores, so values are never reset. Used by queues and by threads that wait
// for them. Knows no methods.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "devices/nv/rm/space.h"
#include "hcq/device.h"

namespace tuff::devices::nv {

// Semaphores of one GPU, each on a cache line of its own.
class SemaphorePages {
 public:
  struct Word {
    uint64_t* host = nullptr;
    uint64_t address = 0;  // the GPU's
  };
  explicit SemaphorePages(Space& space) : space_(space) {}
  Word take();
  void give_back(const Word& word) noexcept;
  Space& space() const { return space_; }
  // Has channels of another GPU of the client reach it too, at its address.
  void map_for(const Word& word, Space& space);

 private:
  Space& space_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> pages_;
  std::vector<Word> free_;
};

class NvSignal final : public hcq::Signal {
 public:
  // `ask`: whether the device still works, throws DeviceLost if not; called now and then while a
  // thread waits. May be empty.
  NvSignal(SemaphorePages& pages, uint64_t value, std::function<void()> ask = {});
  ~NvSignal() override { pages_.give_back(word_); }
  uint64_t value() const override;
  bool wait(uint64_t value, uint64_t timeout_ns) override;
  void set(uint64_t value) override;
  uint64_t address() const { return word_.address; }
  bool is_of(const SemaphorePages& pages) const { return &pages == &pages_; }
  const Space& space() const { return pages_.space(); }
  void map_for(Space& space) const { pages_.map_for(word_, space); }

 private:
  SemaphorePages& pages_;
  SemaphorePages::Word word_;
  std::function<void()> ask_;
};

}  // namespace tuff::devices::nv

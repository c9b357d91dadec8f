// Pages: host memory behind emulated buffers. Shared ones lie in one file of the machine and can be
// mapped at a second address, which is how a driver and the emulated GPUs see the same bytes.
// Called by what emulates a kernel driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/arith.h"
#include "emu/memory/memory.h"

namespace tuff::emu {

inline uint64_t align_down(uint64_t n, uint64_t to) { return n / to * to; }

// Memory without a name that takes room where it is touched. One file serves a whole machine, for
// buffers are many and file descriptors few.
class PageFile {
 public:
  PageFile();
  ~PageFile();
  PageFile(const PageFile&) = delete;
  // A place that was never given out before; ~0 if the file cannot grow.
  uint64_t reserve(size_t size_bytes);
  int descriptor() const { return file_; }

 private:
  std::mutex mutex_;
  int file_;
  uint64_t end_ = 0;
};

class Pages {
 public:
  Pages() = default;
  // Null data() if there is no room. Zeroed. Shared ones have a file.
  static Pages make(size_t size_bytes, std::shared_ptr<PageFile> file = nullptr);
  ~Pages();
  Pages(Pages&& o) noexcept { swap(o); }
  Pages& operator=(Pages&& o) noexcept {
    swap(o);
    return *this;
  }
  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_; }
  // As mmap: the address or -errno. Of shared pages.
  intptr_t map_at(void* at, size_t size_bytes, int protection, int flags) const;

 private:
  void swap(Pages& o) noexcept;
  std::shared_ptr<PageFile> file_;
  uint64_t offset_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tuff::emu

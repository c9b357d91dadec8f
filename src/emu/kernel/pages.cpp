#include "emu/kernel/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace tuff::emu {

PageFile::PageFile() : file_(memfd_create("tuff emulated memory", MFD_CLOEXEC)) {
  if (file_ < 0) fail<OutOfMemory>("emulated GPU: no file for memory: {}", std::strerror(errno));
}

PageFile::~PageFile() { ::close(file_); }

uint64_t PageFile::reserve(size_t size_bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t begin = end_;
  if (ftruncate(file_, off_t(begin + size_bytes)) != 0) return ~uint64_t(0);
  end_ = begin + size_bytes;
  return begin;
}

Pages Pages::make(size_t size_bytes, std::shared_ptr<PageFile> file) {
  Pages pages;
  const uint64_t offset = file ? file->reserve(size_bytes) : 0;
  if (offset == ~uint64_t(0)) return pages;
  const int flags = MAP_NORESERVE | (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
  void* p = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags,
                   file ? file->descriptor() : -1, off_t(offset));
  if (p == MAP_FAILED) return pages;
  pages.file_ = std::move(file);
  pages.offset_ = offset;
  pages.data_ = static_cast<std::byte*>(p);
  pages.size_ = size_bytes;
  return pages;
}

// The place in the file is never used again: a mapping that a driver has kept reads zeros from now
// on and meets no other buffer's bytes.
Pages::~Pages() {
  if (data_) ::munmap(data_, size_);
  if (file_) {
    fallocate(file_->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(offset_),
              off_t(size_));
  }
}

intptr_t Pages::map_at(void* at, size_t size_bytes, int protection, int flags) const {
  void* p = ::mmap(at, size_bytes, protection, flags, file_->descriptor(), off_t(offset_));
  return p == MAP_FAILED ? -errno : reinterpret_cast<intptr_t>(p);
}

void Pages::swap(Pages& o) noexcept {
  std::swap(file_, o.file_);
  std::swap(offset_, o.offset_);
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
}

}  // namespace tuff::emu

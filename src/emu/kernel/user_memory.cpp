#include "emu/kernel/user_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "emu/kernel/pages.h"

namespace tuff::emu {
namespace {

// Not the C library's functions: the thread sanitizer would take them for accesses of this thread,
// and what a list holds while its owner changes it is not trusted anyway.
bool store(int file, uint64_t from, size_t size_bytes) {
  return syscall(SYS_pwrite64, file, from, size_bytes, 0) == ssize_t(size_bytes);
}
bool fetch(int file, uint64_t to, size_t size_bytes) {
  return syscall(SYS_pread64, file, to, size_bytes, 0) == ssize_t(size_bytes);
}

}  // namespace

UserMemory::UserMemory() : file_(memfd_create("tuff emulated copy", MFD_CLOEXEC)) {
  if (file_ < 0) fail<OutOfMemory>("emulated GPU: no file for copies: {}", std::strerror(errno));
}

UserMemory::~UserMemory() { ::close(file_); }

bool UserMemory::read(uint64_t address, void* to, size_t size_bytes) {
  if (size_bytes == 0) return true;
  std::lock_guard lock(mutex_);
  return store(file_, address, size_bytes) &&
         fetch(file_, reinterpret_cast<uint64_t>(to), size_bytes);
}

bool UserMemory::write(uint64_t address, const void* from, size_t size_bytes) {
  if (size_bytes == 0) return true;
  std::lock_guard lock(mutex_);
  return store(file_, reinterpret_cast<uint64_t>(from), size_bytes) &&
         fetch(file_, address, size_bytes);
}

std::optional<std::string> UserMemory::read_text(uint64_t address, size_t limit) {
  std::string text;
  while (text.size() < limit) {
    // To the end of a page at most: the next one need not be there.
    char part[256];
    const uint64_t at = address + text.size();
    const size_t size = std::min({sizeof part, limit - text.size(), kPageBytes - at % kPageBytes});
    if (!read(at, part, size)) return std::nullopt;
    const size_t length = strnlen(part, size);
    text.append(part, length);
    if (length < size) return text;
  }
  return std::nullopt;
}

bool is_mapped_here(uint64_t address, uint64_t size_bytes) {
  const uint64_t begin = align_down(address, kPageBytes);
  constexpr uint64_t kStepBytes = 1ull << 30;
  std::vector<unsigned char> resident(kStepBytes / kPageBytes);
  for (uint64_t at = begin; at < address + size_bytes; at += kStepBytes) {
    const uint64_t size = std::min(kStepBytes, address + size_bytes - at);
    if (mincore(reinterpret_cast<void*>(at), size, resident.data()) != 0) return false;
  }
  return true;
}

}  // namespace tuff::emu

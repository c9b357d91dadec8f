// UserMemory: what the kernel's copy_from_user and copy_to_user do, for addresses that a caller or
// a list in its memory names: bytes that are not there are an answer and not a crash. Called by
// what emulates a kernel driver. Thread-safe, a leaf among locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace tuff::emu {

class UserMemory {
 public:
  UserMemory();
  ~UserMemory();
  UserMemory(const UserMemory&) = delete;
  // False: some byte cannot be read, or written.
  bool read(uint64_t address, void* to, size_t size_bytes);
  bool write(uint64_t address, const void* from, size_t size_bytes);
  template <class T>
  std::optional<T> read(uint64_t address) {
    T value;
    if (!read(address, &value, sizeof value)) return std::nullopt;
    return value;
  }
  // Up to a zero byte, at most `limit` bytes; nullopt if there is none within these.
  std::optional<std::string> read_text(uint64_t address, size_t limit);

 private:
  std::mutex mutex_;
  int file_;  // bytes pass through it: file calls answer EFAULT where an access would crash
};

// Is every page of the range mapped in this process?
bool is_mapped_here(uint64_t address, uint64_t size_bytes);

}  // namespace tuff::emu

// Faults on purpose while a file is written (TUFF_WRITE_FAULT): the process is killed, or the disk
// is full. Called by os_output.cpp at each place where a writer can be interrupted; without the
// variable it does nothing. Must never be reached in normal use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tuff::os {

void check_write_fault();  // InvalidArgument for a variable that makes no sense

class WriteFault {
 public:
  // The fault of the next writing of `path`, which is counted. Throws as check_write_fault().
  explicit WriteFault(const std::string& path);
  // How many of `size` bytes at `offset` are written before the fault.
  size_t allowed(uint64_t offset, size_t size) const;
  // The fault itself, if it stands at this byte: does not return, or gives errno's value.
  int at_byte(uint64_t offset) const;
  // The same for "sync", "rename" and "folder", which are what comes next.
  void before(const char* stage) const;

 private:
  std::optional<uint64_t> kill_at_, full_at_;
  std::string stage_;
};

}  // namespace tuff::os

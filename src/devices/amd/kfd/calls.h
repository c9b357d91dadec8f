// System calls of the driver, with what they refuse as errors that name the call, its arguments and
// the remedy. Used by everything in kfd/. Knows no queue and no GPU.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/arith.h"
#include "base/check.h"
#include "base/os_kernel.h"
#include "base/os_kfd.h"
#include "devices/kernel_file.h"

namespace tuff::devices::amd {

namespace uapi = os::kfd;

// `error` is a positive errno. OutOfMemory for ENOMEM, DeviceLost for a GPU that is gone,
// Unsupported for what this user may not do, else IoError.
[[noreturn]] void fail_call(const std::string& call, int error);

// `result` as an os::Kernel gives it; the text is made on failure alone.
template <class... Args>
int checked(int result, fmt::format_string<Args...> call, Args&&... args) {
  if (result < 0) fail_call(fmt::format(call, std::forward<Args>(args)...), -result);
  return result;
}

// A call that gives something back: a failure cannot be reported any more, so it is tried twice.
template <class T>
int undo(os::Kernel& kernel, int fd, unsigned long request, T& argument) noexcept {
  const int result = kernel.ioctl(fd, request, &argument);
  return result < 0 ? kernel.ioctl(fd, request, &argument) : result;
}

// To read and write; throws.
KernelFile open_file(os::Kernel& kernel, const std::string& path);

// Address space of the process: reserved without access, mapped in place, given back as a whole.
class AddressRange {
 public:
  AddressRange(os::Kernel& kernel, size_t size_bytes, size_t alignment);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  std::byte* data() const { return data_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }
  size_t size_bytes() const { return size_; }
  void map(int fd, uint64_t offset);  // to read and write, shared

 private:
  os::Kernel& kernel_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

inline constexpr size_t kPageBytes = 4096;

}  // namespace tuff::devices::amd

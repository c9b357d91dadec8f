// KernelFile: an open file of an os::Kernel, closed with the object. Used by devices that submit
// directly. Knows no calls.
#pragma once

#include <utility>

#include "base/os_kernel.h"

namespace tuff::devices {

class KernelFile {
 public:
  KernelFile() = default;
  KernelFile(os::Kernel& kernel, int fd) : kernel_(&kernel), fd_(fd) {}
  ~KernelFile() {
    if (fd_ >= 0) kernel_->close(fd_);
  }
  KernelFile(KernelFile&& o) noexcept : kernel_(o.kernel_), fd_(std::exchange(o.fd_, -1)) {}
  KernelFile& operator=(KernelFile&& o) noexcept {
    std::swap(kernel_, o.kernel_);
    std::swap(fd_, o.fd_);
    return *this;
  }
  int fd() const { return fd_; }

 private:
  os::Kernel* kernel_ = nullptr;
  int fd_ = -1;
};

}  // namespace tuff::devices

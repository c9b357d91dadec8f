// Descriptor: a file descriptor that is closed with its owner. Called by the OS seam alone.
#pragma once

#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

namespace tuff::os {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// "cannot open 'x': No such file or directory"
[[noreturn]] inline void fail_errno(const char* what, const std::string& path, int error) {
  fail<IoError>("{} '{}': {}", what, path, std::strerror(error));
}

}  // namespace tuff::os

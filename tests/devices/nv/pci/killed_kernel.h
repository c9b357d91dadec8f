// A process that is killed in the middle of what it does, as the kernel sees it.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/os_kernel.h"

namespace tuff::devices::nv::test {

// A process that makes no call any more from the n-th on: the kernel closes its files.
class KilledKernel final : public os::Kernel {
 public:
  KilledKernel(std::shared_ptr<os::Kernel> machine, uint64_t calls)
      : machine_(std::move(machine)), left_(calls) {}
  bool is_dead() const { return left_ == 0; }
  int open(const std::string& path, int flags) override {
    return dies() ? -EIO : machine_->open(path, flags);
  }
  int close(int fd) override { return machine_->close(fd); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    return dies() ? -EIO : machine_->ioctl(fd, request, argument);
  }
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override {
    return dies() ? -EIO : machine_->mmap(at, size_bytes, protection, flags, fd, offset);
  }
  int munmap(void*, size_t) override { return 0; }  // with the process
  int64_t pread(int fd, void* bytes, size_t size_bytes, uint64_t offset) override {
    return dies() ? -EIO : machine_->pread(fd, bytes, size_bytes, offset);
  }
  int64_t pwrite(int fd, const void* bytes, size_t size_bytes, uint64_t offset) override {
    return dies() ? -EIO : machine_->pwrite(fd, bytes, size_bytes, offset);
  }
  int read_text(const std::string& path, std::string& text) override {
    return machine_->read_text(path, text);
  }
  int list_directory(const std::string& path, std::vector<std::string>& names) override {
    return machine_->list_directory(path, names);
  }

 private:
  bool dies() { return left_ == 0 || --left_ == 0; }
  const std::shared_ptr<os::Kernel> machine_;
  uint64_t left_;
};

}  // namespace tuff::devices::nv::test

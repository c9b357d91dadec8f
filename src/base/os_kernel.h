// Kernel: what a driver asks of the operating system when it drives hardware itself: device files,
// their ioctls, mappings and bytes, sysfs. One object, so that an emulated machine (emu) can stand in the
// system's place. Called by devices that submit directly; everybody else uses os.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tuff::os {

// Each returns what the system call of that name does, or -errno; none throws. Thread-safe.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int open(const std::string& path, int flags) = 0;
  virtual int close(int fd) = 0;
  virtual int ioctl(int fd, unsigned long request, void* argument) = 0;
  // The address, or -errno.
  virtual intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                        uint64_t offset) = 0;
  virtual int munmap(void* at, size_t size_bytes) = 0;
  // Bytes at an offset of a device file, or -errno.
  virtual int64_t pread(int fd, void* bytes, size_t size_bytes, uint64_t offset);
  virtual int64_t pwrite(int fd, const void* bytes, size_t size_bytes, uint64_t offset);
  // For sysfs: the whole text of a file, the sorted names in a folder.
  virtual int read_text(const std::string& path, std::string& text) = 0;
  virtual int list_directory(const std::string& path, std::vector<std::string>& names) = 0;
};

Kernel& system_kernel();

}  // namespace tuff::os

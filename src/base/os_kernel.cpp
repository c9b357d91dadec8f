#include "base/os_kernel.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/os.h"

namespace tuff::os {
namespace {

template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result < 0 ? decltype(result)(-errno) : result;
}

class SystemKernel final : public Kernel {
 public:
  int open(const std::string& path, int flags) override {
    return uninterrupted([&] { return ::open(path.c_str(), flags); });
  }
  int close(int fd) override { return ::close(fd) < 0 ? -errno : 0; }
  int ioctl(int fd, unsigned long request, void* argument) override {
    return uninterrupted([&] { return ::ioctl(fd, request, argument); });
  }
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override {
    void* p = ::mmap(at, size_bytes, protection, flags, fd, static_cast<off_t>(offset));
    return p == MAP_FAILED ? -errno : reinterpret_cast<intptr_t>(p);
  }
  int munmap(void* at, size_t size_bytes) override {
    return ::munmap(at, size_bytes) < 0 ? -errno : 0;
  }
  int64_t pread(int fd, void* bytes, size_t size_bytes, uint64_t offset) override {
    const auto at = static_cast<off_t>(offset);
    return uninterrupted([&] { return ::pread(fd, bytes, size_bytes, at); });
  }
  int64_t pwrite(int fd, const void* bytes, size_t size_bytes, uint64_t offset) override {
    const auto at = static_cast<off_t>(offset);
    return uninterrupted([&] { return ::pwrite(fd, bytes, size_bytes, at); });
  }
  int read_text(const std::string& path, std::string& text) override;
  int list_directory(const std::string& path, std::vector<std::string>& names) override;
};

int SystemKernel::read_text(const std::string& path, std::string& text) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fd;
  text.clear();
  char part[4096];
  ssize_t got = 0;
  while ((got = uninterrupted([&] { return ::read(fd, part, sizeof part); })) > 0)
    text.append(part, static_cast<size_t>(got));
  ::close(fd);
  return got < 0 ? static_cast<int>(got) : 0;
}

int SystemKernel::list_directory(const std::string& path, std::vector<std::string>& names) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return error ? -error.value() : -ENOTDIR;
  names = os::list_directory(path);
  return 0;
}

}  // namespace

// Of machines whose device files have no bytes.
int64_t Kernel::pread(int, void*, size_t, uint64_t) { return -EINVAL; }
int64_t Kernel::pwrite(int, const void*, size_t, uint64_t) { return -EINVAL; }

Kernel& system_kernel() {
  static SystemKernel kernel;
  return kernel;
}

}  // namespace tuff::os

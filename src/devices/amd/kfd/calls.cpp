#include "devices/amd/kfd/calls.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace tuff::devices::amd {
namespace {

// What can be done about it; what amdkfd means by these numbers stands in its kfd_chardev.c.
const char* remedy(int error) {
  switch (error) {
    case ENOMEM: return "free memory, or use a smaller model or batch";
    case ENOSPC: return "too many queues or events are in use: end other programs on this GPU";
    case EACCES:
    case EPERM:
      return "this user may not open it: join the groups render and video (usermod -aG "
             "render,video $USER) and log in again";
    case ENOENT: return "load the kernel module amdgpu; a container needs the device passed to it";
    case EBUSY:
    case EEXIST:
      return "another runtime of this process (ROCm?) uses the GPU already: only one can";
    case EINVAL:
      return "the kernel refuses these values: if it is newer than interface 1.17, report it";
    case ENODEV:
    case EIO: return "the GPU was reset, or is gone: see dmesg";
    default: return "see dmesg";
  }
}

}  // namespace

void fail_call(const std::string& call, int error) {
  const std::string text =
      fmt::format("AMD: {} failed: {}; {}", call, std::strerror(error), remedy(error));
  switch (error) {
    case ENOMEM: throw OutOfMemory(text);
    case ENODEV:
    case EIO: throw DeviceLost(text);
    case EACCES:
    case EPERM:
    case ENOENT:
    case EBUSY: throw Unsupported(text);
    default: throw IoError(text);
  }
}

KernelFile open_file(os::Kernel& kernel, const std::string& path) {
  return {kernel, checked(kernel.open(path, O_RDWR | O_CLOEXEC), "open({})", path)};
}

// A page behind it stays reserved: an access past the end is a fault and no write to whatever the
// GPU has next to it.
AddressRange::AddressRange(os::Kernel& kernel, size_t size_bytes, size_t alignment)
    : kernel_(kernel), size_(size_bytes) {
  const size_t spare = alignment > kPageBytes ? alignment - kPageBytes : 0;
  const intptr_t got = kernel.mmap(nullptr, size_bytes + kPageBytes + spare, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got < 0) fail_call(fmt::format("reserving {} bytes of addresses", size_bytes), int(-got));
  auto* whole = reinterpret_cast<std::byte*>(got);
  data_ = reinterpret_cast<std::byte*>(align_up(uint64_t(got), alignment));
  if (data_ > whole) kernel.munmap(whole, size_t(data_ - whole));
  const size_t behind = spare - size_t(data_ - whole);
  if (behind > 0) kernel.munmap(data_ + size_ + kPageBytes, behind);
}

AddressRange::~AddressRange() { kernel_.munmap(data_, size_ + kPageBytes); }

void AddressRange::map(int fd, uint64_t offset) {
  const intptr_t got =
      kernel_.mmap(data_, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
  if (got < 0) fail_call(fmt::format("mmap({} bytes at offset {:#x})", size_, offset), int(-got));
}

}  // namespace tuff::devices::amd

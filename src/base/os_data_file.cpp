#include "base/os_data_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/os_transfer.h"

namespace tuff::os {
namespace {

constexpr uint64_t kPageBytes = 4096;

const char* remedy(int error) {
  switch (error) {
    case ENOENT: return "; check the path";
    case EACCES:
    case EPERM: return "; it needs other permissions";
    case EMFILE:
    case ENFILE: return "; close files or raise the limit (ulimit -n)";
    default: return "";
  }
}

const char* no_file(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a folder, no regular file; name a file in it";
  if (S_ISFIFO(mode) || S_ISSOCK(mode))
    return "it is a pipe, no regular file; write what comes out of it to a file first";
  return "it is a device, no regular file";
}

}  // namespace

bool DataFile::open_at(const std::string& path, Mode mode) {
  if (mode != Mode::Read) {
    const int create = mode == Mode::Create ? O_CREAT : 0;
    file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | create, 0666));
    writable_ = file_.is_open();
    if (writable_) return true;
    if (errno != EACCES && errno != EROFS && errno != EPERM && errno != EISDIR && errno != ETXTBSY)
      return false;
  }
  // Else a pipe would wait here for its writer before it is refused.
  file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file_.is_open();
}

DataFile::DataFile(const std::string& path, Mode mode) : path_(path) {
  if (!open_at(path, mode))
    fail<IoError>("cannot open '{}': {}{}", path, std::strerror(errno), remedy(errno));
  struct stat status;
  if (::fstat(file_.get(), &status) != 0) fail_errno("cannot read", path_, errno);
  if (!S_ISREG(status.st_mode))
    fail<IoError>("cannot read '{}': {}", path_, no_file(status.st_mode));
  opened_ = now();
  open_direct();
}

DataFile::~DataFile() {
  if (map_) ::munmap(map_, map_bytes_);
}

// Through /proc, so that it is this file even if another one has its name by now.
void DataFile::open_direct() {
  const std::string self = fmt::format("/proc/self/fd/{}", file_.get());
  direct_ = Descriptor(::open(self.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (!direct_.is_open()) return;
#ifdef STATX_DIOALIGN
  struct statx s = {};
  if (::statx(direct_.get(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &s) == 0 &&
      (s.stx_mask & STATX_DIOALIGN)) {
    if (s.stx_dio_offset_align == 0 || s.stx_dio_offset_align > kPageBytes) return;
    memory_alignment_ = std::max<uint32_t>(1, s.stx_dio_mem_align);
    offset_alignment_ = s.stx_dio_offset_align;
  }
#endif
  direct_fd_.store(direct_.get(), std::memory_order_relaxed);
}

DataFile::State DataFile::now() const {
  struct stat s;
  if (::fstat(file_.get(), &s) != 0) fail_errno("cannot read", path_, errno);
  return {uint64_t(s.st_dev), uint64_t(s.st_ino), uint64_t(s.st_size), int64_t(s.st_mtim.tv_sec),
          int64_t(s.st_mtim.tv_nsec)};
}

uint64_t DataFile::size_bytes() const { return now().size_bytes; }

void DataFile::require_unchanged() const {
  const State s = now();
  if (s == opened_) return;
  if (s.size_bytes != opened_.size_bytes)
    fail<IoError>("'{}' has changed since it was opened: it had {} bytes and has {}; load it again",
                  path_, opened_.size_bytes, s.size_bytes);
  fail<IoError>("'{}' was written to since it was opened; load it again", path_);
}

void DataFile::require_range(uint64_t offset, uint64_t size_bytes) const {
  const uint64_t has = this->size_bytes();
  if (offset > has || size_bytes > has - offset)
    fail<IoError>("cannot read '{}': {} bytes at byte {} are asked for, it has {}", path_,
                  size_bytes, offset, has);
}

void DataFile::require_mapped(uint64_t end) const {
  const uint64_t damaged = damaged_at_.load(), has = size_bytes();
  if (has < end)
    fail<IoError>(
        "cannot read '{}', which is mapped: it ends at byte {}, {} bytes early; it has become "
        "shorter: load it again",
        path_, has, end - has);
  if (damaged != UINT64_MAX)
    fail<IoError>(
        "cannot read '{}', which is mapped, at byte {}: the disk has failed, or the file was "
        "shorter for a while: load it again",
        path_, damaged);
}

void DataFile::require_writable() const {
  if (!writable_)
    fail<IoError>("cannot write '{}': it was opened for reading, its permissions allow no more",
                  path_);
}

bool DataFile::is_at_path() const {
  struct stat s;
  return ::stat(path_.c_str(), &s) == 0 && uint64_t(s.st_dev) == opened_.device &&
         uint64_t(s.st_ino) == opened_.inode;
}

void DataFile::extend(uint64_t size_bytes) const {
  require_writable();
  if (this->size_bytes() >= size_bytes) return;
  int result;
  while ((result = ::ftruncate(file_.get(), off_t(size_bytes))) != 0 && errno == EINTR) {}
  if (result != 0)
    fail<IoError>("cannot make '{}' {} bytes long: {}", path_, size_bytes, std::strerror(errno));
}

void DataFile::read_at(uint64_t offset, std::span<uint8_t> into) const {
  const Transfer t{this, offset, reinterpret_cast<std::byte*>(into.data()), into.size(), false};
  transfers().run({&t, 1});
}

void DataFile::write_at(uint64_t offset, std::span<const uint8_t> from) const {
  auto* memory = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(from.data()));
  const Transfer t{this, offset, memory, from.size(), true};
  transfers().run({&t, 1});
}

void DataFile::map_all() const {
  const uint64_t size = this->size_bytes();
  if (size <= map_bytes_) return;
  if (map_) ::munmap(map_, map_bytes_);
  void* p = ::mmap(nullptr, size, PROT_NONE, MAP_SHARED, file_.get(), 0);
  map_ = p == MAP_FAILED ? nullptr : p;
  map_bytes_ = map_ ? size : 0;
}

bool DataFile::is_cached(uint64_t offset, uint64_t size_bytes) const {
  std::vector<unsigned char> pages;
  {
    std::lock_guard lock(map_mutex_);
    if (offset + size_bytes > map_bytes_) map_all();
    const uint64_t begin = offset / kPageBytes * kPageBytes;
    const uint64_t end = std::min(offset + size_bytes, map_bytes_);
    if (end <= begin) return false;
    pages.resize((end - begin + kPageBytes - 1) / kPageBytes);
    if (::mincore(static_cast<std::byte*>(map_) + begin, end - begin, pages.data()) != 0)
      return false;
  }
  const auto there = std::ranges::count_if(pages, [](unsigned char p) { return p & 1; });
  return size_t(there) * 2 > pages.size();
}

}  // namespace tuff::os

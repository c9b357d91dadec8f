#include "base/os_target.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>

#include "base/check.h"
#include "base/os.h"
#include "base/parse_number.h"

namespace tuff::os {
namespace {

constexpr int kMostLinks = 40;  // the kernel's own limit: path_resolution(7)
constexpr uint64_t kReaderWaitNs = 2'000'000'000;
constexpr const char* kAccessList = "system.posix_acl_access";  // acl(5)

[[noreturn]] void refuse(const std::string& path, const char* why) {
  fail<IoError>("cannot write '{}': {}", path, why);
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : "";
}

// Where a link leads, one step; nullopt for what is no link.
std::optional<std::string> next_of(const std::string& path) {
  std::array<char, PATH_MAX> text;
  const ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
  if (n < 0 || size_t(n) == text.size()) return std::nullopt;
  const std::filesystem::path link(std::string_view(text.data(), size_t(n)));
  return (std::filesystem::path(path).parent_path() / link).string();
}

// N where the path is /proc/self/fd/N or leads there, as /dev/stdout and /dev/fd/N do. Opening it
// would begin anew in a file that this process is in the middle of.
int own_descriptor(std::string path) {
  const std::string own = real_path("/proc/self/fd");
  for (int links = 0; links < kMostLinks && !own.empty(); ++links) {
    const std::filesystem::path at(path);
    const std::string name = at.filename().string();
    const std::optional<int> number = parse_number<int>(name);
    if (number && real_path(at.parent_path().string()) == own) return *number;
    const std::optional<std::string> next = next_of(path);
    if (!next) return -1;
    path = *next;
  }
  return -1;
}

// The kernel has followed the links and found nothing at their end.
std::string end_of_links(std::string path) {
  for (int links = 0; links < kMostLinks; ++links) {
    const std::optional<std::string> next = next_of(path);
    if (!next) break;
    path = *next;
  }
  return path;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// In a sticky folder only a file's owner and the folder's may replace it (rename(2)).
bool is_protected(const std::string& path, const struct stat& file) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct stat of_folder;
  if (::stat(folder.empty() ? "." : folder.c_str(), &of_folder) != 0) return false;
  const uid_t user = ::geteuid();
  return (of_folder.st_mode & S_ISVTX) && user != 0 && user != file.st_uid &&
         user != of_folder.st_uid;
}

WriteTarget regular(const std::string& path, const struct stat& status) {
  WriteTarget target{WriteTarget::Kind::File, path, status};
  struct stat link;
  if (::lstat(path.c_str(), &link) != 0) fail_target(path, errno);
  if (S_ISLNK(link.st_mode)) {
    target.path = real_path(path);
    if (target.path.empty() || ::lstat(target.path.c_str(), &link) != 0 ||
        !same_file(link, status))
      refuse(path, "what its link leads to has no name any more; write elsewhere");
  }
  if (::faccessat(AT_FDCWD, target.path.c_str(), W_OK, AT_EACCESS) != 0) fail_target(path, errno);
  if (is_protected(target.path, status)) fail_target(path, EPERM);
  return target;
}

}  // namespace

const char* write_remedy(int error) {
  switch (error) {
    case ENOSPC: return "; free space on its file system, or write elsewhere";
    case EDQUOT: return "; your quota there is used up: free space, or write elsewhere";
    case EFBIG: return "; its file system, or ulimit -f, allows no longer file";
    case ENOENT: return "; its folder is not there: make it, or write elsewhere";
    case EROFS: return "; its file system is read-only: write elsewhere";
    case EACCES:
    case EPERM: return "; you may not write there: write elsewhere, or change permissions";
    case ELOOP: return "; its links lead to each other: name a file";
    case EISDIR: return "; name a file in it";
    case EBUSY: return "; a file system is mounted on it, so that nothing can take its place";
    case EPIPE: return "; whoever read from it has ended";
    default: return "";
  }
}

void fail_target(const std::string& path, int error) {
  fail<IoError>("cannot write '{}': {}{}", path, std::strerror(error), write_remedy(error));
}

WriteTarget write_target(const std::string& path) {
  if (const int own = own_descriptor(path); own >= 0)
    return {.kind = WriteTarget::Kind::Descriptor, .path = path, .descriptor = own};
  struct stat status;
  // The kernel decides which links are followed: not every one of another user's (proc_sys_fs(5),
  // protected_symlinks).
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT || path.empty()) fail_target(path, errno);
    return {WriteTarget::Kind::NewFile, end_of_links(path)};
  }
  switch (status.st_mode & S_IFMT) {
    case S_IFREG: return regular(path, status);
    case S_IFIFO:
    case S_IFCHR: return {WriteTarget::Kind::Stream, path, status};
    case S_IFDIR: fail_target(path, EISDIR);
    case S_IFBLK: refuse(path, "it is a disk, and what is on it would be lost; name a file");
    default: refuse(path, "it is a socket; name a file");
  }
}

int open_stream(const WriteTarget& target, const std::string& path) {
  if (target.kind == WriteTarget::Kind::Descriptor) {
    const int fd = ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) fail_target(path, errno);
    if ((::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) return fd;
    ::close(fd);
    refuse(path, "it is open for reading");
  }
  // Without O_NONBLOCK a pipe without a reader would stop this process for good.
  const uint64_t deadline = monotonic_ns() + kReaderWaitNs;
  int fd = -1;
  while ((fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    if (errno != ENXIO || !S_ISFIFO(target.status.st_mode)) fail_target(path, errno);
    if (monotonic_ns() > deadline || interrupted())
      refuse(path, "it is a pipe, and nobody reads from it; start its reader first");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  struct stat opened;
  if (::fstat(fd, &opened) != 0 || !same_file(opened, target.status)) {
    ::close(fd);
    refuse(path, "it has just become something else; write it again");
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

void keep_permissions(const WriteTarget& from, int to_file) {
  const struct stat& s = from.status;
  mode_t mode = s.st_mode & 0777;
  // Access of a group is for that group alone.
  if (::fchown(to_file, s.st_uid, s.st_gid) != 0 && ::fchown(to_file, uid_t(-1), s.st_gid) != 0)
    mode &= ~mode_t(070) | (mode & 07) << 3;
  std::array<char, 4096> list;
  const ssize_t size = ::getxattr(from.path.c_str(), kAccessList, list.data(), list.size());
  if (size > 0) {
    // Its mask shows as the group's mode; without the list the group would have what it allows.
    if (::fsetxattr(to_file, kAccessList, list.data(), size_t(size), 0) == 0) return;
    mode &= ~mode_t(070);
  }
  ::fchmod(to_file, mode);
}

}  // namespace tuff::os

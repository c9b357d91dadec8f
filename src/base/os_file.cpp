// os.h: files and folders.
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "base/os_stream.h"

namespace tuff::os {
namespace {

// What has no size may have no end: /dev/zero, a pipe.
constexpr size_t kLongestStream = size_t{1} << 30;

template <class Bytes>
Bytes read_whole(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) fail_errno("cannot open", path, errno);
  struct stat status{};
  const bool has_size = ::fstat(file.get(), &status) == 0 && status.st_size > 0;
  Bytes bytes;
  // The one more shows the end without a second resize.
  bytes.resize(has_size ? size_t(status.st_size) + 1 : 1);
  size_t used = 0;
  for (;;) {
    const ssize_t n = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot read", path, errno);
    used += size_t(n);
    if (used > kLongestStream && !has_size)
      fail<IoError>("cannot read '{}': it is no regular file, and has more than {} bytes", path,
                    kLongestStream);
    if (used == bytes.size()) bytes.resize(used * 2);
  }
  bytes.resize(used);
  return bytes;
}

std::string home_directory() {
  if (std::string home = system_env("HOME"); !home.empty()) return home;
  const passwd* entry = ::getpwuid(::getuid());
  return entry && entry->pw_dir ? entry->pw_dir : "/";
}

}  // namespace

std::vector<uint8_t> read_file(const std::string& path) {
  return read_whole<std::vector<uint8_t>>(path);
}
std::string read_text(const std::string& path) { return read_whole<std::string>(path); }

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}
bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(path, error);
  while (!error && it != std::filesystem::directory_iterator()) {
    names.push_back(it->path().filename().string());
    it.increment(error);
  }
  if (error) fail<IoError>("cannot list '{}': {}", path, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail<IoError>("cannot make the folder '{}': {}", path, error.message());
}

std::optional<FileLock> FileLock::acquire(const std::string& path, uint64_t timeout_ns) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open()) fail_errno("cannot open", path, errno);
  const uint64_t deadline = monotonic_ns() + timeout_ns;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail_errno("cannot lock", path, errno);
    if (monotonic_ns() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return FileLock(std::move(file));
}

std::string cache_directory() {
  if (std::string chosen = env_text(Env::TUFF_CACHE_DIR); !chosen.empty()) return chosen;
  // A relative XDG_CACHE_HOME is to be ignored: XDG Base Directory Specification 0.8.
  if (std::string base = system_env("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/tuff";
  return home_directory() + "/.cache/tuff";
}

std::optional<std::string> find_program(const std::string& name) {
  const auto runnable = [](const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0 && !is_directory(path);
  };
  if (name.find('/') != std::string::npos)
    return runnable(name) ? std::optional(name) : std::nullopt;
  const std::string path = system_env("PATH");
  for (size_t start = 0; start <= path.size() && !name.empty();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const std::string folder = end == start ? "." : path.substr(start, end - start);
    if (std::string candidate = folder + "/" + name; runnable(candidate)) return candidate;
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace tuff::os

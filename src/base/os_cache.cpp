#include "base/os_cache.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

namespace tuff::os {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows: path_resolution(7)
constexpr size_t kEntryBytes = 16384;
constexpr int64_t kDay = 24 * 60 * 60;

std::string name_of(uid_t user) {
  passwd entry{}, *found = nullptr;
  std::vector<char> text(kEntryBytes);
  if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || !found)
    return fmt::format("user {}", user);
  return found->pw_name;
}

// Whether user IDs of the machine are missing in this process's namespace: the owner of what stands
// outside of it, as root's folders do, is shown as the overflow ID then (user_namespaces(7)).
bool in_partial_namespace() {
  static const bool partial = [] {
    try {
      unsigned first = 0, outside = 0, count = 0;
      const std::string map = read_text("/proc/self/uid_map");
      return std::sscanf(map.c_str(), "%u %u %u", &first, &outside, &count) == 3 && count != ~0u;
    } catch (const IoError&) {
      return false;
    }
  }();
  return partial;
}

uid_t overflow_user() {
  static const uid_t user = [] {
    try {
      return uid_t(std::atoi(read_text("/proc/sys/kernel/overflowuid").c_str()));
    } catch (const IoError&) {
      return uid_t(65534);
    }
  }();
  return user;
}

bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

// Debian's users have a group of their own name without other members.
bool is_private_group(gid_t id) {
  group entry{}, *found = nullptr;
  std::vector<char> text(kEntryBytes);
  if (::getgrgid_r(id, &entry, text.data(), text.size(), &found) != 0 || !found) return false;
  const std::string user = name_of(::geteuid());
  if (user != found->gr_name) return false;
  for (char** member = found->gr_mem; *member; ++member)
    if (user != *member) return false;
  return true;
}

std::string whose(const std::string& path, const struct stat& status) {
  return fmt::format("'{}' (owner {}, mode {:04o})", path, name_of(status.st_uid),
                     status.st_mode & 07777);
}

std::string why_untrusted_owner(const std::string& path, const struct stat& status) {
  if (is_trusted(status.st_uid)) return {};
  return fmt::format(
      "{} belongs to another user than you ({}): set TUFF_CACHE_DIR to a folder of your own",
      whose(path, status), name_of(::geteuid()));
}

// A folder on the way to what is asked for.
std::string why_untrusted_way(const std::string& path, const struct stat& status) {
  if (!(in_partial_namespace() && status.st_uid == overflow_user()))
    if (std::string why = why_untrusted_owner(path, status); !why.empty()) return why;
  if (status.st_mode & S_ISVTX) return {};
  if ((status.st_mode & S_IWOTH) ||
      ((status.st_mode & S_IWGRP) && !is_private_group(status.st_gid)))
    return fmt::format(
        "others may rename what is in {}: chmod go-w it, or set TUFF_CACHE_DIR to a folder of "
        "your own",
        whose(path, status));
  return {};
}

std::string why_untrusted_end(const std::string& path, const struct stat& status) {
  if (std::string why = why_untrusted_owner(path, status); !why.empty()) return why;
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return fmt::format(
        "others may write {}, and what is in it would be run: remove it, or chmod -R go-w it if "
        "you trust what is there",
        whose(path, status));
  return {};
}

std::deque<std::string> parts_of(const std::string& path) {
  std::deque<std::string> out;
  for (const auto& part : std::filesystem::path(path))
    if (!part.empty() && part != "/" && part != ".") out.push_back(part.string());
  return out;
}

class Walk {
 public:
  Walk(const std::string& path, bool make) : parts_(parts_of(path)), make_(make) {}

  TrustedPath result() {
    struct stat status{};
    if (::lstat("/", &status) == 0) out_.refusal = why_untrusted_way("/", status);
    out_.exists = true;
    while (!parts_.empty() && out_.refusal.empty() && out_.exists) step();
    for (const std::string& part : parts_) out_.path += "/" + part;  // what is not there
    if (out_.path.empty()) out_.path = "/";
    return std::move(out_);
  }

 private:
  void step() {
    const std::string part = parts_.front();
    parts_.pop_front();
    if (part == "..") {
      out_.path.resize(out_.path.empty() ? 0 : out_.path.rfind('/'));
      return;
    }
    const std::string at = out_.path + "/" + part;
    struct stat status{};
    if (::lstat(at.c_str(), &status) != 0 && !made(at, status)) {
      parts_.push_front(part);
      return;
    }
    if (S_ISLNK(status.st_mode)) {
      follow(at, status);
    } else {
      out_.path = at;
      out_.refusal = parts_.empty() ? why_untrusted_end(at, status) : why_untrusted_way(at, status);
    }
  }

  // Whether `at`, which could not be seen, is there now.
  bool made(const std::string& at, struct stat& status) {
    if (errno == ENOENT && !make_) {
      out_.exists = false;
      return false;
    }
    // Two processes may make it at once.
    if (errno == ENOENT && (::mkdir(at.c_str(), 0700) == 0 || errno == EEXIST) &&
        ::lstat(at.c_str(), &status) == 0)
      return true;
    out_.refusal = fmt::format("cannot {} '{}': {}", make_ ? "make the folder" : "look at", at,
                               std::strerror(errno));
    return false;
  }

  void follow(const std::string& at, const struct stat& status) {
    out_.refusal = why_untrusted_owner(at, status);
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(at, error).string();
    if (error || ++links_ > kMostLinks) {
      out_.refusal = fmt::format("cannot follow the symbolic link '{}'", at);
      return;
    }
    if (target.starts_with('/')) out_.path.clear();
    const std::deque<std::string> more = parts_of(target);
    parts_.insert(parts_.begin(), more.begin(), more.end());
  }

  TrustedPath out_;
  std::deque<std::string> parts_;
  bool make_;
  int links_ = 0;
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

TrustedPath trusted_path(const std::string& path, bool make_folders) {
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error).string();
  if (error) return {.path = path, .refusal = fmt::format("'{}': {}", path, error.message())};
  return Walk(whole, make_folders).result();
}

void warn_no_cache(const std::string& folder, const std::string& why) {
  static std::mutex mutex;
  static std::set<std::string> said;
  std::lock_guard lock(mutex);
  if (said.insert(folder).second) log_warn("no disk cache: {}", why);
}

std::string cache_path(const std::string& name) {
  if (!env_flag(Env::TUFF_CACHE)) return {};
  const std::string path = cache_directory() + "/" + name;
  const TrustedPath folder = trusted_path(folder_of(path));
  if (folder.refusal.empty()) return folder.path + path.substr(path.rfind('/'));
  warn_no_cache(cache_directory(), folder.refusal);
  return {};
}

uint64_t cache_limit_bytes() {
  const int64_t mib = env_int(Env::TUFF_CACHE_MIB);
  return mib == 0 ? ~uint64_t{0} : uint64_t(mib) << 20;
}

std::vector<CacheFile> cache_files(const std::string& folder, const std::string& ending) {
  std::vector<CacheFile> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    struct stat status{};
    if (path.ends_with(ending) && ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      out.push_back({path, uint64_t(status.st_size), int64_t(status.st_mtim.tv_sec)});
  }
  std::ranges::sort(out, [](const CacheFile& a, const CacheFile& b) {
    return a.used != b.used ? a.used < b.used : a.path < b.path;
  });
  return out;
}

size_t trim_cache_files(const std::vector<CacheFile>& files, uint64_t limit_bytes) {
  uint64_t total = 0;
  size_t removed = 0;
  for (const CacheFile& f : files) total += f.size;
  for (const CacheFile& f : files) {
    if (total <= limit_bytes) break;
    if (::unlink(f.path.c_str()) == 0) removed++;
    total -= f.size;
  }
  return removed;
}

void make_private_directories(const std::string& path) {
  const TrustedPath made = trusted_path(path, /*make_folders=*/true);
  if (!made.refusal.empty()) fail<IoError>("{}", made.refusal);
}

std::optional<std::vector<uint8_t>> read_private_file(const std::string& path) {
  const TrustedPath file = trusted_path(path);
  if (!file.refusal.empty()) {
    log_warn("a cached file is not used: {}", file.refusal);
    return {};
  }
  if (!file.exists) return {};
  struct stat status{};
  if (::stat(file.path.c_str(), &status) == 0 && ::time(nullptr) - status.st_mtim.tv_sec > kDay)
    ::utimensat(AT_FDCWD, file.path.c_str(), nullptr, 0);  // it was used; so cache_files() knows
  return read_file(file.path);
}

void make_private_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno != EEXIST)
    fail<IoError>("cannot make '{}': {}", path, std::strerror(errno));
  if (fd >= 0) ::close(fd);
}

void write_private_file(const std::string& path, std::span<const uint8_t> bytes) {
  make_private_directories(folder_of(path));
  const TrustedPath before = trusted_path(path);
  if (!before.refusal.empty()) ::unlink(path.c_str());  // the folder is this user's
  // What is there already hands its mode on.
  make_private_file(before.refusal.empty() ? before.path : path);
  write_file(path, bytes);
}

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  path_ = (folder / "tuff-XXXXXX").string();
  if (error || !::mkdtemp(path_.data()))
    fail<IoError>("no folder can be made in '{}': {}; set TMPDIR to a folder that can be written",
                  folder.string(), error ? error.message() : std::strerror(errno));
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tuff::os

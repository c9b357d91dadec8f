#include "base/os_memory_room.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/os.h"

namespace tuff::os {
namespace {

constexpr uint64_t kUnlimited = uint64_t{1} << 60;  // version 1 says so by a number above it
constexpr size_t kSeldomBytes = size_t{32} << 20;   // requests up to it are judged in sum

// Left free, for what is not counted here: stacks, the heap's growth, the kernel's tables.
uint64_t reserve_of(uint64_t limit_bytes) {
  return std::min<uint64_t>(uint64_t{64} << 20, limit_bytes / 8);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<uint64_t> number_in(const std::string& path) {
  const std::string text = text_of(path);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;  // not for "max"
}

// The number behind `name` on one of the lines "name 123", "name: 123 kB".
uint64_t field_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name) || line.size() <= name.size()) continue;
    uint64_t value = 0;
    std::string unit;
    std::istringstream(line.substr(name.size())) >> value >> unit;
    return unit == "kB" ? value * 1024 : value;
  }
  return 0;
}

uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// Where the groups of this process are: a folder per level, the innermost first.
struct Hierarchy {
  bool unified = false;  // version 2
  std::vector<std::string> folders;
};

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// cgroups(7): /proc/self/cgroup has lines "0::/path" (version 2) and "4:memory:/path".
std::optional<std::string> group_path(const std::string& root, bool unified) {
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    if (unified ? line.starts_with("0::") : has_word(names, "memory"))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

// proc_pid_mountinfo(5): ID PARENT DEVICE ROOT MOUNT-POINT OPTIONS FIELDS... - TYPE SOURCE OPTIONS
Hierarchy hierarchy(const std::string& root, bool unified) {
  Hierarchy out{.unified = unified};
  const std::optional<std::string> path = group_path(root, unified);
  if (!path) return out;
  std::istringstream lines(text_of(root + "/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::string id, parent, device, from, point, type, source, options;
    std::istringstream(line) >> id >> parent >> device >> from >> point;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    if (type != (unified ? "cgroup2" : "cgroup") || (!unified && !has_word(options, "memory")))
      continue;
    // A container may see a part of the tree alone.
    std::string below = *path;
    if (from != "/") below = below.starts_with(from) ? below.substr(from.size()) : "";
    while (!below.empty() && below != "/") {
      out.folders.push_back(root + point + below);
      below.resize(below.rfind('/'));
    }
    out.folders.push_back(root + point);
    return out;
  }
  return out;
}

std::optional<MemoryRoom> room_of_group(const std::string& folder, bool unified, uint64_t swap) {
  const char* limit_file = unified ? "memory.max" : "memory.limit_in_bytes";
  const auto limit = number_in(folder + "/" + limit_file);
  if (!limit || *limit >= kUnlimited) return std::nullopt;
  const auto used = number_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!used) return std::nullopt;
  const std::string stat = text_of(folder + "/memory.stat");
  const char* prefix = unified ? "" : "total_";
  // Pages of files go before a process is killed.
  uint64_t cached = field_of(stat, std::string(prefix) + "inactive_file ") +
                    field_of(stat, std::string(prefix) + "active_file ");
  if (unified) {
    if (const auto most = number_in(folder + "/memory.swap.max"))
      swap = std::min(swap, less(*most, number_in(folder + "/memory.swap.current").value_or(0)));
  } else if (const auto most = number_in(folder + "/memory.memsw.limit_in_bytes")) {
    const uint64_t both = number_in(folder + "/memory.memsw.usage_in_bytes").value_or(0);
    swap = std::min(swap, less(less(*most, both), less(*limit, *used)));
  }
  return MemoryRoom{less(*limit, less(*used, std::min(cached, *used))) + swap, *limit,
                    fmt::format("{} of {}", limit_file, folder)};
}

MemoryRoom room_of_machine(const std::string& meminfo, uint64_t swap) {
  const uint64_t available = field_of(meminfo, "MemAvailable:");
  const uint64_t total = field_of(meminfo, "MemTotal:");
  if (total == 0) return {UINT64_MAX, UINT64_MAX, "this machine"};
  return {available + swap, total, "this machine's memory"};
}

std::optional<MemoryRoom> room_of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  uint64_t pages = 0;
  std::istringstream(text_of("/proc/self/statm")) >> pages;
  return MemoryRoom{less(limit.rlim_cur, pages * page_size()), limit.rlim_cur, "ulimit -v"};
}

// What was promised and not touched yet counts as taken, although the kernel has not counted it
// yet.
class Promises {
 public:
  void add(void* p, size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    blocks_.emplace(p, size_bytes);
    total_ += size_bytes;
  }
  void remove(void* p, size_t size_bytes) noexcept {
    const std::lock_guard lock(mutex_);
    if (blocks_.erase(p) != 0) total_ -= size_bytes;
  }

  void require(size_t size_bytes, const char* who) {
    const std::lock_guard lock(mutex_);
    since_ += std::min(size_bytes, SIZE_MAX - since_);
    if (since_ < kSeldomBytes) return;
    since_ = 0;
    const MemoryRoom room = memory_room();
    const uint64_t usable = less(room.free_bytes, reserve_of(room.limit_bytes));
    if (usable >= total_ && size_bytes <= usable - total_) return;
    const uint64_t left = less(usable, untouched());
    if (size_bytes <= left) return;
    since_ = kSeldomBytes;  // the next request is judged as well
    fail<OutOfMemory>(
        "{}: no {} bytes of host memory: {} are free, and the limit is {} ({}); use a smaller "
        "batch, or raise the limit",
        who, size_bytes, left, room.limit_bytes, room.limit);
  }

 private:
  uint64_t untouched() const {
    uint64_t pages = 0;
    std::vector<unsigned char> there;
    for (const auto& [p, size_bytes] : blocks_) {
      there.resize((size_bytes + page_size() - 1) / page_size());
      if (::mincore(p, size_bytes, there.data()) != 0) continue;
      pages += uint64_t(std::ranges::count_if(there, [](unsigned char t) { return !(t & 1); }));
    }
    return pages * page_size();
  }

  std::mutex mutex_;
  std::map<void*, size_t> blocks_;
  uint64_t total_ = 0;
  size_t since_ = 0;  // bytes that were asked for since the limits were read
};

Promises& promises() {
  static Promises& all = *new Promises;  // devices give memory back when the process ends
  return all;
}

}  // namespace

MemoryRoom memory_room(const std::string& root) {
  const std::string meminfo = text_of(root + "/proc/meminfo");
  const uint64_t swap = field_of(meminfo, "SwapFree:");
  MemoryRoom room = room_of_machine(meminfo, swap);
  const auto narrow = [&](const std::optional<MemoryRoom>& other) {
    if (other && other->free_bytes < room.free_bytes) room = *other;
  };
  for (const bool unified : {true, false})
    for (const std::string& folder : hierarchy(root, unified).folders)
      narrow(room_of_group(folder, unified, swap));
  if (root.empty()) narrow(room_of_process());
  return room;
}

void require_memory_room(size_t size_bytes, const char* who) {
  promises().require(size_bytes, who);
}

void* map_pages_within_limits(size_t size_bytes, const char* who) {
  require_memory_room(size_bytes, who);
  void* p = map_pages(size_bytes);
  if (p) promises().add(p, size_bytes);
  return p;
}

void unmap_pages_within_limits(void* p, size_t size_bytes) noexcept {
  if (p) promises().remove(p, size_bytes);
  unmap_pages(p, size_bytes);
}

}  // namespace tuff::os

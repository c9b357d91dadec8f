// Limits of memory: trees of control groups as both versions show them, in a folder of the test's
// own, and a real group where the system lets us make one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tuff/error.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/os.h"
#include "base/os_memory_room.h"
#include "base/temporary_folder.h"

namespace tuff::os {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A machine of 8000 MiB, of which 4000 are available.
class FakeMachine {
 public:
  FakeMachine() {
    write("/proc/meminfo",
          "MemTotal:        8192000 kB\nMemFree: 1 kB\nMemAvailable:    4096000 kB\n"
          "SwapFree:              0 kB\n");
  }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path at(folder_.path() + path);
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  void group(const std::string& folder, const std::string& limit_file, const std::string& limit,
             const std::string& used_file, uint64_t used_mib, const std::string& stat) const {
    write(folder + "/" + limit_file, limit + "\n");
    write(folder + "/" + used_file, std::to_string(used_mib * kMiB) + "\n");
    write(folder + "/memory.stat", stat);
  }
  void unified(const std::string& folder, const std::string& limit, uint64_t used_mib,
               const std::string& stat = "anon 1\n") const {
    group("/sys/fs/cgroup" + folder, "memory.max", limit, "memory.current", used_mib, stat);
  }
  MemoryRoom room() const { return memory_room(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

constexpr const char* kUnifiedMount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(MemoryRoom, WithoutGroupsTheMachineDecides) {
  const FakeMachine machine;
  const MemoryRoom room = machine.room();
  EXPECT_EQ(room.free_bytes, 4000 * kMiB);
  EXPECT_EQ(room.limit_bytes, 8000 * kMiB);
  EXPECT_EQ(room.limit, "this machine's memory");
}

TEST(MemoryRoom, TheNarrowestOfAllAncestorsCounts) {
  const FakeMachine machine;
  machine.write("/proc/self/cgroup", "0::/a.slice/b.service\n");
  machine.write("/proc/self/mountinfo", kUnifiedMount);
  machine.unified("/a.slice/b.service", "max", 50);
  machine.unified("/a.slice", std::to_string(512 * kMiB), 100);
  MemoryRoom room = machine.room();
  EXPECT_EQ(room.free_bytes, 412 * kMiB);
  EXPECT_EQ(room.limit_bytes, 512 * kMiB);
  EXPECT_THAT(room.limit, AllOf(HasSubstr("memory.max of"), HasSubstr("/a.slice")));
  machine.unified("/a.slice/b.service", std::to_string(256 * kMiB), 50);
  EXPECT_EQ(machine.room().free_bytes, 206 * kMiB);
  machine.unified("/a.slice/b.service", std::to_string(256 * kMiB), 300);  // over it, for a moment
  EXPECT_EQ(machine.room().free_bytes, 0u);
}

TEST(MemoryRoom, PagesOfFilesAreFree) {
  const FakeMachine machine;
  machine.write("/proc/self/cgroup", "0::/\n");
  machine.write("/proc/self/mountinfo", kUnifiedMount);
  machine.unified("", std::to_string(512 * kMiB), 500,
                  "anon 1048576\nfile 9\ninactive_file 104857600\nactive_file 52428800\n");
  EXPECT_EQ(machine.room().free_bytes, 162 * kMiB);
}

TEST(MemoryRoom, SwapCountsAsFarAsTheGroupMayHaveIt) {
  const FakeMachine machine;
  machine.write("/proc/meminfo",
                "MemTotal: 8192000 kB\nMemAvailable: 4096000 kB\nSwapFree: 1024000 kB\n");
  EXPECT_EQ(machine.room().free_bytes, 5000 * kMiB);
  machine.write("/proc/self/cgroup", "0::/\n");
  machine.write("/proc/self/mountinfo", kUnifiedMount);
  machine.unified("", std::to_string(512 * kMiB), 500);
  EXPECT_EQ(machine.room().free_bytes, 1012 * kMiB);
  machine.write("/sys/fs/cgroup/memory.swap.max", "0\n");
  EXPECT_EQ(machine.room().free_bytes, 12 * kMiB);
}

// As in a container: the mount shows a part of the tree that /proc/self/cgroup names from its root.
TEST(MemoryRoom, VersionOneInAContainer) {
  const FakeMachine machine;
  machine.write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/c0\n4:memory:/docker/c0\n0::/\n");
  machine.write("/proc/self/mountinfo",
                "34 31 0:31 /docker/c0 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                "35 31 0:32 /docker/c0 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  machine.group("/sys/fs/cgroup/memory", "memory.limit_in_bytes", std::to_string(300 * kMiB),
                "memory.usage_in_bytes", 100,
                "cache 1\ninactive_file 7\ntotal_inactive_file 10485760\ntotal_active_file 0\n");
  MemoryRoom room = machine.room();
  EXPECT_EQ(room.free_bytes, 210 * kMiB);
  EXPECT_THAT(room.limit, HasSubstr("memory.limit_in_bytes of"));
  machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(machine.room().limit, "this machine's memory");
}

TEST(MemoryRoom, WhatCannotBeReadLimitsNothing) {
  const FakeMachine machine;
  machine.write("/proc/meminfo", "");
  machine.write("/proc/self/cgroup", "nonsense\n0::/gone\n::\n");
  machine.write("/proc/self/mountinfo", std::string("x - \n") + kUnifiedMount);
  machine.write("/sys/fs/cgroup/memory.max", "many\n");
  EXPECT_EQ(machine.room().free_bytes, UINT64_MAX);
}

// What `call` says in a child that `prepare` has put under a limit; the signal that ended it, else.
std::string limited(const std::function<bool()>& prepare,
                    const std::function<std::string()>& call) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text = "no limit";
    try {
      if (prepare()) text = call();
    } catch (const std::exception& e) {
      text = e.what();
    }
    ::_exit(::write(ends[1], text.data(), text.size()) == ssize_t(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  text.resize(size_t(std::max<ssize_t>(0, ::read(ends[0], text.data(), text.size()))));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : text;
}

// Touches every page of ever more memory, in pieces of 40 MiB, and what the refusal says.
std::string fill_up(size_t most_mib) {
  for (size_t mib = 0; mib < most_mib; mib += 40) {
    void* p = map_pages_within_limits(40 * kMiB, "TEST");
    if (!p) return "null";
    std::memset(p, 1, 40 * kMiB);
  }
  return "all of it";
}

// A group of the test's own, of 256 MiB; removed with the object.
class RealGroup {
 public:
  RealGroup() {
    for (const auto& [folder, limit] :
         {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
          std::pair("/sys/fs/cgroup", "memory.max")}) {
      const std::string path = fmt::format("{}/tuff-test-{}", folder, ::getpid());
      std::error_code error;
      if (!std::filesystem::exists(std::string(folder) + "/cgroup.procs") ||
          !std::filesystem::create_directory(path, error) || error)
        continue;
      path_ = path;
      std::ofstream file(path + "/" + limit);
      file << 256 * kMiB << std::flush;
      if (file) return;
      std::filesystem::remove(path, error);
      path_.clear();
    }
  }
  ~RealGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  RealGroup(const RealGroup&) = delete;
  bool made() const { return !path_.empty(); }
  bool join() const {
    std::ofstream file(path_ + "/cgroup.procs");
    file << ::getpid() << std::flush;
    return bool(file);
  }

 private:
  std::string path_;
};

TEST(MemoryRoom, ARealGroupIsAnErrorBeforeItIsTheEnd) {
  const RealGroup group;
  if (!group.made()) GTEST_SKIP() << "this system lets us make no control group with a limit";
  const auto join = [&] { return group.join(); };
  EXPECT_THAT(limited(join, [] { return fill_up(1000); }),
              AllOf(HasSubstr("TEST: no 41943040 bytes of host memory"),
                    HasSubstr("the limit is 268435456")));
  EXPECT_EQ(limited(join, [] { return fill_up(120); }), "all of it");
  // What was promised and not touched counts as well; what was given back does not.
  EXPECT_THAT(limited(join,
                      [] {
                        for (int i = 0; i < 8; i++) map_pages_within_limits(40 * kMiB, "TEST");
                        return std::string("all of it");
                      }),
              HasSubstr("no 41943040 bytes"));
  EXPECT_EQ(limited(join,
                    [] {
                      for (int i = 0; i < 20; i++) {
                        void* p = map_pages_within_limits(120 * kMiB, "TEST");
                        std::memset(p, 1, 120 * kMiB);
                        unmap_pages_within_limits(p, 120 * kMiB);
                      }
                      return std::string("all of it");
                    }),
            "all of it");
}

TEST(MemoryRoom, TheProcesssLimitOfAddressesIsOne) {
  const auto limit = [] {
    const rlimit most{uint64_t{1} << 30, uint64_t{1} << 30};
    return ::setrlimit(RLIMIT_AS, &most) == 0;
  };
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_THAT(limited(limit, [] { return fill_up(4000); }), HasSubstr("(ulimit -v)"));
#endif
}

}  // namespace
}  // namespace tuff::os

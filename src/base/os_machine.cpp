// os.h: time, the processor, terminals and futexes.
#include <linux/futex.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/check.h"
#include "base/os.h"

namespace tuff::os {
namespace {

constexpr uint64_t kNanosPerSecond = 1'000'000'000;

// Features of x86 and Arm that code generation depends on; the kernel's list holds many others,
// some of which change with its version.
bool is_isa_feature(std::string_view flag) {
  constexpr std::string_view kPrefixes[] = {"sse", "ssse",   "avx",   "amx", "fma",   "f16c",
                                            "bmi", "popcnt", "lzcnt", "abm", "asimd", "sve",
                                            "sme", "bf16",   "i8mm",  "fphp"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view p) { return flag.starts_with(p); });
}

std::string isa_features(const std::string& flags) {
  std::vector<std::string> kept;
  std::istringstream words(flags);
  for (std::string word; words >> word;)
    if (is_isa_feature(word)) kept.push_back(word);
  std::sort(kept.begin(), kept.end());
  return fmt::format("{}", fmt::join(kept, " "));
}

std::string read_cpu_identity() {
  std::string model, features;
  std::istringstream lines(exists("/proc/cpuinfo") ? read_text("/proc/cpuinfo") : std::string());
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (line.empty() && !features.empty()) break;  // the first processor is enough
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (key == "flags" || key == "Features")
      features = isa_features(value);
    else if (key == "model name")
      model = value;
    else if (model.empty() && key == "CPU part")
      model = "Arm part " + value;
  }
  return fmt::format("{} [{}]", model.empty() ? "unknown processor" : model, features);
}

}  // namespace

uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * kNanosPerSecond + uint64_t(now.tv_nsec);
}

uint32_t core_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return uint32_t(std::max(1, CPU_COUNT(&set)));
  return uint32_t(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): Documentation/arch/x86/xstate.rst. For the
// whole process, threads that there are already too; refused where a signal stack is too small.
bool allow_matrix_registers() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023;
  constexpr unsigned long kTileData = 18;
  static const bool allowed = [] {
    const std::string features = " " + cpu_identity() + " ";
    const auto has = [&](const char* name) { return features.find(name) != std::string::npos; };
    return has("amx_tile") && has("amx_bf16") &&
           ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return allowed;
#else
  return false;
#endif
}

void wake_without_preempting() noexcept {
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
}

std::string cpu_identity() {
  static const std::string identity = read_cpu_identity();
  return identity;
}

uint64_t physical_memory_bytes() {
  return uint64_t(::sysconf(_SC_PHYS_PAGES)) * uint64_t(::sysconf(_SC_PAGESIZE));
}

// sysfs, as Documentation/ABI/testing/sysfs-devices-system-cpu describes it: "32K".
uint64_t cache_bytes(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string dir = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    std::string type, size;
    int at = 0;
    std::ifstream(dir + "level") >> at;
    std::ifstream(dir + "type") >> type;
    std::ifstream(dir + "size") >> size;
    if (at != level || type == "Instruction" || size.empty()) continue;
    const uint64_t unit = size.back() == 'K' ? 1024 : size.back() == 'M' ? 1024 * 1024 : 1;
    return std::strtoull(size.c_str(), nullptr, 10) * unit;
  }
  return 0;
}

uint32_t thread_id() { return uint32_t(::gettid()); }
bool is_main_thread() { return ::gettid() == ::getpid(); }

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

int terminal_width(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void futex_wait(const std::atomic<uint32_t>* word, uint32_t expected, uint64_t timeout_ns) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  const timespec timeout{time_t(timeout_ns / kNanosPerSecond), long(timeout_ns % kNanosPerSecond)};
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

void futex_wake(const std::atomic<uint32_t>* word, int count) {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tuff::os

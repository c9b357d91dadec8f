#include <fcntl.h>
#include <gtest/gtest.h>
#include <tuff/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/os.h"

namespace tuff::os {
namespace {

TEST(Machine, FactsAreSane) {
  EXPECT_GE(core_count(), 1u);
  EXPECT_GT(physical_memory_bytes(), uint64_t{64} << 20);
  EXPECT_EQ(cpu_identity(), cpu_identity());
  EXPECT_FALSE(cpu_identity().empty());
  const uint64_t before = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(monotonic_ns() - before, 2'000'000u);
}

TEST(Machine, AFileIsNoTerminal) {
  const int fd = ::open("/dev/null", O_RDONLY);
  EXPECT_FALSE(is_terminal(fd));
  EXPECT_EQ(terminal_width(fd), 80);
  ::close(fd);
}

TEST(Memory, PagesAreZeroedAndTooManyAreNull) {
  constexpr size_t kBytes = 1 << 20;
  auto* p = static_cast<unsigned char*>(map_pages(kBytes));
  ASSERT_NE(p, nullptr);
  for (size_t i = 0; i < kBytes; i += 4096) EXPECT_EQ(p[i], 0);
  p[kBytes - 1] = 1;
  unmap_pages(p, kBytes);
  EXPECT_EQ(map_pages(size_t{1} << 60), nullptr);
}

// What the system notes of the mapping that holds p: "hg" stands for huge pages being wanted.
std::string mapping_flags(const void* p) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  for (bool inside = false; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin <= uintptr_t(p) && uintptr_t(p) < end;
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

TEST(Memory, LongMemoryAsksForHugePagesAndShortDoesNot) {
  constexpr size_t kHuge = size_t{2} << 20;
  for (const size_t bytes : {4 * kHuge, kHuge / 2}) {
    auto* p = static_cast<unsigned char*>(map_pages(bytes));
    ASSERT_NE(p, nullptr);
    const std::string flags = mapping_flags(p + bytes / 2);
    if (flags.empty() || !std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
      GTEST_SKIP() << "a system that does not say, or has none";
    EXPECT_EQ(flags.find(" hg ") != std::string::npos, bytes > kHuge) << flags;
    unmap_pages(p, bytes);
  }
  errno = 7;
  prefer_huge_pages(reinterpret_cast<void*>(4096), 2 * kHuge);  // nothing is mapped there
  EXPECT_EQ(errno, 7);
}

TEST(Memory, SealedCodeRuns) {
#if defined(__x86_64__)
  const unsigned char code[] = {0xB8, 42, 0, 0, 0, 0xC3};  // mov eax, 42; ret
#elif defined(__aarch64__)
  const uint32_t code[] = {0x52800540, 0xD65F03C0};  // mov w0, 42; ret
#else
  GTEST_SKIP() << "no machine code for this processor in the test";
  const unsigned char code[] = {0};
#endif
  ExecutableMemory memory(sizeof code);
  EXPECT_GE(memory.size_bytes(), sizeof code);
  std::memcpy(memory.data(), code, sizeof code);
  memory.seal();
  EXPECT_EQ(reinterpret_cast<int (*)()>(memory.data())(), 42);
  EXPECT_THROW(ExecutableMemory(SIZE_MAX), OutOfMemory);
}

TEST(Library, TheFirstNameThatLoads) {
  const std::string names[] = {"libno-such-thing.so.9", "libm.so.6"};
  const auto library = Library::open(names);
  ASSERT_TRUE(library);
  auto* cosine = reinterpret_cast<double (*)(double)>(library->symbol("cos"));
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(library->symbol("no_such_symbol"), nullptr);
  std::string why;
  EXPECT_FALSE(Library::open({names, 1}, &why));
  EXPECT_NE(why.find("libno-such-thing.so.9"), std::string::npos) << why;
  EXPECT_NE(process_symbol("memcpy"), nullptr);
}

TEST(Futex, WakesAndTimesOut) {
  std::atomic<uint32_t> word{0};
  const uint64_t start = monotonic_ns();
  futex_wait(&word, 1, 1'000'000'000);  // another value: returns at once
  EXPECT_LT(monotonic_ns() - start, 900'000'000u);
  futex_wait(&word, 0, 1'000'000);  // times out
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    word.store(1);
    futex_wake(&word, 1);
  });
  while (word.load() == 0) futex_wait(&word, 0, 5'000'000'000);
  waker.join();
  EXPECT_LT(monotonic_ns() - start, 4'000'000'000u);
}

}  // namespace
}  // namespace tuff::os

// FileMapping: the bytes of a file as memory, and what becomes of those that are gone by the time
// somebody touches them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "base/check.h"
#include "base/os.h"
#include "base/os_file_mapping.h"
#include "base/temporary_folder.h"

namespace tuff::os {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

class FileMappingTest : public testing::Test {
 protected:
  static constexpr size_t kPage = 4096;
  std::shared_ptr<const DataFile> file(const Bytes& bytes) {
    write_file(path, bytes);
    return std::make_shared<const DataFile>(path, DataFile::Mode::Read);
  }
  std::shared_ptr<const DataFile> file(size_t size) {
    Bytes bytes(size);
    for (uint8_t& b : bytes) b = uint8_t(random() % 255 + 1);
    return file(contents = bytes);
  }
  static Bytes bytes_of(const FileMapping& m, size_t size) {
    Bytes out(size);
    std::memcpy(out.data(), m.data(), size);
    return out;
  }
  Bytes part(size_t offset, size_t size) const {
    return {contents.begin() + ptrdiff_t(offset), contents.begin() + ptrdiff_t(offset + size)};
  }
  static std::string missing(const DataFile& f, uint64_t end) {
    try {
      f.require_mapped(end);
    } catch (const IoError& e) {
      return e.what();
    }
    return {};
  }

  TemporaryFolder folder;
  const std::string path = folder / "f";
  Bytes contents;
  std::mt19937_64 random{5};
};

TEST_F(FileMappingTest, IsWhatTheFileHasAtAnyOffset) {
  const auto f = file(5 * kPage + 123);
  for (const size_t offset : {size_t(0), size_t(1), kPage - 1, kPage, 3 * kPage + 77})
    for (const size_t size : {size_t(1), size_t(500), kPage + 1, contents.size() - offset}) {
      if (size > contents.size() - offset) continue;
      const auto m = FileMapping::make(f, offset, size);
      ASSERT_NE(m, nullptr);
      EXPECT_EQ(bytes_of(*m, size), part(offset, size)) << size << " at " << offset;
    }
  f->require_mapped(contents.size());
}

TEST_F(FileMappingTest, NothingIsNoMappingAndWhatIsNotThereAnError) {
  const auto f = file(100);
  EXPECT_EQ(FileMapping::make(f, 100, 0), nullptr);
  EXPECT_EQ(FileMapping::make(file(Bytes()), 0, 0), nullptr);
  EXPECT_THROW(FileMapping::make(f, 50, 51), IoError);
  EXPECT_THROW(FileMapping::make(f, UINT64_MAX, 1), IoError);
}

TEST_F(FileMappingTest, LastsWhenTheFileIsDeletedReplacedOrGrows) {
  auto f = file(3 * kPage);
  const Bytes before = contents;
  const auto m = FileMapping::make(f, 10, 2 * kPage);
  std::filesystem::resize_file(path, 9 * kPage);
  EXPECT_EQ(bytes_of(*m, 2 * kPage), part(10, 2 * kPage));
  std::filesystem::remove(path);
  write_file(path, Bytes(5, 1));
  f->require_mapped(3 * kPage);
  f.reset();
  EXPECT_EQ(bytes_of(*m, 2 * kPage), Bytes(before.begin() + 10, before.begin() + 10 + 2 * kPage));
}

TEST_F(FileMappingTest, WhatIsGoneReadsAsZerosAndIsTold) {
  const auto f = file(8 * kPage);
  const auto m = FileMapping::make(f, 100, 8 * kPage - 100), other = FileMapping::make(f, 0, kPage);
  std::filesystem::resize_file(path, 3 * kPage);
  EXPECT_EQ(bytes_of(*m, 3 * kPage - 100), part(100, 3 * kPage - 100));
  EXPECT_EQ(f->damaged_at(), UINT64_MAX) << "nothing that is gone was touched";
  const Bytes all = bytes_of(*m, 8 * kPage - 100);
  EXPECT_EQ(Bytes(all.begin() + 3 * kPage - 100, all.end()), Bytes(5 * kPage));
  EXPECT_EQ(f->damaged_at(), 3 * kPage);
  EXPECT_THAT(missing(*f, 8 * kPage),
              AllOf(HasSubstr(path), HasSubstr("ends at byte 12288, 20480 bytes early"),
                    HasSubstr("load it again")));
  std::filesystem::resize_file(path, 8 * kPage);
  EXPECT_THAT(missing(*f, 8 * kPage), AllOf(HasSubstr(path), HasSubstr("at byte 12288")))
      << "it was shorter for a while";
  EXPECT_EQ(bytes_of(*other, kPage), part(0, kPage));
}

// No access faults there: the rest of a file's last page is zeros.
TEST_F(FileMappingTest, AnEndWithinAPageIsToldToo) {
  const auto f = file(kPage);
  const auto m = FileMapping::make(f, 0, kPage);
  std::filesystem::resize_file(path, 1000);
  EXPECT_EQ(bytes_of(*m, kPage).back(), 0);
  EXPECT_THAT(missing(*f, kPage), HasSubstr("ends at byte 1000"));
  EXPECT_EQ(missing(*f, 1000), "");
}

// The handler walks the table while others add to it and take from it.
TEST_F(FileMappingTest, FaultsInManyThreadsAndMappings) {
  constexpr size_t kMappings = 400;
  const auto f = file(64 * kPage);
  std::vector<std::unique_ptr<FileMapping>> kept;
  for (size_t i = 0; i < kMappings; i++)
    kept.push_back(FileMapping::make(f, (i % 32) * kPage + i % 7, 32 * kPage - 7));
  std::atomic<bool> stop = false;
  std::thread churn([&] {
    const auto own = std::make_shared<const DataFile>(path, DataFile::Mode::Read);
    while (!stop) FileMapping::make(own, 0, kPage);
    EXPECT_EQ(own->damaged_at(), UINT64_MAX);
  });
  std::filesystem::resize_file(path, kPage);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kMappings; i++) {
        const Bytes got = bytes_of(*kept[t % 2 ? i : kMappings - 1 - i], 32 * kPage - 7);
        EXPECT_EQ(std::count(got.begin() + kPage, got.end(), 0), ptrdiff_t(31 * kPage - 7));
      }
    });
  for (std::thread& t : threads) t.join();
  stop = true;
  churn.join();
  EXPECT_EQ(f->damaged_at(), kPage);
}

TEST_F(FileMappingTest, NoPermission) {
  file(100);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const uid_t user = ::geteuid();
  if (user == 0) {  // who may read everything
    std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  std::string why;
  try {
    DataFile(path, DataFile::Mode::Read);
  } catch (const IoError& e) {
    why = e.what();
  }
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_THAT(why, AllOf(HasSubstr(path), HasSubstr("it needs other permissions")));
}

// ---- other handlers, in processes of their own: the first mapping remembers who was there

class OtherHandlers : public FileMappingTest {
 protected:
  OtherHandlers() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  // A mapping of tuff's that has had a fault, and a page that is not tuff's, where a file has
  // become empty.
  const volatile char* foreign_page() {
    const auto f = file(2 * kPage);
    const auto m = FileMapping::make(f, 0, 2 * kPage);
    const DataFile own(path + "2", DataFile::Mode::Create);
    own.extend(kPage);
    const auto* page = static_cast<const volatile char*>(
        ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, own.descriptor(), 0));
    std::filesystem::resize_file(path, kPage);
    if (bytes_of(*m, 2 * kPage).back() != 0 || f->damaged_at() != kPage) ::_exit(1);
    std::filesystem::resize_file(path + "2", 0);
    return page;
  }
  void fault_elsewhere() { ::_exit(*foreign_page() ? 2 : 3); }
  static void set_handler(void (*plain)(int), void (*informed)(int, siginfo_t*, void*)) {
    struct sigaction action = {};
    if (informed) {
      action.sa_sigaction = informed;
      action.sa_flags = SA_SIGINFO;
    } else {
      action.sa_handler = plain;
    }
    ::sigaction(SIGBUS, &action, nullptr);
  }
};

TEST_F(OtherHandlers, AreCalledForFaultsOfTheirOwn) {
  EXPECT_EXIT(
      {
        set_handler(nullptr, [](int signal, siginfo_t* info, void* context) {
          ::_exit(signal == SIGBUS && info->si_addr && context ? 42 : 4);
        });
        fault_elsewhere();
      },
      testing::ExitedWithCode(42), "");
  EXPECT_EXIT(
      {
        set_handler([](int signal) { ::_exit(signal == SIGBUS ? 43 : 4); }, nullptr);
        fault_elsewhere();
      },
      testing::ExitedWithCode(43), "");
}

sigjmp_buf before_fault;

TEST_F(OtherHandlers, MayJumpOut) {
  EXPECT_EXIT(
      {
        set_handler([](int) { siglongjmp(before_fault, 1); }, nullptr);
        const volatile char* const page = foreign_page();
        if (sigsetjmp(before_fault, 1) == 0 && *page >= 0) ::_exit(5);
        if (sigsetjmp(before_fault, 1) == 0 && *page >= 0) ::_exit(6);
        ::_exit(44);
      },
      testing::ExitedWithCode(44), "");
}

TEST_F(OtherHandlers, WithoutOneTheProcessEndsAsItDid) {
  EXPECT_EXIT(
      {
        set_handler(SIG_DFL, nullptr);
        fault_elsewhere();
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        set_handler(SIG_IGN, nullptr);
        fault_elsewhere();
      },
      testing::KilledBySignal(SIGBUS), "");
  const auto with_mapping = [&] { return FileMapping::make(file(10), 0, 10); };
  EXPECT_EXIT(
      {
        set_handler(SIG_DFL, nullptr);
        const auto m = with_mapping();
        ::kill(::getpid(), SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        set_handler(SIG_IGN, nullptr);
        const auto m = with_mapping();
        ::kill(::getpid(), SIGBUS);
        ::_exit(45);
      },
      testing::ExitedWithCode(45), "");
}

TEST_F(OtherHandlers, ThreadsThatInheritedABlockedSignal) {
  EXPECT_EXIT(
      {
        sigset_t bus;
        ::sigemptyset(&bus);
        ::sigaddset(&bus, SIGBUS);
        ::pthread_sigmask(SIG_BLOCK, &bus, nullptr);
        const auto f = file(2 * kPage);
        const auto m = FileMapping::make(f, 0, 2 * kPage);
        std::filesystem::resize_file(path, 0);
        std::thread([&] {
          unblock_bus_errors();
          bytes_of(*m, 2 * kPage);
        }).join();
        ::_exit(f->damaged_at() == 0 ? 46 : 1);
      },
      testing::ExitedWithCode(46), "");
}

TEST_F(OtherHandlers, WithoutAddressesLeftNothingIsMapped) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the addresses that are taken away here";
#endif
  EXPECT_EXIT(
      {
        const auto f = file(10);
        std::filesystem::resize_file(path, size_t(1) << 30);
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = size_t(512) << 20;
        ::setrlimit(RLIMIT_AS, &limit);
        ::_exit(FileMapping::make(f, 0, size_t(1) << 30) ? 1 : 47);
      },
      testing::ExitedWithCode(47), "");
}

}  // namespace
}  // namespace tuff::os

// Transfers and DataFile, by io_uring and by threads: bytes arrive whatever is aligned how,
// whatever the kernel does in parts, and what fails names the file, the byte and the remedy.
#include <array>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "base/check.h"
#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "base/os_transfer.h"
#include "base/temporary_folder.h"

namespace tuff::os {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

// 3 MiB and some: two cuts at multiples of the piece, neither end aligned.
constexpr size_t kLong = 3 * (1 << 20) + 777;

class TransferTest : public testing::TestWithParam<Transfers::Backend> {
 protected:
  TransferTest() : all(GetParam()) {}

  Bytes random_bytes(size_t n) {
    Bytes out(n);
    for (uint8_t& b : out) b = uint8_t(random());
    return out;
  }
  std::string written(const std::string& name, const Bytes& bytes) {
    const std::string path = folder / name;
    write_file(path, bytes);
    return path;
  }
  static void forget_cached(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY);
    ASSERT_EQ(::fsync(fd), 0);
    ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    ::close(fd);
  }
  void read(const DataFile& file, uint64_t offset, std::span<uint8_t> into) {
    const Transfer t{&file, offset, reinterpret_cast<std::byte*>(into.data()), into.size(), false};
    all.run({&t, 1});
  }
  void write(const DataFile& file, uint64_t offset, std::span<const uint8_t> from) {
    auto* memory = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(from.data()));
    const Transfer t{&file, offset, memory, from.size(), true};
    all.run({&t, 1});
  }

  TemporaryFolder folder;
  std::mt19937_64 random{7};
  Transfers all;
};

TEST_P(TransferTest, ReadsAnyRangeToAnyAddressCachedOrNot) {
  const Bytes bytes = random_bytes(kLong);
  const std::string path = written("a", bytes);
  const DataFile file(path, DataFile::Mode::Read);
  Bytes memory(kLong + 64);
  for (const bool cold : {true, false, true}) {
    for (const auto& [offset, size, lead] :
         std::vector<std::array<size_t, 3>>{{0, kLong, 0},
                                            {1, kLong - 1, 3},
                                            {4096, kLong - 4096, 0},
                                            {513, 2 << 20, 9},
                                            {(2 << 20) - 1, 2, 1},
                                            {kLong - 1, 1, 0},
                                            {kLong, 0, 0}}) {
      if (cold) forget_cached(path);
      std::ranges::fill(memory, 0xaa);
      read(file, offset, std::span(memory).subspan(lead, size));
      ASSERT_EQ(std::memcmp(&memory[lead], bytes.data() + offset, size), 0) << offset;
      ASSERT_EQ(memory[lead + size], 0xaa) << "beyond what was asked for";
      ASSERT_TRUE(lead == 0 || memory[lead - 1] == 0xaa) << "before it";
    }
  }
}

TEST_P(TransferTest, ReadsAroundThePageCacheWhatIsNotInIt) {
  const std::string path = written("a", random_bytes(kLong));
  const DataFile file(path, DataFile::Mode::Read);
  if (file.direct_descriptor() < 0) GTEST_SKIP() << "no O_DIRECT on this file system";
  Bytes memory(kLong);
  read(file, 0, memory);
  EXPECT_EQ(all.stats().direct_bytes, 0u) << "just written: it is in the cache";
  forget_cached(path);
  if (file.is_cached(0, kLong)) GTEST_SKIP() << "the page cache keeps it";
  read(file, 0, memory);
  EXPECT_EQ(all.stats().direct_bytes, kLong);
  EXPECT_FALSE(file.is_cached(0, kLong));
}

TEST_P(TransferTest, ManyRequestsAreInFlight) {
  const std::string path = written("a", Bytes(kLong));
  const DataFile file(path, DataFile::Mode::Read);
  Bytes memory(100 * 512);
  std::vector<Transfer> many;
  for (size_t i = 0; i < 100; i++)
    many.push_back({&file, i * 999, reinterpret_cast<std::byte*>(&memory[i * 512]), 512, false});
  all.run(many);
  EXPECT_EQ(all.stats().requests, 100u);
  EXPECT_EQ(all.stats().most_in_flight, RequestQueue::kSlots);
}

// Random lists of reads, or of writes to ranges of their own, against a model.
TEST_P(TransferTest, RandomReadsAndWritesInFlightAreWhatAModelSays) {
  Bytes model = random_bytes(kLong);
  const std::string path = written("a", model);
  const DataFile file(path, DataFile::Mode::ReadWrite);
  uint64_t calls = 0;
  all.tamper = [&](const Request& r, int64_t result) -> int64_t {
    switch (calls++ % 7) {
      case 2: return r.write ? result : -EINTR;
      case 4: return result > 1 ? result / 2 : result;  // the rest is asked for again
      case 5: return r.write ? result : -EAGAIN;
      default: return result;
    }
  };
  for (int round = 0; round < 60; round++) {
    if (round % 5 == 0) forget_cached(path);
    const bool writes = random() % 2;
    std::vector<Transfer> list;
    std::vector<Bytes> memory;
    for (size_t at = random() % 4096; at < kLong;) {
      const size_t most = random() % 3 ? 9000 : 900'000;
      const size_t size = std::min<size_t>(random() % most, kLong - at);
      const size_t lead = random() % 16;
      memory.push_back(random_bytes(size + lead));
      list.push_back(
          {&file, at, reinterpret_cast<std::byte*>(memory.back().data() + lead), size, writes});
      if (writes) std::memcpy(&model[at], memory.back().data() + lead, size);
      at += size + random() % 200'000;
    }
    std::ranges::shuffle(list, random);
    all.run(list);
    for (const Transfer& t : list)
      ASSERT_EQ(std::memcmp(t.memory, &model[t.offset], t.size_bytes), 0) << "round " << round;
  }
  EXPECT_EQ(read_file(path), model);
}

TEST_P(TransferTest, ThreadsTransferAtOnce) {
  const Bytes bytes = random_bytes(kLong);
  const DataFile file(written("a", bytes), DataFile::Mode::Read);
  std::vector<std::thread> threads;
  std::vector<Bytes> memory(6, Bytes(kLong));
  for (Bytes& m : memory)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; i++) read(file, 0, m);
    });
  for (std::thread& t : threads) t.join();
  for (const Bytes& m : memory) EXPECT_EQ(m, bytes);
}

TEST_P(TransferTest, DirectRequestsThatAreRefusedGoThroughTheCache) {
  const Bytes bytes = random_bytes(kLong);
  const std::string path = written("a", bytes);
  const DataFile file(path, DataFile::Mode::Read);
  forget_cached(path);
  const int direct = file.direct_descriptor();
  all.tamper = [&](const Request& r, int64_t result) { return r.fd == direct ? -EINVAL : result; };
  Bytes memory(kLong);
  read(file, 0, memory);
  EXPECT_EQ(memory, bytes);
}

TEST_P(TransferTest, AFileThatShrinksIsAnErrorThatNamesTheByte) {
  const std::string path = written("a", Bytes(kLong));
  const DataFile file(path, DataFile::Mode::Read);
  std::filesystem::resize_file(path, 1 << 20);
  Bytes memory(kLong);
  for (const bool cold : {true, false}) {
    if (cold) forget_cached(path);
    const std::string text =
        error_of<IoError>([&] { read(file, 100, std::span(memory).first(2 << 20)); });
    EXPECT_THAT(text, HasSubstr(path));
    EXPECT_THAT(text, HasSubstr("it ends at byte 1048576, 1048676 bytes early"));
    EXPECT_THAT(text, HasSubstr("load it again"));
  }
}

TEST_P(TransferTest, FailuresNameFileByteReasonAndRemedyAndLeaveNothingInFlight) {
  const std::string path = written("a", Bytes(kLong));
  const DataFile file(path, DataFile::Mode::ReadWrite);
  Bytes memory(kLong);
  all.tamper = [](const Request& r, int64_t result) {
    return r.offset >= (2 << 20) ? -EIO : result;
  };
  std::string text = error_of<IoError>([&] { read(file, 0, memory); });
  EXPECT_THAT(text, HasSubstr("cannot read '" + path + "' at byte 2097152"));
  EXPECT_THAT(text, HasSubstr("Input/output error; the disk"));
  all.tamper = [](const Request&, int64_t) { return -ENOSPC; };
  text = error_of<IoError>([&] { write(file, 5, std::span(memory).first(10)); });
  EXPECT_THAT(text, HasSubstr("cannot write '" + path + "' at byte 5 (10 bytes)"));
  EXPECT_THAT(text, HasSubstr("No space left on device; make room on the disk"));
  all.tamper = nullptr;
  read(file, 0, memory);
  EXPECT_EQ(memory, Bytes(kLong));
}

TEST_P(TransferTest, AFullDiskWhileWriting) {
  const std::string small = folder / "small";
  std::filesystem::create_directories(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "no right to mount a small disk: " << std::strerror(errno);
  {
    const DataFile file(small + "/a", DataFile::Mode::Create);
    const Bytes bytes = random_bytes(4 << 20);
    const std::string text = error_of<IoError>([&] { write(file, 0, bytes); });
    EXPECT_THAT(text, HasSubstr("cannot write '" + small + "/a' at byte "));
    EXPECT_THAT(text, HasSubstr("No space left on device; make room on the disk"));
    // The place that was written last may have all of the disk.
    std::filesystem::resize_file(small + "/a", 0);
    write(file, 0, std::span(bytes).first(100));
    Bytes back(100);
    read(file, 0, back);
    EXPECT_EQ(std::memcmp(back.data(), bytes.data(), 100), 0);
  }
  ::umount(small.c_str());
}

INSTANTIATE_TEST_SUITE_P(Backends, TransferTest,
                         testing::Values(Transfers::Backend::Uring, Transfers::Backend::Threads),
                         [](const auto& info) {
                           return info.param == Transfers::Backend::Uring ? "Uring" : "Threads";
                         });

class DataFileTest : public TransferTest {};
INSTANTIATE_TEST_SUITE_P(Any, DataFileTest, testing::Values(Transfers::Backend::Threads));

TEST_P(DataFileTest, WhatIsNoReadableFileIsTold) {
  using enum DataFile::Mode;
  EXPECT_THAT(error_of<IoError>([&] { DataFile(folder / "none", Read); }),
              HasSubstr("No such file or directory; check the path"));
  EXPECT_THAT(error_of<IoError>([&] { DataFile(folder / "none", ReadWrite); }),
              HasSubstr("No such file"));
  EXPECT_THAT(error_of<IoError>([&] { DataFile(folder / "no/folder", Create); }),
              HasSubstr("No such file"));
  EXPECT_THAT(error_of<IoError>([&] { DataFile(folder.path(), Read); }), HasSubstr("no regular file"));
  EXPECT_THAT(error_of<IoError>([&] { DataFile("/dev/full", ReadWrite); }),
              HasSubstr("no regular file"));
}

TEST_P(DataFileTest, ChangesAreSeenReplacementsAreNot) {
  const std::string path = written("a", random_bytes(1000));
  const DataFile file(path, DataFile::Mode::Read);
  file.require_unchanged();
  EXPECT_TRUE(file.is_at_path());
  written("a", Bytes(5));  // by rename
  EXPECT_FALSE(file.is_at_path());
  file.require_unchanged();
  EXPECT_EQ(file.size_bytes(), 1000u);

  const DataFile other(path, DataFile::Mode::ReadWrite);
  other.write_at(5, Bytes{1});
  EXPECT_THAT(error_of<IoError>([&] { other.require_unchanged(); }),
              HasSubstr("it had 5 bytes and has 6"));
  const DataFile third(path, DataFile::Mode::Read);
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THAT(error_of<IoError>([&] { third.require_unchanged(); }), HasSubstr("was written to"));
}

TEST_P(DataFileTest, GrowsWithZerosAndIsNotWrittenIfItMayNotBe) {
  const std::string path = folder / "new";
  const DataFile file(path, DataFile::Mode::Create);
  file.extend(100);
  file.extend(50);
  EXPECT_EQ(read_file(path), Bytes(100));
  const DataFile reader(path, DataFile::Mode::Read);
  EXPECT_THAT(error_of<IoError>([&] { write(reader, 0, Bytes(3)); }), HasSubstr("cannot write"));
}

TEST(Uring, IsHereOrSaysWhyNot) {
  std::string why;
  const auto ring = make_uring(why);
  if (!ring) GTEST_SKIP() << why;
  EXPECT_TRUE(why.empty());
}

TEST(Uring, TheEnvironmentChooses) {
  {
    const EnvOverride chosen(Env::TUFF_IO, "threads");
    const Transfers t;
    EXPECT_EQ(t.backend(), Transfers::Backend::Threads);
    EXPECT_EQ(t.why_threads(), "TUFF_IO=threads");
  }
  const EnvOverride wrong(Env::TUFF_IO, "tapes");
  EXPECT_THROW(Transfers(), InvalidArgument);
}

}  // namespace
}  // namespace tuff::os

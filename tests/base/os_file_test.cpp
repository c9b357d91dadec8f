#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tuff/error.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "base/env.h"
#include "base/os.h"
#include "base/os_stream.h"
#include "base/temporary_folder.h"

namespace tuff::os {
namespace {

TEST(OsFile, RoundTripAndOverwrite) {
  TemporaryFolder folder;
  const std::string path = folder / "a";
  std::vector<uint8_t> bytes(100001);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 7);
  write_file(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  write_text(path, "short");
  EXPECT_EQ(read_text(path), "short");
  write_text(path, "");
  EXPECT_TRUE(read_file(path).empty());
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"a"});  // no temporary is left
}

TEST(OsFile, FilesWithoutASizeAreReadToTheirEnd) {
  EXPECT_GT(read_text("/proc/self/maps").size(), 100u);
}

TEST(OsFile, ReadersSeeTheFileWhole) {
  TemporaryFolder folder;
  const std::string path = folder / "a";
  write_text(path, std::string(50000, 'a'));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) write_text(path, std::string(50000, i % 2 ? 'a' : 'b'));
    done = true;
  });
  while (!done) {
    const std::string text = read_text(path);
    EXPECT_EQ(text.size(), 50000u);
    EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos);
  }
  writer.join();
}

TEST(OsFile, AFailedWriteLeavesTheOldFile) {
  TemporaryFolder folder;
  make_directories(folder / "target/inside");
  EXPECT_THROW(write_text(folder / "target", "x"), IoError);  // a folder cannot be renamed over
  EXPECT_TRUE(is_directory(folder / "target/inside"));
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"target"});
}

// A killed process of the same number, as process numbers come again.
TEST(OsFile, WhatAKilledWriterLeftBehindIsNotInTheWay) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  for (int serial = 0; serial < 1000; ++serial)
    write_text(path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(serial), "");
  write_text(path, "new");
  EXPECT_EQ(read_text(path), "new");
}

// Writes "new" over "old" in a child that the fault kills. Returns the signal that ended it.
int killed_by(const std::string& path, const std::string& fault) {
  write_text(path, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    const EnvOverride set(Env::TUFF_WRITE_FAULT, fault);
    write_text(path, "new");
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(OsFile, AWriterThatIsKilledAnywhereLeavesAWholeFile) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  for (const char* fault : {"kill:0", "kill:2", "kill:sync", "kill:rename"}) {
    EXPECT_EQ(killed_by(path, fault), SIGKILL) << fault;
    EXPECT_EQ(read_text(path), "old") << fault;
    EXPECT_EQ(list_directory(folder.path()).size(), 2u) << fault;
    remove_abandoned(path);
    EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"file"}) << fault;
  }
  EXPECT_EQ(killed_by(path, "kill:folder"), SIGKILL);
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(killed_by(path, "kill:3"), 0) << "no byte is written there";
  EXPECT_EQ(killed_by(path, "file:other,kill:0"), 0);
  EXPECT_EQ(killed_by(path, "file:/file,write:2,kill:0"), 0);
}

TEST(OsFile, AFullDiskLeavesTheOldFileAndNothingBesideIt) {
  TemporaryFolder folder;
  write_text(folder / "file", "old");
  const EnvOverride set(Env::TUFF_WRITE_FAULT, "full:2");
  try {
    write_text(folder / "file", "new");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("No space left on device"), std::string::npos) << e.what();
  }
  EXPECT_EQ(read_text(folder / "file"), "old");
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"file"});
}

TEST(OsFile, FilesThatAreBeingWrittenAreNotAbandoned) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  OutputFile file(path);
  const std::vector<uint8_t> bytes{'x'};
  file.write(bytes);
  remove_abandoned(path);
  file.commit();
  EXPECT_EQ(read_text(path), "x");
}

TEST(OsFile, FaultsThatMakeNoSenseAreRefused) {
  TemporaryFolder folder;
  for (const char* fault : {"kill", "kill:never", "full:", "write:x", "bytes:3"}) {
    const EnvOverride set(Env::TUFF_WRITE_FAULT, fault);
    EXPECT_THROW(write_text(folder / "file", "x"), InvalidArgument) << fault;
  }
}

TEST(OsFile, ErrorsNameThePathAndTheCause) {
  TemporaryFolder folder;
  try {
    read_file(folder / "absent");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("/absent': No such file"), std::string::npos) << e.what();
  }
  EXPECT_THROW(read_file(folder.path()), IoError);
  EXPECT_THROW(write_text(folder / "no/such", "x"), IoError);
  EXPECT_THROW(list_directory(folder / "absent"), IoError);
  write_text(folder / "file", "x");
  EXPECT_THROW(make_directories(folder / "file/below"), IoError);
}

TEST(OsFile, CacheFolderFollowsTheOverride) {
  EnvOverride chosen(Env::TUFF_CACHE_DIR, "/some/where");
  EXPECT_EQ(cache_directory(), "/some/where");
  EnvOverride unset(Env::TUFF_CACHE_DIR, "");
  EXPECT_TRUE(cache_directory().ends_with("/tuff"));
}

TEST(OsFile, ProgramsAreFoundOnThePath) {
  const auto shell = find_program("sh");
  ASSERT_TRUE(shell);
  EXPECT_TRUE(shell->ends_with("/sh"));
  EXPECT_EQ(find_program(*shell), shell);
  EXPECT_FALSE(find_program("no-such-program-here"));
  EXPECT_FALSE(find_program(""));
  EXPECT_FALSE(find_program("/tmp"));
}

TEST(OsFile, ALockHasOneHolderAndEndsWithItsProcess) {
  TemporaryFolder folder;
  const std::string path = folder / "lock";
  {
    const auto held = FileLock::acquire(path, 0);
    ASSERT_TRUE(held);
    EXPECT_FALSE(FileLock::acquire(path, 3'000'000));
  }
  EXPECT_TRUE(FileLock::acquire(path, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = FileLock::acquire(path, 0);
    ::_exit(held ? 0 : 1);  // without the destructor
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(FileLock::acquire(path, 0));
  EXPECT_THROW(FileLock::acquire(folder / "missing/lock", 0), IoError);
}

}  // namespace
}  // namespace tuff::os

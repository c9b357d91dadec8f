// What a path that is written to stands for: links, pipes, devices, files of others. Device nodes are
// the test's own, in its temporary folder; what needs root or another user is skipped without.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <tuff/error.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "base/os.h"
#include "base/os_stream.h"
#include "base/temporary_folder.h"

namespace tuff::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uid_t kOther = 65534;  // nobody

std::string write_error(const std::string& path, const std::string& text = "new") {
  try {
    write_text(path, text);
  } catch (const IoError& e) {
    return e.what();
  }
  return "";
}

struct stat status_of(const std::string& path) {
  struct stat s {};
  EXPECT_EQ(::lstat(path.c_str(), &s), 0) << path << ": " << std::strerror(errno);
  return s;
}
mode_t mode_of(const std::string& path) { return status_of(path).st_mode & 07777; }

void link_to(const std::string& target, const std::string& link) {
  ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
}

// What `function` says as another user, in a child.
std::string as_user(uid_t user, const std::function<std::string()>& function) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text = "cannot become another user";
    if (::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0)
      text = function();
    const ssize_t n = ::write(ends[1], text.data(), text.size());
    ::_exit(n == ssize_t(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char piece[256];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, size_t(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return text;
}

#define REQUIRE_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "needs root"

// A character device of the test's own; the machine's are never named.
bool make_device(const std::string& path, mode_t kind, unsigned major, unsigned minor) {
  if (::mknod(path.c_str(), kind | 0666, makedev(major, minor)) != 0) return false;
  if (kind != S_IFCHR) return true;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);  // not where the folder is "nodev"
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

TEST(OsOutput, DevicesAreWrittenThroughAndStay) {
  REQUIRE_ROOT();
  TemporaryFolder folder;
  const std::string null = folder / "null", full = folder / "full";
  if (!make_device(null, S_IFCHR, 1, 3) || !make_device(full, S_IFCHR, 1, 7))
    GTEST_SKIP() << "no device can be made in " << folder.path();
  link_to("null", folder / "link");
  EXPECT_EQ(write_error(null), "");
  EXPECT_EQ(write_error(folder / "link"), "");
  require_writable(null);
  const std::string error = write_error(full);
  EXPECT_THAT(error, HasSubstr("cannot write '" + full + "': at byte 0: No space left on device"));
  for (const std::string& path : {null, full}) EXPECT_TRUE(S_ISCHR(status_of(path).st_mode));
  EXPECT_TRUE(S_ISLNK(status_of(folder / "link").st_mode));
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("full", "link", "null"));
}

// A number that no driver has: nothing could be lost.
TEST(OsOutput, DisksAreRefused) {
  REQUIRE_ROOT();
  TemporaryFolder folder;
  if (!make_device(folder / "disk", S_IFBLK, 240, 200)) GTEST_SKIP() << "no device can be made";
  EXPECT_THAT(write_error(folder / "disk"), HasSubstr("it is a disk"));
  EXPECT_TRUE(S_ISBLK(status_of(folder / "disk").st_mode));
}

TEST(OsOutput, PipesAreWrittenThrough) {
  TemporaryFolder folder;
  const std::string path = folder / "pipe", text(300'000, 'x');
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  require_writable(path);  // does not wait for a reader
  std::string got;
  std::thread reader([&] { got = read_text(path); });
  EXPECT_EQ(write_error(path, text), "");
  reader.join();
  EXPECT_EQ(got, text);
  EXPECT_TRUE(S_ISFIFO(status_of(path).st_mode));
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("pipe"));
}

TEST(OsOutput, APipeWithoutAReaderIsAnErrorAfterAWhile) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(write_error(folder / "pipe"), HasSubstr("nobody reads from it"));
}

TEST(OsOutput, AReaderThatEndsIsAnErrorAndNotTheEndOfTheProcess) {
  TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::signal(SIGPIPE, SIG_DFL);
  std::thread reader([&] { ::close(::open(path.c_str(), O_RDONLY)); });
  const std::string error = write_error(path, std::string(1 << 20, 'x'));
  reader.join();
  EXPECT_THAT(error, HasSubstr("Broken pipe; whoever read from it has ended"));
}

TEST(OsOutput, WhatIsWrittenOverIsRefusedOfPipes) {
  TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  OutputFile file(path);
  EXPECT_THROW(file.require_replace(), IoError);
  const std::vector<uint8_t> bytes{1, 2};
  file.write(bytes);
  EXPECT_THROW(file.replace(0, bytes), IoError);
  ::close(reader);
}

// Standard output is a file: what was written stays, and what comes next goes behind it.
TEST(OsOutput, DescriptorsOfThisProcessAreWrittenWhereTheyAre) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::write(fd, "before ", 7), 7);
  const std::string number = std::to_string(fd);
  EXPECT_EQ(write_error("/dev/fd/" + number, "a"), "");
  EXPECT_EQ(write_error("/proc/self/fd/" + number, "b"), "");
  link_to("/proc/" + std::to_string(::getpid()) + "/fd/" + number, folder / "link");
  {
    OutputFile file(folder / "link");
    const std::vector<uint8_t> bytes{'c', 'd'}, over{'e'};
    file.write(bytes);
    file.replace(1, over);
    file.commit();
  }
  EXPECT_EQ(::write(fd, "after", 5), 5);
  EXPECT_EQ(read_text(path), "before abceafter");
  const int reading = ::open(path.c_str(), O_RDONLY);
  EXPECT_THAT(write_error("/dev/fd/" + std::to_string(reading)), HasSubstr("open for reading"));
  ::close(reading);
  ::close(fd);
  EXPECT_THAT(write_error("/dev/fd/" + number), HasSubstr("Bad file descriptor"));
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("file", "link"));
}

TEST(OsOutput, LinksAreFollowed) {
  TemporaryFolder folder;
  make_directories(folder / "there");
  write_text(folder / "there/file", "old");
  link_to("there/file", folder / "link");
  link_to(folder / "link", folder / "there/link");
  link_to("there", folder / "folder");
  for (const char* name : {"link", "there/link", "folder/link", "folder/file"}) {
    EXPECT_EQ(write_error(folder / name, name), "");
    EXPECT_EQ(read_text(folder / "there/file"), name);
  }
  EXPECT_TRUE(S_ISLNK(status_of(folder / "link").st_mode));
  EXPECT_TRUE(S_ISLNK(status_of(folder / "there/link").st_mode));
  EXPECT_THAT(list_directory(folder / "there"), ElementsAre("file", "link"));
}

TEST(OsOutput, LinksToNothingMakeWhatTheyName) {
  TemporaryFolder folder;
  make_directories(folder / "there");
  link_to("there/second", folder / "first");
  link_to("file", folder / "there/second");
  require_writable(folder / "first");
  EXPECT_THAT(list_directory(folder / "there"), ElementsAre("second"));
  EXPECT_EQ(write_error(folder / "first"), "");
  EXPECT_EQ(read_text(folder / "there/file"), "new");
  link_to("no/such", folder / "lost");
  EXPECT_THAT(write_error(folder / "lost"), HasSubstr("its folder is not there"));
  for (const char* link : {"first", "there/second", "lost"})
    EXPECT_TRUE(S_ISLNK(status_of(folder / link).st_mode)) << link;
}

TEST(OsOutput, LinksInALoopAndFoldersAreRefused) {
  TemporaryFolder folder;
  link_to("b", folder / "a");
  link_to("a", folder / "b");
  EXPECT_THAT(write_error(folder / "a"), HasSubstr("its links lead to each other"));
  EXPECT_THAT(write_error(folder.path()), HasSubstr("Is a directory; name a file in it"));
  link_to(".", folder / "here");
  EXPECT_THAT(write_error(folder / "here"), HasSubstr("Is a directory"));
  EXPECT_THAT(write_error(""), HasSubstr("No such file"));
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("a", "b", "here"));
}

TEST(OsOutput, TheModeOfWhatIsReplacedStays) {
  TemporaryFolder folder;
  const mode_t before = ::umask(022);
  const std::string path = folder / "file";
  write_text(path, "old");
  EXPECT_EQ(mode_of(path), 0644u);  // by umask
  for (const mode_t mode : {0600u, 0640u, 0666u, 0755u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(write_error(path), "");
    EXPECT_EQ(mode_of(path), mode);
  }
  ::umask(077);
  write_text(folder / "mine", "x");
  EXPECT_EQ(mode_of(folder / "mine"), 0600u);
  ::umask(before);
}

// Also while it is written: a secret is readable for nobody else at any moment.
TEST(OsOutput, WhatIsBesideASecretFileIsSecretToo) {
  TemporaryFolder folder;
  write_text(folder / "file", "old");
  ASSERT_EQ(::chmod((folder / "file").c_str(), 0600), 0);
  OutputFile file(folder / "file");
  const std::vector<uint8_t> bytes{1};
  file.write(bytes);
  for (const std::string& name : list_directory(folder.path()))
    EXPECT_EQ(mode_of(folder / name), 0600u) << name;
}

TEST(OsOutput, AccessListsStay) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  write_text(path, "old");
  // acl(5), version 2: owner rw-, user 1 r--, group ---, mask rw-, others ---; little-endian.
  struct Entry {
    uint16_t tag, permissions;
    uint32_t id;
  };
  struct {
    uint32_t version = 2;
    Entry entries[5] = {{1, 6, ~0u}, {2, 4, 1}, {4, 0, ~0u}, {16, 6, ~0u}, {32, 0, ~0u}};
  } list;
  if (::setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
    GTEST_SKIP() << "no access lists here: " << std::strerror(errno);
  EXPECT_EQ(write_error(path), "");
  char got[sizeof list] = {};
  EXPECT_EQ(::getxattr(path.c_str(), "system.posix_acl_access", got, sizeof got),
            ssize_t(sizeof list));
  EXPECT_EQ(std::memcmp(got, &list, sizeof list), 0);
}

TEST(OsOutput, RootKeepsTheOwner) {
  REQUIRE_ROOT();
  TemporaryFolder folder;
  const std::string path = folder / "file";
  write_text(path, "old");
  ASSERT_EQ(::chown(path.c_str(), kOther, kOther), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(write_error(path), "");
  const struct stat s = status_of(path);
  EXPECT_EQ(s.st_uid, kOther);
  EXPECT_EQ(s.st_gid, kOther);
  EXPECT_EQ(s.st_mode & 07777, 0640u);
}

// The file is another's: the owner cannot be kept, and its group's rights are not for other groups.
TEST(OsOutput, AnotherUserReplacesWhatHeMayWrite) {
  REQUIRE_ROOT();
  TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  const std::string path = folder / "file";
  write_text(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0662), 0);
  EXPECT_EQ(as_user(kOther, [&] { return write_error(path); }), "");
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(status_of(path).st_uid, kOther);
  EXPECT_EQ(mode_of(path), 0622u);
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_THAT(as_user(kOther, [&] { return write_error(path); }),
              HasSubstr("Permission denied; you may not write there"));
  EXPECT_EQ(read_text(path), "new");
}

TEST(OsOutput, ReadOnlyFoldersAreRefused) {
  REQUIRE_ROOT();
  TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  write_text(folder / "file", "old");
  ASSERT_EQ(::chmod((folder / "file").c_str(), 0666), 0);
  for (const char* name : {"file", "new"}) {
    EXPECT_THAT(as_user(kOther, [&] { return write_error(folder / name); }),
                HasSubstr("Permission denied"));
    EXPECT_THAT(as_user(kOther,
                        [&] {
                          try {
                            require_writable(folder / name);
                            return std::string("no error");
                          } catch (const IoError& e) {
                            return std::string(e.what());
                          }
                        }),
                HasSubstr("Permission denied"));
  }
  EXPECT_EQ(read_text(folder / "file"), "old");
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("file"));
}

// As /tmp: what another user has there is not replaced, though he lets everybody write it.
TEST(OsOutput, StickyFoldersProtectWhatIsAnothers) {
  REQUIRE_ROOT();
  TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  write_text(folder / "file", "old");
  ASSERT_EQ(::chmod((folder / "file").c_str(), 0666), 0);
  EXPECT_THAT(as_user(kOther, [&] { return write_error(folder / "file"); }),
              HasSubstr("Operation not permitted; you may not write there"));
  EXPECT_EQ(read_text(folder / "file"), "old");
  EXPECT_EQ(as_user(kOther, [&] { return write_error(folder / "mine"); }), "");
  EXPECT_EQ(status_of(folder / "mine").st_uid, kOther);
}

TEST(OsOutput, LinksOfOthersInStickyFoldersAreFollowedWhereTheKernelDoes) {
  REQUIRE_ROOT();
  TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  const std::string setting = read_text("/proc/sys/fs/protected_symlinks");
  as_user(kOther, [&] {
    return std::string(::symlink("victim", (folder / "trap").c_str()) == 0 ? "" : "failed");
  });
  if (setting.starts_with('0')) GTEST_SKIP() << "this kernel follows links of others";
  EXPECT_THAT(write_error(folder / "trap"), HasSubstr("Permission denied"));
  EXPECT_FALSE(exists(folder / "victim"));
}

TEST(OsOutput, TheOtherNamesOfAFileKeepWhatItWas) {
  TemporaryFolder folder;
  write_text(folder / "file", "old");
  ASSERT_EQ(::link((folder / "file").c_str(), (folder / "other").c_str()), 0);
  EXPECT_EQ(write_error(folder / "file"), "");
  EXPECT_EQ(read_text(folder / "file"), "new");
  EXPECT_EQ(read_text(folder / "other"), "old");
}

TEST(OsOutput, NamesMayBeAsLongAsTheSystemAllows) {
  TemporaryFolder folder;
  const std::string name(255, 'n');
  EXPECT_EQ(write_error(folder / name, "old"), "");
  EXPECT_EQ(write_error(folder / name, "new"), "");
  EXPECT_EQ(read_text(folder / name), "new");
  EXPECT_THAT(list_directory(folder.path()), ElementsAre(name));
}

// A path of two links of which one is a file by the time that it is renamed over.
TEST(OsOutput, WhatIsNoFileAnyMoreIsNotReplaced) {
  TemporaryFolder folder;
  write_text(folder / "file", "old");
  OutputFile file(folder / "file");
  ASSERT_EQ(::unlink((folder / "file").c_str()), 0);
  ASSERT_EQ(::mkfifo((folder / "file").c_str(), 0600), 0);
  EXPECT_THROW(file.commit(), IoError);
  EXPECT_TRUE(S_ISFIFO(status_of(folder / "file").st_mode));
}

TEST(OsOutput, WhatKilledWritersLeftIsRemovedByTheNextOne) {
  TemporaryFolder folder;
  make_directories(folder / "there");
  link_to("there/file", folder / "link");
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile file(folder / "link");
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(list_directory(folder / "there").size(), 1u);
  EXPECT_EQ(write_error(folder / "link"), "");
  EXPECT_THAT(list_directory(folder / "there"), ElementsAre("file"));
}

// Removers and writers of one name meet all the time; nobody fails.
TEST(OsOutput, WritersOfOneNameDoNotRemoveEachOthersFiles) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  std::atomic<int> failures{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) failures += !write_error(path).empty();
    });
  for (std::thread& w : writers) w.join();
  EXPECT_EQ(failures, 0);
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("file"));
}

}  // namespace
}  // namespace tuff::os

// Whom the cache's files may be trusted from: owners, modes, symbolic links and folders on the way.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include <tuff/error.h>

#include "base/env.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "base/temporary_folder.h"

namespace tuff::os {
namespace {

constexpr uid_t kNobody = 65534;

unsigned mode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

std::string refusal_of(const std::string& path) { return trusted_path(path).refusal; }

void expect_refused(const std::string& path, const std::vector<std::string>& words) {
  const std::string why = refusal_of(path);
  for (const std::string& word : words) EXPECT_NE(why.find(word), std::string::npos) << why;
  EXPECT_FALSE(why.empty()) << path;
}

class AnyUmask {
 public:
  AnyUmask() : before_(::umask(0)) {}
  ~AnyUmask() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST(OsCache, WhatIsMadeIsTheOwnersAlone) {
  TemporaryFolder folder;
  const AnyUmask umask;
  const std::string path = folder / "a/b/c";
  EXPECT_FALSE(trusted_path(path).exists);
  EXPECT_FALSE(exists(folder / "a"));
  write_private_file(path, {});
  EXPECT_EQ(mode_of(folder / "a"), 0700u);
  EXPECT_EQ(mode_of(folder / "a/b"), 0700u);
  EXPECT_EQ(mode_of(path), 0600u);
  make_private_file(folder / "a/d");
  EXPECT_EQ(mode_of(folder / "a/d"), 0600u);
  EXPECT_TRUE(trusted_path(path).exists);
  EXPECT_EQ(refusal_of(path), "");
  EXPECT_TRUE(read_private_file(path));
  EXPECT_FALSE(read_private_file(folder / "a/missing"));
}

TEST(OsCache, WhatOthersMayWriteIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder / "a/file";
  write_private_file(path, {});
  for (const mode_t mode : {0622, 0666, 0620}) {
    ::chmod(path.c_str(), mode);
    expect_refused(path, {path, "mode 0", "chmod -R go-w"});
    EXPECT_FALSE(read_private_file(path));
  }
  ::chmod(path.c_str(), 0644);
  EXPECT_EQ(refusal_of(path), "");
  ::chmod((folder / "a").c_str(), 0777);
  expect_refused(folder / "a", {"a'", "mode 0777", "chmod"});
  expect_refused(path, {"others may rename what is in", "mode 0777", "TUFF_CACHE_DIR"});
  EXPECT_THROW(write_private_file(path, {}), IoError);
  ::chmod((folder / "a").c_str(), 01777);  // as /tmp: others cannot rename what is ours
  EXPECT_EQ(refusal_of(path), "");
  expect_refused(folder / "a", {"mode 1777"});
}

TEST(OsCache, SymbolicLinksAreFollowedToWhatIsJudged) {
  TemporaryFolder folder;
  write_private_file(folder / "real/file", {});
  std::filesystem::create_symlink(folder / "real", folder / "absolute");
  std::filesystem::create_symlink("../" + folder.path().substr(5) + "/real", folder / "relative");
  std::filesystem::create_symlink("loop", folder / "loop");
  const std::string real = trusted_path(folder / "real/file").path;
  EXPECT_EQ(trusted_path(folder / "absolute/file").path, real);
  EXPECT_EQ(trusted_path(folder / "absolute/../real/./file").path, real);
  if (folder.path().starts_with("/tmp/") && folder.path().rfind('/') == 4) {
    EXPECT_EQ(trusted_path(folder / "relative/file").path, real);
  }
  expect_refused(folder / "loop", {"cannot follow the symbolic link"});
  ::chmod((folder / "real").c_str(), 0777);
  expect_refused(folder / "absolute/file", {"/real'", "0777"});
}

TEST(OsCache, WhatAnotherUserOwnsIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  TemporaryFolder folder;
  const std::string path = folder / "a/file";
  write_private_file(path, {});
  ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
  expect_refused(path, {path, "owner nobody, mode 0600", "another user than you (root)"});
  ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  // Root that was given another user's HOME: that user may rename what is below.
  ASSERT_EQ(::chown((folder / "a").c_str(), kNobody, kNobody), 0);
  expect_refused(path, {"/a'", "owner nobody, mode 0700", "TUFF_CACHE_DIR"});
  expect_refused(folder / "a/new", {"owner nobody"});
  ASSERT_EQ(::chown((folder / "a").c_str(), 0, 0), 0);
  std::filesystem::create_symlink("a", folder / "link");
  ASSERT_EQ(::lchown((folder / "link").c_str(), kNobody, kNobody), 0);
  expect_refused(folder / "link/file", {"/link'", "owner nobody"});
}

TEST(OsCache, WhatRootOwnsIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TemporaryFolder folder;
  const std::string path = folder / "file";
  write_file(path, {});
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(path.c_str(), 0644);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setresuid(kNobody, kNobody, kNobody) == 0;
    ::_exit(other && refusal_of(path).empty() && read_private_file(path) ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(OsCache, PathsAreEmptyWithoutACache) {
  TemporaryFolder folder;
  const EnvOverride chosen(Env::TUFF_CACHE_DIR, folder / "cache");
  EXPECT_EQ(cache_path("x/y"), trusted_path(folder / "cache/x/y").path);
  EXPECT_FALSE(exists(folder / "cache"));
  {
    const EnvOverride off(Env::TUFF_CACHE, "0");
    EXPECT_EQ(cache_path("x/y"), "");
  }
  std::filesystem::create_directory(folder / "cache");
  ::chmod((folder / "cache").c_str(), 0777);
  EXPECT_EQ(cache_path("x/y"), "");
}

TEST(OsCache, ScratchFoldersAreTheOwnersAndGo) {
  std::string path;
  {
    const ScratchFolder scratch;
    path = scratch.path();
    EXPECT_EQ(mode_of(path), 0700u);
    write_text(path + "/x", "y");
  }
  EXPECT_FALSE(exists(path));
}

}  // namespace
}  // namespace tuff::os

// The disk cache gives back what was put into it or nothing; it outlives locks, full disks and
// damage, and takes nothing that another user may have written.
#include <gtest/gtest.h>

#include <sqlite3.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>

#include "base/os.h"
#include "base/temporary_folder.h"
#include "engine/store/disk_cache.h"

namespace tuff::engine {
namespace {

constexpr uid_t kNobody = 65534;

std::string key_of(const std::string& text) { return content_key({&text, 1}); }
Blob blob_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string text_of(const Blob& b) { return {b.begin(), b.end()}; }

Blob program(int i) {
  Blob out(3000 + size_t(i) * 97);
  for (size_t k = 0; k < out.size(); k++) out[k] = uint8_t(k * 7 + size_t(i));
  return out;
}
Blob tuning(int i) { return blob_of("upcast(0,4),local(" + std::to_string(i) + ",8)"); }

std::vector<CacheRow> rows(int count) {
  std::vector<CacheRow> out;
  for (int i = 0; i < count; i++) {
    const std::string n = std::to_string(i);
    out.push_back({key_of("program" + n), program(i), CacheKind::Program});
    out.push_back({key_of("link" + n), blob_of(key_of("program" + n)), CacheKind::Link});
    out.push_back({key_of("tuning" + n), tuning(i), CacheKind::Tuning});
  }
  return out;
}

// How many are there; any that is there is what was put.
size_t found(DiskCache& cache, const std::vector<CacheRow>& wanted) {
  size_t n = 0;
  for (const CacheRow& row : wanted) {
    const std::optional<Blob> bytes = cache.get(row.key);
    EXPECT_TRUE(!bytes || *bytes == row.bytes) << row.key;
    n += bytes.has_value();
  }
  return n;
}

size_t kept(const std::string& folder, const std::vector<CacheRow>& wanted) {
  DiskCache cache(folder);
  return found(cache, wanted);
}

void fill(const std::string& folder, const std::vector<CacheRow>& all) {
  DiskCache cache(folder);
  ASSERT_TRUE(cache.usable());
  cache.put(all);
  ASSERT_EQ(found(cache, all), all.size());
}

std::string database(const std::string& folder) { return folder + "/tuff-cache-v1.db"; }

// Whether `body` returns true in a process of its own; what it does to itself ends with it.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

unsigned mode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(DiskCache, KeepsWhatWasPut) {
  TemporaryFolder folder;
  const auto all = rows(5);
  fill(folder / "cache", all);
  EXPECT_EQ(kept(folder / "cache", all), all.size());
  DiskCache none("");
  EXPECT_FALSE(none.usable());
  none.put(all);
  EXPECT_FALSE(none.get(all[0].key));
}

TEST(DiskCache, FilesAreTheOwnersAlone) {
  TemporaryFolder folder;
  const mode_t before = ::umask(0);
  {
    DiskCache cache(folder / "cache");
    cache.put(rows(2));
    EXPECT_EQ(mode_of(folder / "cache"), 0700u);
    for (const std::string& name : os::list_directory(folder / "cache")) {
      if (name.ends_with(".lock")) continue;  // it is empty
      EXPECT_EQ(mode_of(folder / "cache/" + name), 0600u) << name;
    }
    EXPECT_TRUE(os::exists(database(folder / "cache") + "-wal"));
  }
  ::umask(before);
}

TEST(DiskCache, RefusesWhatOthersMayWrite) {
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  const auto all = rows(2);
  fill(cache, all);
  ::chmod(cache.c_str(), 0777);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(DiskCache(cache).usable());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("mode 0777"), std::string::npos) << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  ::chmod(cache.c_str(), 0700);
  ::chmod(database(cache).c_str(), 0666);
  EXPECT_FALSE(DiskCache(cache).usable());
  ::chmod(database(cache).c_str(), 0644);
  EXPECT_EQ(kept(cache, all), all.size());
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    os::write_text(database(cache) + suffix, "");
    ::chmod((database(cache) + suffix).c_str(), 0666);
    EXPECT_FALSE(DiskCache(cache).usable()) << suffix;
    std::filesystem::remove(database(cache) + suffix);
  }
  EXPECT_EQ(kept(cache, all), all.size());
}

TEST(DiskCache, RefusesWhatAnotherUserOwns) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  const auto all = rows(2);
  fill(cache, all);
  for (const std::string& path : {database(cache), cache}) {
    ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
    EXPECT_FALSE(DiskCache(cache).usable()) << path;
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(kept(cache, all), all.size());
}

// A cache that root has filled, and one on a file system that cannot be written.
TEST(DiskCache, ReadsWhatItMayNotWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  const auto all = rows(3);
  fill(cache, all);
  for (const std::string& path : {folder.path(), cache}) ::chmod(path.c_str(), 0755);
  ::chmod(database(cache).c_str(), 0644);
  EXPECT_TRUE(in_child([&] {
    if (::setresuid(kNobody, kNobody, kNobody) != 0) return false;
    DiskCache reader(cache);
    reader.put(rows(9));
    return reader.read_only() && found(reader, all) == all.size() &&
           found(reader, rows(9)) == all.size();
  }));
  EXPECT_EQ(kept(cache, all), all.size());
}

TEST(DiskCache, GoesOnWithoutWhatIsLocked) {
  TemporaryFolder folder;
  const auto all = rows(3);
  fill(folder.path() + "/cache", all);
  const std::string cache = folder / "cache";
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready) + ::pipe(done), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    sqlite3* db = nullptr;
    sqlite3_open(database(cache).c_str(), &db);
    sqlite3_exec(db, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM binaries WHERE 0",
                 nullptr, nullptr, nullptr);
    char c = 0;
    (void)!::write(ready[1], "x", 1);
    (void)!::read(done[0], &c, 1);
    ::_exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  testing::internal::CaptureStderr();
  {
    DiskCache locked(cache);
    EXPECT_EQ(found(locked, all), 0u);
    locked.put(all);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("locked"), std::string::npos) << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  ASSERT_EQ(::write(done[1], "x", 1), 1);
  ::waitpid(holder, nullptr, 0);
  EXPECT_EQ(kept(cache, all), all.size());
}

// As ulimit -f has it, at every length that the files may have come to.
TEST(DiskCache, OutlivesFilesThatMayNotGrow) {
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  const auto all = rows(12);
  fill(cache, all);
  for (const rlim_t limit : {0, 4096, 20000, 40000, 65536, 100000}) {
    EXPECT_TRUE(in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit l{limit, limit};
      if (::setrlimit(RLIMIT_FSIZE, &l) != 0) return false;
      DiskCache limited(cache);
      const bool there = !limited.usable() || found(limited, all) == all.size();
      for (int i = 20; i < 30; i++) limited.put(rows(i));
      found(limited, rows(29));
      return there;
    })) << limit;
    EXPECT_EQ(kept(cache, all), all.size()) << limit;
  }
}

TEST(DiskCache, TakesOverWhatEarlierVersionsKept) {
  TemporaryFolder folder;
  const auto all = rows(3);
  sqlite3* db = nullptr;
  fill(folder.path() + "/cache", all);
  sqlite3_open(database(folder / "cache").c_str(), &db);
  ASSERT_EQ(sqlite3_exec(db, "DROP TABLE entries; PRAGMA user_version=0", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(kept(folder / "cache", all), all.size());
}

TEST(DiskCache, OneOfALaterVersionIsLeftAlone) {
  TemporaryFolder folder;
  const auto all = rows(1);
  fill(folder / "cache", all);
  sqlite3* db = nullptr;
  const auto set_version = [&](const char* sql) {
    sqlite3_open(database(folder / "cache").c_str(), &db);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  };
  set_version("PRAGMA user_version=77");
  EXPECT_FALSE(DiskCache(folder / "cache").usable());
  set_version("PRAGMA user_version=2");
  EXPECT_EQ(kept(folder / "cache", all), all.size());
}

// Damage of every kind and place: what is given back is right, what can be read of the searches is
// kept where the file is made anew, and the cache works afterwards.
TEST(DiskCache, Damage) {
  TemporaryFolder folder;
  const std::string whole = folder / "whole";
  const auto all = rows(20);
  fill(whole, all);
  const std::vector<uint8_t> sound = os::read_file(database(whole));
  std::mt19937 random(7);
  size_t rebuilt = 0, left = 0;
  for (int round = 0; round < 150; round++) {
    const std::string cache = folder / ("damaged" + std::to_string(round));
    std::filesystem::create_directory(cache);
    std::vector<uint8_t> bytes = sound;
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    if (round % 7 == 0) std::fill_n(bytes.begin(), std::min<size_t>(bytes.size(), 200), 0xa5);
    for (uint32_t n = random() % 200; n > 0 && !bytes.empty(); n--)
      bytes[random() % bytes.size()] = uint8_t(random());
    os::write_file(database(cache), bytes);
    struct stat before{};
    const int held = ::open(database(cache).c_str(), O_RDONLY);  // or its inode is given out again
    ASSERT_EQ(::fstat(held, &before), 0);
    {
      DiskCache damaged(cache);
      left += found(damaged, all);
      damaged.put(all);
    }
    struct stat after{};
    ASSERT_EQ(::stat(database(cache).c_str(), &after), 0);
    ::close(held);
    rebuilt += after.st_ino != before.st_ino;
    if (!DiskCache(cache).usable()) continue;  // its version is a later one now
    size_t there = 0;
    for (int attempt = 0; attempt < 3 && there < all.size(); attempt++) {
      DiskCache again(cache);
      again.put(all);
      there = found(again, all);
    }
    // What a damaged tree hides, without an error, is compiled again, and is there to be found.
    EXPECT_TRUE(there == all.size() || !DiskCache(cache).damaged().empty()) << round << ": " << there;
  }
  EXPECT_GT(rebuilt, 20u);
  EXPECT_GT(left, 100u);
}

TEST(DiskCache, SearchesAreSavedFromADamagedFile) {
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  const auto all = rows(40);
  fill(cache, all);
  std::vector<uint8_t> bytes = os::read_file(database(cache));
  const auto place = std::filesystem::file_size(database(cache)) / 4096 / 2 * 4096;
  std::fill_n(bytes.begin() + long(place), 4096, uint8_t(0));  // a page in the middle
  os::write_file(database(cache), bytes);
  std::vector<CacheRow> searches;
  for (const CacheRow& row : all)
    if (row.kind == CacheKind::Tuning) searches.push_back(row);
  {
    DiskCache damaged(cache);
    found(damaged, all);
  }
  EXPECT_GT(kept(cache, searches), searches.size() / 2);
}

// What was not used for longest goes first, and every program before any search.
TEST(DiskCache, StaysWithinItsLimit) {
  TemporaryFolder folder;
  constexpr uint64_t kLimit = 400 << 10;
  const auto all = rows(200);
  std::vector<CacheRow> programs, searches;
  for (const CacheRow& row : all)
    if (row.kind != CacheKind::Link)
      (row.kind == CacheKind::Tuning ? searches : programs).push_back(row);
  DiskCache cache(folder / "cache", kLimit);
  for (size_t i = 0; i < all.size(); i += 3) {
    cache.put(std::span(all).subspan(i, 3));
    EXPECT_LE(cache.bytes(), kLimit);
  }
  EXPECT_EQ(found(cache, searches), searches.size());
  const size_t there = found(cache, programs);
  EXPECT_GT(there, 10u);
  EXPECT_LT(there, 100u);
  for (const CacheEntry& e : cache.entries())  // no link to what is gone
    EXPECT_TRUE(e.kind != CacheKind::Link || cache.get(text_of(*cache.get(e.key))));
  EXPECT_LE(std::filesystem::file_size(database(folder / "cache")), 2 * kLimit);
  EXPECT_GT(cache.shrink(100 << 10), 0u);
  EXPECT_LE(cache.bytes(), uint64_t(100 << 10));
  EXPECT_EQ(found(cache, searches), searches.size());
  EXPECT_EQ(cache.damaged(), std::vector<std::string>());
  EXPECT_GT(cache.remove_before(std::numeric_limits<int64_t>::max(), /*tuning_too=*/true), 0u);
  EXPECT_EQ(cache.entries().size(), 0u);
}

TEST(DiskCache, WhatIsUsedStays) {
  TemporaryFolder folder;
  const auto all = rows(60);
  fill(folder / "cache", all);
  sqlite3* db = nullptr;
  sqlite3_open(database(folder / "cache").c_str(), &db);
  sqlite3_exec(db, "UPDATE entries SET used = used - 1000000", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  std::vector<CacheRow> used;
  for (int i : {3, 17, 40}) used.push_back(all[size_t(i) * 3]);
  EXPECT_EQ(kept(folder / "cache", used), used.size());
  DiskCache cache(folder / "cache");
  cache.shrink(100 << 10);
  EXPECT_LT(cache.entries().size(), 120u);
  EXPECT_EQ(found(cache, used), used.size());
}

// A file that is cut in two is made anew by one of many processes, under the others' feet: often,
// since what they may meet there is a moment.
TEST(DiskCache, ManyProcessesAtOnce) {
  TemporaryFolder folder;
  const std::string cache = folder / "cache";
  const auto all = rows(30);
  for (int round = 0; round < 12; round++) {
    if (round >= 2) std::filesystem::resize_file(database(cache), 5000);
    std::vector<pid_t> children;
    for (int i = 0; i < 6; i++) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      DiskCache mine(cache);
      bool ok = mine.usable();
      for (int k = 0; k < 30; k++) {
        mine.put(std::span(all).subspan(size_t(k * 3), 3));
        ok = ok && mine.get(all[size_t(k * 3)].key) == all[size_t(k * 3)].bytes;
      }
      ::_exit(ok ? 0 : 1);
    }
    for (const pid_t child : children) {
      int status = 1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(kept(cache, all), all.size());
  }
}

}  // namespace
}  // namespace tuff::engine

#include "engine/store/database.h"

#include <cctype>
#include <cstdio>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "engine/store/rows.h"

namespace tuff::engine {
namespace {

constexpr int kVersion = 2;  // 0: without `entries`, which is added
constexpr int kBusyMs = 5000;
constexpr uint64_t kLockTimeoutNs = 5'000'000'000;
constexpr const char* kCacheFile = "tuff-cache-v1.db";
constexpr const char* kSuffixes[] = {"", "-wal", "-shm", "-journal"};

constexpr const char* kMake =
    "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS binaries(key TEXT PRIMARY KEY, bytes BLOB NOT NULL, check_sum "
    "INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS entries(key TEXT PRIMARY KEY, kind INTEGER NOT NULL, size INTEGER "
    "NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;";

// How an attempt to open the file ended.
enum class Found : uint8_t { Sound, Missing, Old, Newer, Damaged, Trouble };
struct Attempt {
  Found found = Found::Trouble;
  Db db;
  int result = SQLITE_OK;  // of Trouble
  std::string message;
};

Attempt failed(Db db, int result) {
  Attempt out;
  out.found = says_damaged(result) ? Found::Damaged : Found::Trouble;
  out.result = result;
  out.message = db ? sqlite3_errmsg(db.get()) : sqlite3_errstr(result);
  return out;
}

// `as_it_is`: no locks and no files beside it are needed, and changes by others are not seen.
Attempt connect(const std::string& path, bool as_it_is) {
  std::string uri = "file:";
  for (const char c : path) {  // RFC 3986
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '-';
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (as_it_is) uri += "?immutable=1";
  const int access = as_it_is ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  sqlite3* raw = nullptr;
  const int result = sqlite3_open_v2(uri.c_str(), &raw,
                                     access | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX, nullptr);
  Db db(raw);
  if (result != SQLITE_OK) return failed(std::move(db), result);
  sqlite3_busy_timeout(db.get(), kBusyMs);
  for (const char* sql : {"PRAGMA trusted_schema=OFF", "PRAGMA synchronous=NORMAL"})
    if (!execute(db.get(), sql)) return failed(std::move(db), sqlite3_errcode(raw));
  return {.found = Found::Sound, .db = std::move(db)};
}

// The version, and whether the tables are those of it.
Found what_is_in(sqlite3* db, int& result) {
  int version = -1;
  {
    const Statement s = prepare(db, "PRAGMA user_version");
    result = s ? sqlite3_step(s.get()) : sqlite3_errcode(db);
    if (result != SQLITE_ROW) return says_damaged(result) ? Found::Damaged : Found::Trouble;
    version = sqlite3_column_int(s.get(), 0);
  }
  if (version > kVersion) return Found::Newer;
  if (version < kVersion) return Found::Old;
  for (const char* sql : {"SELECT key, bytes, check_sum FROM binaries LIMIT 1",
                          "SELECT key, kind, size, used FROM entries LIMIT 1"}) {
    const Statement s = prepare(db, sql);
    result = s ? sqlite3_step(s.get()) : sqlite3_errcode(db);
    if (says_damaged(result) || result == SQLITE_ERROR) return Found::Damaged;  // other tables
    if (result != SQLITE_ROW && result != SQLITE_DONE) return Found::Trouble;
  }
  return Found::Sound;
}

Attempt attempt(const std::string& path, bool as_it_is = false) {
  if (!os::exists(path)) return {.found = Found::Missing};
  Attempt out = connect(path, as_it_is);
  if (!out.db) return out;
  int result = SQLITE_OK;
  const Found found = what_is_in(out.db.get(), result);
  if (found == Found::Damaged || found == Found::Trouble) out = failed(std::move(out.db), result);
  out.found = found;
  return out;
}

// Searches that cost minutes each, as far as a damaged file still shows them: their checksums say
// that they are what was written.
std::vector<CacheRow> readable_tuning(const std::string& path) {
  std::vector<CacheRow> out;
  const Attempt open = connect(path, /*as_it_is=*/false);
  if (!open.db) return out;
  std::set<std::string> seen;
  for (const char* from_either_end : {"SELECT key, bytes, check_sum FROM binaries ORDER BY key",
                                      "SELECT key, bytes, check_sum FROM binaries ORDER BY key "
                                      "DESC"}) {
    const Statement s = prepare(open.db.get(), from_either_end);
    CacheRow row;
    while (s && sqlite3_step(s.get()) == SQLITE_ROW)
      if (read_row(s.get(), row) && row.kind == CacheKind::Tuning && row.key.size() == kKeySize &&
          seen.insert(row.key).second)
        out.push_back(row);
  }
  return out;
}

// An empty file or one of an earlier version gets the tables of this one.
Attempt brought_up(Db db) {
  const std::string version = fmt::format("PRAGMA user_version={}; COMMIT", kVersion);
  if (!execute(db.get(), kMake) || !classify_rows(db.get()) ||
      !execute(db.get(), version.c_str())) {
    const int result = sqlite3_errcode(db.get());
    return failed(std::move(db), result);
  }
  return {.found = Found::Sound, .db = std::move(db)};
}

Attempt made(const std::string& path, std::span<const CacheRow> rows) {
  os::make_private_file(path);
  Attempt out = connect(path, /*as_it_is=*/false);
  if (!out.db) return out;
  out = brought_up(std::move(out.db));
  if (out.db && !rows.empty()) insert_rows(out.db.get(), rows);
  return out;
}

// Under the lock of the file. `suspected`: damage was met inside, and another process may have made
// it anew since.
Attempt made_or_rebuilt(const std::string& path, bool suspected) {
  Attempt now = attempt(path);
  if (now.found == Found::Old) now = brought_up(std::move(now.db));
  if (now.found == Found::Sound && suspected && !passes_check(now.db.get()))
    now = {.found = Found::Damaged, .message = "its check fails"};
  if (now.found == Found::Missing) return made(path, {});
  if (now.found != Found::Damaged) return now;
  now.db.reset();
  const std::vector<CacheRow> kept = readable_tuning(path);
  log_warn("the disk cache '{}' is damaged ({}) and is made anew; {} results of searches are kept",
           path, now.message, kept.size());
  for (const char* suffix : kSuffixes) std::remove((path + suffix).c_str());
  return made(path, kept);
}

// SQLite opens a database and, by their names, the files beside it one after the other: where another
// process makes them anew in between, old ones meet new ones. So none does while a file is opened.
// In a folder in which there can be no lock nothing is made anew.
Attempt under_lock(const std::string& path, bool suspected) {
  try {
    const auto lock = os::FileLock::acquire(path + ".lock", kLockTimeoutNs);
    if (lock) return made_or_rebuilt(path, suspected);
  } catch (const IoError& e) {
    Attempt as_it_is = attempt(path);
    if (as_it_is.found == Found::Sound || as_it_is.found == Found::Newer) return as_it_is;
    as_it_is.found = Found::Trouble;
    as_it_is.result = SQLITE_CANTOPEN;
    as_it_is.message = e.what();
    as_it_is.db.reset();
    return as_it_is;
  }
  return {.result = SQLITE_BUSY, .message = "another process has been opening it for too long"};
}

std::string remedy(int result) {
  switch (result & 0xff) {
    case SQLITE_FULL: return "free space on its file system";
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "another process holds it; try again when that has ended";
    default: return "set TUFF_CACHE_DIR to a folder that can be written";
  }
}

OpenedCache opened(Attempt&& a, const std::string& path, bool read_only) {
  if (a.found == Found::Newer)
    return {.problem = fmt::format("'{}' is of a later version of tuff: remove it, or set "
                                   "TUFF_CACHE_DIR to another folder",
                                   path)};
  if (!a.db) return {.problem = fmt::format("'{}': {}: {}", path, a.message, remedy(a.result))};
  return {.db = std::move(a.db), .read_only = read_only};
}

bool is_busy(int result) {
  return (result & 0xff) == SQLITE_BUSY || (result & 0xff) == SQLITE_LOCKED;
}

// The last resort: what is in the file as it stands, which needs no memory shared with others, no
// journal and no right to write. Rows that another process writes meanwhile fail their checksums.
OpenedCache read_only_cache(Attempt&& before, const std::string& path) {
  if (is_busy(before.result)) return opened(std::move(before), path, false);
  Attempt a = attempt(path, /*as_it_is=*/true);
  if (a.found != Found::Sound && a.found != Found::Old)
    return opened(std::move(before), path, false);
  OpenedCache out = opened(std::move(a), path, true);
  // Missing rights may be intended; a full or failing disk is not.
  const int result = before.result & 0xff;
  if (result == SQLITE_FULL || result == SQLITE_IOERR)
    out.problem = fmt::format("'{}': {}", path, before.message);
  return out;
}

std::string why_untrusted(const std::string& path) {
  for (const char* suffix : kSuffixes)
    if (std::string why = os::trusted_path(path + suffix).refusal; !why.empty()) return why;
  return {};
}

}  // namespace

Statement prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(db, sql, -1, &raw, nullptr);
  return Statement(raw);
}

bool execute(sqlite3* db, const char* sql) {
  return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

bool says_damaged(int result) {
  return (result & 0xff) == SQLITE_CORRUPT || (result & 0xff) == SQLITE_NOTADB;
}

bool passes_check(sqlite3* db) {
  const Statement s = prepare(db, "PRAGMA quick_check(1)");
  if (!s || sqlite3_step(s.get()) != SQLITE_ROW) return false;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(s.get(), 0));
  return text && std::string_view(text) == "ok";
}

OpenedCache open_cache(const std::string& folder, bool suspected) {
  const os::TrustedPath trusted = os::trusted_path(folder, /*make_folders=*/true);
  if (!trusted.refusal.empty()) return {.problem = trusted.refusal};
  std::string path = trusted.path + "/" + kCacheFile;
  if (std::string why = why_untrusted(path); !why.empty()) return {.problem = why};
  path = os::trusted_path(path).path;
  Attempt a = under_lock(path, suspected);
  if (a.found != Found::Sound) return read_only_cache(std::move(a), path);
  const bool read_only = sqlite3_db_readonly(a.db.get(), "main") != 0;
  return opened(std::move(a), path, read_only);
}

}  // namespace tuff::engine

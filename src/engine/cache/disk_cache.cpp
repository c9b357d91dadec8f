#include "engine/cache/disk_cache.h"

#include <sqlite3.h>
#include <xxhash.h>

#include <cstdio>
#include <mutex>

#include <fmt/format.h>

#include <tuff/error.h>
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

namespace tuff::engine {
namespace {

constexpr const char* kSchema =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE IF NOT EXISTS binaries(key TEXT PRIMARY KEY, bytes BLOB NOT NULL, check_sum "
    "INTEGER NOT NULL) WITHOUT ROWID;";

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Db = std::unique_ptr<sqlite3, CloseDb>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Db open_db(const std::string& path) {
  sqlite3* raw = nullptr;
  const int rc =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  Db db(raw);
  if (rc != SQLITE_OK) return nullptr;
  sqlite3_busy_timeout(db.get(), 5000);
  if (sqlite3_exec(db.get(), kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) return nullptr;
  return db;
}

// A file that is no sound database is set aside by deleting it: everything in it can be made again.
Db open_or_rebuild(const std::string& path) {
  if (Db db = open_db(path)) return db;
  for (const char* suffix : {"", "-wal", "-shm"}) std::remove((path + suffix).c_str());
  return open_db(path);
}

Statement prepare(sqlite3* db, const char* sql) {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(db, sql, -1, &raw, nullptr);
  return Statement(raw);
}

int64_t check_sum(const void* data, size_t size) { return int64_t(XXH3_64bits(data, size)); }

}  // namespace

struct DiskCache::State {
  std::string path;
  Db db;
  std::mutex mutex;

  void rebuild() {
    db.reset();
    for (const char* suffix : {"", "-wal", "-shm"}) std::remove((path + suffix).c_str());
    db = open_db(path);
    if (!db) log_warn("cache {} is damaged and cannot be rebuilt; going on without it", path);
  }
};

DiskCache::DiskCache(const std::string& folder) : state_(std::make_unique<State>()) {
  if (folder.empty()) return;
  state_->path = folder + "/tuff-cache-v1.db";
  try {
    os::make_directories(folder);
    state_->db = open_or_rebuild(state_->path);
  } catch (const IoError& e) {
    log_warn("no disk cache: {}", e.what());
    return;
  }
  if (!state_->db)
    log_warn("no disk cache: cannot open {} (set TUFF_CACHE_DIR to a writable folder)",
             state_->path);
}
DiskCache::~DiskCache() = default;

DiskCache& DiskCache::instance() {
  static DiskCache cache(env_flag(Env::TUFF_CACHE) ? os::cache_directory() : std::string());
  return cache;
}

bool DiskCache::usable() const { return state_->db != nullptr; }

std::optional<Blob> DiskCache::get(const std::string& key) {
  std::lock_guard lock(state_->mutex);
  if (!state_->db) return std::nullopt;
  std::optional<Blob> out;
  bool damaged = false;
  {
    Statement s = prepare(state_->db.get(), "SELECT bytes, check_sum FROM binaries WHERE key = ?");
    if (!s) return std::nullopt;
    sqlite3_bind_text(s.get(), 1, key.data(), int(key.size()), SQLITE_STATIC);
    const int rc = sqlite3_step(s.get());
    damaged = rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB;
    if (rc == SQLITE_ROW) {
      const auto* data = static_cast<const uint8_t*>(sqlite3_column_blob(s.get(), 0));
      const size_t size = size_t(sqlite3_column_bytes(s.get(), 0));
      if (check_sum(data, size) == sqlite3_column_int64(s.get(), 1)) out = Blob(data, data + size);
    }
  }
  if (damaged) state_->rebuild();
  return out;
}

void DiskCache::put(std::span<const std::pair<std::string, Blob>> rows) {
  std::lock_guard lock(state_->mutex);
  if (!state_->db || rows.empty()) return;
  sqlite3* db = state_->db.get();
  if (sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) return;
  bool ok = true;
  {
    Statement s = prepare(db, "INSERT OR REPLACE INTO binaries VALUES(?, ?, ?)");
    for (const auto& [key, bytes] : rows) {
      if (!s) break;
      sqlite3_bind_text(s.get(), 1, key.data(), int(key.size()), SQLITE_STATIC);
      sqlite3_bind_blob(s.get(), 2, bytes.data(), int(bytes.size()), SQLITE_STATIC);
      sqlite3_bind_int64(s.get(), 3, check_sum(bytes.data(), bytes.size()));
      ok = sqlite3_step(s.get()) == SQLITE_DONE && ok;
      sqlite3_reset(s.get());
    }
    ok = ok && s;
  }
  sqlite3_exec(db, ok ? "COMMIT" : "ROLLBACK", nullptr, nullptr, nullptr);
  if (!ok) log_warn("cache {}: {}; the entry was not kept", state_->path, sqlite3_errmsg(db));
}

std::string content_key(std::span<const std::string> parts) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const std::string& p : parts) {
    const uint64_t size = p.size();
    XXH3_128bits_update(state, &size, sizeof size);
    XXH3_128bits_update(state, p.data(), p.size());
  }
  const XXH128_hash_t h = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

}  // namespace tuff::engine

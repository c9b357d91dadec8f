#include "engine/store/disk_cache.h"

#include <xxhash.h>

#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "base/os_cache.h"
#include "engine/store/database.h"
#include "engine/store/rows.h"

namespace tuff::engine {
namespace {

constexpr int kPatienceMs = 100;  // for a lock, once one was waited for in vain

}  // namespace

struct DiskCache::State {
  State(const std::string& folder, uint64_t limit) : folder(folder), limit(limit) { open(); }

  void open(bool suspected = false) {
    OpenedCache opened = open_cache(folder, suspected);
    if (!opened.db)
      os::warn_no_cache(folder, opened.problem);
    else if (!opened.problem.empty())
      log_warn("the disk cache can be read and not written: {}", opened.problem);
    db = std::move(opened.db);
    read_only = opened.read_only;
  }
  void rebuild() {
    const std::string what = sqlite3_errmsg(db.get());
    db.reset();
    if (read_only || rebuilt)
      log_warn("the disk cache in '{}' is damaged ({}); going on without it", folder, what);
    else
      open(/*suspected=*/true);
    rebuilt = true;
  }
  // A database that cannot be read costs a compile, and to ask it again at each kernel more.
  void give_up(int result) {
    log_warn("the disk cache in '{}' cannot be read: {}; going on without it", folder,
             sqlite3_errstr(result));
    db.reset();
  }
  // What was not kept and would take minutes to find again is kept with what comes next.
  void put_off(std::span<const CacheRow> rows) {
    std::vector<CacheRow> kept;
    for (const CacheRow& row : rows)
      if (row.kind == CacheKind::Tuning) kept.push_back(row);
    waiting = std::move(kept);
  }
  void not_kept() {
    if (!warned)
      log_warn("the disk cache in '{}' cannot be written: {}; what is compiled is not kept", folder,
               sqlite3_errmsg(db.get()));
    warned = true;
    sqlite3_busy_timeout(db.get(), kPatienceMs);
  }

  void note_what_was_used() {
    touch_rows(db.get(), std::vector<std::string>(used.begin(), used.end()));
    used.clear();
  }
  // A tenth below, so that not every entry has to make room for itself.
  void keep_within_limit() {
    if (used_bytes(db.get()) <= limit) return;
    note_what_was_used();
    evict_rows(db.get(), limit - limit / 10);
  }
  size_t checked(std::optional<size_t> rows) {
    if (rows) return *rows;
    fail<IoError>("the disk cache in '{}' cannot be changed: {}", folder, sqlite3_errmsg(db.get()));
  }

  void put(std::vector<CacheRow> rows) {
    if (insert_rows(db.get(), rows)) {
      waiting.clear();
      keep_within_limit();
      return;
    }
    const int result = sqlite3_errcode(db.get());
    put_off(rows);
    if (says_damaged(result)) {
      rebuild();
      if (db && !read_only && insert_rows(db.get(), rows)) waiting.clear();
      return;
    }
    not_kept();
    if (!sqlite3_get_autocommit(db.get())) execute(db.get(), "ROLLBACK");
  }

  std::string folder;
  uint64_t limit;
  Db db;
  bool read_only = false, rebuilt = false, warned = false;
  std::vector<CacheRow> waiting;
  std::set<std::string> used;
  std::mutex mutex;
};

DiskCache::DiskCache(const std::string& folder, uint64_t limit_bytes) {
  if (!folder.empty()) state_ = std::make_unique<State>(folder, limit_bytes);
}

DiskCache::~DiskCache() {
  if (!usable() || read_only()) return;
  std::lock_guard lock(state_->mutex);
  sqlite3* db = state_->db.get();
  sqlite3_busy_timeout(db, kPatienceMs);
  if (!state_->waiting.empty()) insert_rows(db, state_->waiting);
  state_->note_what_was_used();
}

DiskCache& DiskCache::instance() {
  static DiskCache cache(env_flag(Env::TUFF_CACHE) ? os::cache_directory() : std::string(),
                         os::cache_limit_bytes());
  return cache;
}

bool DiskCache::usable() const { return state_ && state_->db != nullptr; }
bool DiskCache::read_only() const { return state_ && state_->read_only; }

std::optional<Blob> DiskCache::get(const std::string& key) {
  if (!state_) return std::nullopt;
  std::lock_guard lock(state_->mutex);
  if (!state_->db) return std::nullopt;
  CacheRow row;
  bool found = false;
  int result = SQLITE_OK;
  {
    const Statement s = prepare(state_->db.get(),
                                "SELECT key, bytes, check_sum FROM binaries WHERE key = ?");
    if (s) {
      sqlite3_bind_text(s.get(), 1, key.data(), int(key.size()), SQLITE_STATIC);
      result = sqlite3_step(s.get());
      found = result == SQLITE_ROW && read_row(s.get(), row);
      // A damaged tree leads to another row, which is as it was written.
      if (found && row.key != key) found = false, result = SQLITE_CORRUPT;
    } else {
      result = sqlite3_errcode(state_->db.get());
    }
  }
  if (found) {
    if (!state_->read_only) state_->used.insert(key);
    return std::move(row.bytes);
  }
  // A row whose checksum is wrong is of no use to anybody.
  if (result == SQLITE_ROW && !state_->read_only) remove_keys(state_->db.get(), {&key, 1});
  if (says_damaged(result))
    state_->rebuild();
  else if (result != SQLITE_ROW && result != SQLITE_DONE)
    state_->give_up(result);
  return std::nullopt;
}

void DiskCache::put(std::span<const CacheRow> rows) {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  if (!state_->db || state_->read_only || rows.empty()) return;
  std::vector<CacheRow> all = state_->waiting;
  all.insert(all.end(), rows.begin(), rows.end());
  state_->put(std::move(all));
}

uint64_t DiskCache::bytes() const { return usable() ? used_bytes(state_->db.get()) : 0; }

std::vector<CacheEntry> DiskCache::entries() const {
  if (!usable()) return {};
  std::lock_guard lock(state_->mutex);
  return entry_rows(state_->db.get());
}

size_t DiskCache::shrink(uint64_t limit_bytes) {
  std::lock_guard lock(state_->mutex);
  return state_->checked(evict_rows(state_->db.get(), limit_bytes));
}

size_t DiskCache::remove_before(int64_t seconds, bool tuning_too) {
  std::lock_guard lock(state_->mutex);
  return state_->checked(remove_rows(state_->db.get(), seconds, tuning_too));
}

std::vector<std::string> DiskCache::damaged() const {
  if (!usable()) return {};
  std::lock_guard lock(state_->mutex);
  std::vector<std::string> out = wrong_rows(state_->db.get());
  if (!passes_check(state_->db.get())) out.push_back("(pages of the database)");
  return out;
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

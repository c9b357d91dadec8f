#include "engine/store/rows.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string_view>

namespace tuff::engine {
namespace {

constexpr size_t kLongestTuning = 4096;

int64_t check_sum(std::span<const uint8_t> bytes) {
  return int64_t(XXH3_64bits(bytes.data(), bytes.size()));
}

std::span<const uint8_t> blob_at(sqlite3_stmt* s, int column) {
  const auto* data = static_cast<const uint8_t*>(sqlite3_column_blob(s, column));
  return {data, size_t(sqlite3_column_bytes(s, column))};
}

std::string text_at(sqlite3_stmt* s, int column) {
  const std::span<const uint8_t> text = blob_at(s, column);
  return {text.begin(), text.end()};
}

// A guess by size and contents: schedules are short lines, programs are machine code or sources.
CacheKind kind_of(size_t size, std::span<const uint8_t> head) {
  if (size == kKeySize && std::ranges::all_of(head, [](int c) { return std::isxdigit(c); }))
    return CacheKind::Link;
  const bool line = std::ranges::all_of(head, [](int c) { return std::isprint(c); });
  return line && size <= kLongestTuning ? CacheKind::Tuning : CacheKind::Program;
}

void bind_key(sqlite3_stmt* s, std::string_view key) {
  sqlite3_bind_text(s, 1, key.data(), int(key.size()), SQLITE_STATIC);
}

bool run(sqlite3_stmt* s) {
  const bool done = sqlite3_step(s) == SQLITE_DONE;
  return sqlite3_reset(s) == SQLITE_OK && done;
}

bool insert_entry(sqlite3_stmt* s, const std::string& key, CacheKind kind, size_t size) {
  bind_key(s, key);
  sqlite3_bind_int(s, 2, int(kind));
  sqlite3_bind_int64(s, 3, int64_t(size));
  sqlite3_bind_int64(s, 4, seconds_now());
  return run(s);
}

bool insert_binary(sqlite3_stmt* s, const CacheRow& row) {
  bind_key(s, row.key);
  // data() of an empty vector may be null, which would bind NULL.
  const void* data = row.bytes.empty() ? static_cast<const void*>("") : row.bytes.data();
  sqlite3_bind_blob(s, 2, data, int(row.bytes.size()), SQLITE_STATIC);
  sqlite3_bind_int64(s, 3, check_sum(row.bytes));
  return run(s);
}

constexpr const char* kInsertEntry = "INSERT OR REPLACE INTO entries VALUES(?, ?, ?, ?)";

int64_t number_of(sqlite3* db, const char* sql) {
  const Statement s = prepare(db, sql);
  return s && sqlite3_step(s.get()) == SQLITE_ROW ? sqlite3_column_int64(s.get(), 0) : 0;
}

// A link whose program is gone is of no use, and what is no longer kept needs no entry.
constexpr const char* kRemoveLoose =
    "DELETE FROM binaries WHERE key IN (SELECT key FROM entries WHERE kind = 1) AND "
    "CAST(bytes AS TEXT) NOT IN (SELECT key FROM binaries);"
    "DELETE FROM entries WHERE key NOT IN (SELECT key FROM binaries);"
    "COMMIT; PRAGMA incremental_vacuum;";

std::vector<CacheEntry> entries_of(sqlite3* db, const char* sql) {
  std::vector<CacheEntry> out;
  const Statement s = prepare(db, sql);
  while (s && sqlite3_step(s.get()) == SQLITE_ROW)
    out.push_back({text_at(s.get(), 0), CacheKind(sqlite3_column_int(s.get(), 1)),
                   uint64_t(sqlite3_column_int64(s.get(), 2)), sqlite3_column_int64(s.get(), 3)});
  return out;
}

constexpr uint64_t kRowCost = 160;  // of keys, checksum and entry, about

}  // namespace

uint64_t used_bytes(sqlite3* db) {
  const int64_t pages =
      number_of(db, "PRAGMA page_count") - number_of(db, "PRAGMA freelist_count");
  return uint64_t(std::max<int64_t>(pages, 0) * number_of(db, "PRAGMA page_size"));
}

std::vector<CacheEntry> entry_rows(sqlite3* db) {
  return entries_of(db, "SELECT key, kind, size, used FROM entries ORDER BY kind = 2, used, key");
}

std::optional<size_t> remove_keys(sqlite3* db, std::span<const std::string> keys) {
  if (!execute(db, "BEGIN IMMEDIATE")) return {};
  bool ok = true;
  {
    const Statement s = prepare(db, "DELETE FROM binaries WHERE key = ?");
    for (const std::string& key : keys) {
      if (!s) break;
      bind_key(s.get(), key);
      ok = run(s.get()) && ok;
    }
    ok = ok && s;
  }
  if (ok && execute(db, kRemoveLoose)) return keys.size();
  if (!sqlite3_get_autocommit(db)) execute(db, "ROLLBACK");
  return {};
}

std::optional<size_t> evict_rows(sqlite3* db, uint64_t limit_bytes) {
  constexpr int kRounds = 4;  // what rows take on pages is an estimate
  size_t removed = 0;
  for (int round = 0; round < kRounds && used_bytes(db) > limit_bytes; round++) {
    if (!classify_rows(db)) return {};
    const std::vector<CacheEntry> entries = entry_rows(db);
    uint64_t rows = 0, freed = 0;
    for (const CacheEntry& e : entries) rows += e.size + kRowCost;
    // `rows` take whole pages: what is removed makes room in proportion.
    const double excess = 1.0 - double(limit_bytes) / double(used_bytes(db));
    std::vector<std::string> keys;
    for (const CacheEntry& e : entries) {
      if (double(freed) >= excess * double(rows)) break;
      freed += e.size + kRowCost;
      keys.push_back(e.key);
    }
    if (keys.empty()) break;
    const std::optional<size_t> done = remove_keys(db, keys);
    if (!done) return {};
    removed += *done;
  }
  return removed;
}

std::optional<size_t> remove_rows(sqlite3* db, int64_t before, bool tuning_too) {
  if (!classify_rows(db)) return {};
  std::vector<std::string> keys;
  for (const CacheEntry& e : entry_rows(db))
    if (e.used < before && (tuning_too || e.kind != CacheKind::Tuning)) keys.push_back(e.key);
  return remove_keys(db, keys);
}

std::vector<std::string> wrong_rows(sqlite3* db) {
  std::vector<std::string> out;
  const Statement s = prepare(db, "SELECT key, bytes, check_sum FROM binaries");
  CacheRow row;
  while (s && sqlite3_step(s.get()) == SQLITE_ROW)
    if (!read_row(s.get(), row)) out.push_back(text_at(s.get(), 0));
  return out;
}

int64_t seconds_now() {
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

bool read_row(sqlite3_stmt* s, CacheRow& out) {
  const std::span<const uint8_t> bytes = blob_at(s, 1);
  if (check_sum(bytes) != sqlite3_column_int64(s, 2)) return false;
  out = {text_at(s, 0), {bytes.begin(), bytes.end()}, kind_of(bytes.size(), bytes)};
  return true;
}

bool insert_rows(sqlite3* db, std::span<const CacheRow> rows) {
  if (!execute(db, "BEGIN IMMEDIATE")) return false;
  bool ok = true;
  {
    const Statement binary = prepare(db, "INSERT OR REPLACE INTO binaries VALUES(?, ?, ?)");
    const Statement entry = prepare(db, kInsertEntry);
    ok = binary && entry;
    for (const CacheRow& row : rows)
      ok = ok && insert_binary(binary.get(), row) &&
           insert_entry(entry.get(), row.key, row.kind, row.bytes.size());
  }
  return ok && execute(db, "COMMIT");
}

bool classify_rows(sqlite3* db) {
  const Statement rows = prepare(
      db, "SELECT key, substr(bytes, 1, 4096), length(bytes) FROM binaries "
          "WHERE key NOT IN (SELECT key FROM entries)");
  const Statement entry = prepare(db, kInsertEntry);
  if (!rows || !entry) return false;
  int result = SQLITE_DONE;
  while ((result = sqlite3_step(rows.get())) == SQLITE_ROW) {
    const auto size = size_t(sqlite3_column_int64(rows.get(), 2));
    const CacheKind kind = kind_of(size, blob_at(rows.get(), 1));
    if (!insert_entry(entry.get(), text_at(rows.get(), 0), kind, size)) return false;
  }
  return result == SQLITE_DONE;
}

bool touch_rows(sqlite3* db, std::span<const std::string> keys) {
  const int64_t now = seconds_now();
  std::vector<std::string_view> stale;
  {
    const Statement s = prepare(db, "SELECT used FROM entries WHERE key = ?");
    for (const std::string& key : keys) {
      if (!s) return false;
      bind_key(s.get(), key);
      if (sqlite3_step(s.get()) == SQLITE_ROW && sqlite3_column_int64(s.get(), 0) < now - kDay)
        stale.push_back(key);
      sqlite3_reset(s.get());
    }
  }
  if (stale.empty()) return true;
  if (!execute(db, "BEGIN IMMEDIATE")) return false;
  {
    const Statement s = prepare(db, "UPDATE entries SET used = ?2 WHERE key = ?1");
    for (const std::string_view key : stale) {
      if (!s) break;
      bind_key(s.get(), key);
      sqlite3_bind_int64(s.get(), 2, now);
      run(s.get());
    }
  }
  return execute(db, "COMMIT");
}

}  // namespace tuff::engine

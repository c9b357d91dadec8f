// Rows of DiskCache's database. `binaries` has what is kept, with its checksum; `entries` says of
// each key what it is, how large, and on which day it was last used. Earlier versions of tuff know
// `binaries` alone, and may write to the same file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/store/database.h"
#include "engine/store/disk_cache.h"

namespace tuff::engine {

inline constexpr size_t kKeySize = 32;  // of content_key
inline constexpr int64_t kDay = 24 * 60 * 60;

int64_t seconds_now();  // since 1970
// A row of "SELECT key, bytes, check_sum"; false if the bytes are not what was written. The kind
// is guessed.
bool read_row(sqlite3_stmt* s, CacheRow& out);
// All or nothing; the error is the database's.
bool insert_rows(sqlite3* db, std::span<const CacheRow> rows);
// Gives those of `binaries` that have none their rows of `entries`.
bool classify_rows(sqlite3* db);
uint64_t used_bytes(sqlite3* db);  // of the file
// Removes the programs unused for longest, if that is not enough then what searches found, until no
// more than `limit_bytes` are used. Returns the number of rows, or nothing on an error.
std::optional<size_t> evict_rows(sqlite3* db, uint64_t limit_bytes);
// And links to them. The number of `keys`, or nothing on an error.
std::optional<size_t> remove_keys(sqlite3* db, std::span<const std::string> keys);
// Those last used before then.
std::optional<size_t> remove_rows(sqlite3* db, int64_t before, bool tuning_too);
std::vector<CacheEntry> entry_rows(sqlite3* db);
// Keys whose bytes are not those that were written.
std::vector<std::string> wrong_rows(sqlite3* db);
// The day's date for those of the keys that have an older one.
bool touch_rows(sqlite3* db, std::span<const std::string> keys);

}  // namespace tuff::engine

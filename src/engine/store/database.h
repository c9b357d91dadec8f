// The SQLite file of DiskCache: opened, made, brought to this version; rebuilt where its contents
// are damaged and for no other reason, since it may hold hours of tuning. Called by DiskCache
// alone.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

namespace tuff::engine {

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Db = std::unique_ptr<sqlite3, CloseDb>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// Null on an error, which `db` then has.
Statement prepare(sqlite3* db, const char* sql);
bool execute(sqlite3* db, const char* sql);
// The contents are at fault: no full disk, lock, missing permission or bad sector.
bool says_damaged(int result);

bool passes_check(sqlite3* db);  // every page of it

struct OpenedCache {
  Db db;                   // null: `problem` says why
  bool read_only = false;  // nothing can be kept in it; another process may still write to it
  std::string problem;     // with path and remedy; also of a disk that let it be read only
};
// Opens `folder`/tuff-cache-v1.db, or makes it (0600, the folder 0700). Processes that find it
// damaged rebuild it one after the other, with the tuning that can still be read. One that cannot
// be written is read. `suspected`: damage was met inside, all of it is checked.
OpenedCache open_cache(const std::string& folder, bool suspected = false);

}  // namespace tuff::engine

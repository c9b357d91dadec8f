// DiskCache: compiled binaries and found schedules by key in one SQLite file of the user's cache
// folder. Several processes may use it at once. What others may have written is not read, what
// cannot be written is read; a damaged file is rebuilt, any other trouble is one warning and then
// no cache; never fatal. Called by ProgramCache and `tuff cache`. Knows nothing of kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tuff::engine {

using Blob = std::vector<uint8_t>;

// A Program is what a compiler made, a Link a kernel's key for the program that has it, a Tuning
// what a search took minutes to find.
enum class CacheKind : uint8_t { Program, Link, Tuning };

struct CacheRow {
  std::string key;
  Blob bytes;
  CacheKind kind = CacheKind::Program;
};

struct CacheEntry {
  std::string key;
  CacheKind kind = CacheKind::Program;
  uint64_t size = 0;
  int64_t used = 0;  // seconds since 1970, to a day
};

class DiskCache {
 public:
  // Opens or makes `folder`/tuff-cache-v1.db, or warns why not; no folder, no cache.
  explicit DiskCache(const std::string& folder, uint64_t limit_bytes = ~uint64_t{0});
  ~DiskCache();                  // notes what was used
  static DiskCache& instance();  // of os::cache_directory(); does nothing if TUFF_CACHE=0
  std::optional<Blob> get(const std::string& key);
  void put(std::span<const CacheRow> rows);  // one transaction
  bool usable() const;
  bool read_only() const;

  // For `tuff cache`; IoError where the database refuses.
  uint64_t bytes() const;
  std::vector<CacheEntry> entries() const;  // in the order in which they would go
  size_t shrink(uint64_t limit_bytes);
  size_t remove_before(int64_t seconds, bool tuning_too);  // what was last used before then
  std::vector<std::string> damaged() const;                // keys; of a sound file there are none

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 128-bit xxHash of the parts, as hex: keys of this cache.
std::string content_key(std::span<const std::string> parts);

}  // namespace tuff::engine

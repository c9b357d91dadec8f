// DiskCache: compiled binaries by key in one SQLite file under the user's cache folder. Several
// processes may use it at once; a damaged file is rebuilt, an unwritable folder is one warning and
// then no cache; never fatal. Called by ProgramCache alone. Knows nothing of kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tuff::engine {

using Blob = std::vector<uint8_t>;

class DiskCache {
 public:
  // Opens or makes `folder`/tuff-cache-v1.db.
  explicit DiskCache(const std::string& folder);
  ~DiskCache();
  static DiskCache& instance();  // of os::cache_directory(); does nothing if TUFF_CACHE=0
  std::optional<Blob> get(const std::string& key);
  void put(std::span<const std::pair<std::string, Blob>> rows);  // one transaction
  bool usable() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 128-bit xxHash of the parts, as hex: keys of this cache.
std::string content_key(std::span<const std::string> parts);

}  // namespace tuff::engine

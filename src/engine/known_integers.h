// What the host knows of the integers in memory that it filled: enough to tell whether positions
// lie inside an axis without waiting for the device. Part of a Buffer, which forgets it with every
// other write. Called by buffer, capture and tensor. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <tuff/dtype.h>

namespace tuff::engine {

// The values next to the extremes are those that remain where one value does not count.
struct Extremes {
  int64_t least, second_least, second_greatest, greatest;
  bool attained = true;  // false: of more values than those meant

  bool inside(int64_t low, int64_t high, std::optional<int64_t> ignored) const;
};
// For at least one value; those of U64 beyond int64's count as its largest.
Extremes extremes_of(DType t, const void* values, int64_t count);

class KnownIntegers {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  void learn(const Extremes& extremes);
  // The memory was written.
  void forget() {
    if (version()) [[unlikely]]
      clear();
  }
  // It may be written at any time from now on: nothing is learnt any more.
  void close();
  std::optional<Extremes> extremes() const;
  // Names what is known, unique in the process; 0: nothing is.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // The contents, read by `read` at most once as long as nothing is forgotten; null where nothing
  // is known.
  Bytes contents(const std::function<std::vector<std::byte>()>& read);

 private:
  void clear();

  std::atomic<uint64_t> version_{0};
  mutable std::mutex mutex_;
  bool closed_ = false;
  Extremes extremes_{};
  Bytes bytes_;
};

}  // namespace tuff::engine

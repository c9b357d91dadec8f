// Footprint: what a replay reads, its code included. The work of the replay before has thrown it
// out of the caches; fetched line after line, as it is come by, it takes several times as long as
// the replay itself, so all of it is asked for at once where a replay begins. Filled by what takes
// part in a replay, each for its own memory, when a graph is made.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_set>
#include <vector>

// Stands before the functions that every replay runs: they lie side by side in one section, which
// Footprint::prefetch asks for as well.
#define TUFF_REPLAY_CODE [[gnu::section("tuff_replay_code")]]

namespace tuff::hcq {

class Footprint {
 public:
  void add(const void* at, size_t bytes);
  template <class T>
  void add(const std::vector<T>& elements) {
    add(elements.data(), elements.size() * sizeof(T));
  }
  // An object with its table of virtual functions.
  template <class T>
  void add_object(const T& object) {
    add(&object, sizeof(T));
    add_table(&object);
  }
  // Of an object whose class has virtual functions; for those that are added in parts.
  void add_table(const void* object);
  std::span<const std::byte* const> lines() const { return lines_; }
  // Waits for nothing. Lines that are no longer there do no harm.
  static void prefetch(std::span<const std::byte* const> lines);
  static void prefetch_code();

 private:
  std::vector<const std::byte*> lines_;  // of the cache, each once, in the order of add()
  std::unordered_set<const std::byte*> known_;
};

}  // namespace tuff::hcq

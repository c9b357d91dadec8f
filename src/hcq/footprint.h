// Footprint: what a replay reads, its code included. The work of the replay before has thrown it
// out of the caches; fetched line after line, as it is come by, it takes several times as long as
// the replay itself, so all of it is asked for at once where a replay begins. Filled by what takes
// part in a replay, each for its own memory, when a graph is made.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_set>
#include <vector>

// Stands before the functions that every replay runs: those of one room lie side by side in a
// section. hcq's is what every replay begins with (Footprint::prefetch_code); whoever takes part
// adds its own, so that a device's replays do not fetch another's code.
#define TUFF_REPLAY_CODE(room) [[gnu::section("tuff_replay_" #room)]]
// Outside of namespaces, in a file that adds the section with TUFF_REPLAY_SECTION(room). The linker
// names a section's ends so.
#define TUFF_DECLARE_REPLAY_SECTION(room)                  \
  extern "C" const std::byte __start_tuff_replay_##room[]; \
  extern "C" const std::byte __stop_tuff_replay_##room[]
#define TUFF_REPLAY_SECTION(room) \
  std::span<const std::byte>(__start_tuff_replay_##room, __stop_tuff_replay_##room)

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
  void add(std::span<const std::byte> code) { add(code.data(), code.size()); }
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

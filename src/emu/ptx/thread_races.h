// Races between the threads of one block, in its shared memory or in global memory: two of them
// touch a byte, one writing, and nothing orders the two. What orders them: a barrier of the block,
// bar.warp.sync, or an atomic that one publishes by and the other acquires by. Executing in step,
// as the lanes of a warp may, orders nothing (PTX ISA, 8 Memory Consistency Model; CUDA C++
// Programming Guide, Independent Thread Scheduling). Told of accesses by memory_access.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tuff::emu::ptx {

struct ThreadAccess {
  uint64_t address = 0;
  uint32_t bytes = 0;
  bool writes = false;
  bool strong = false;  // atomic, volatile, relaxed and on: not torn, and no race with its like
};

class ThreadRaces {
 public:
  explicit ThreadRaces(uint32_t threads) : clocks_(threads, 1), warps_((threads + 31) / 32) {}

  // That the access tells nothing new and races with nobody: most loads of what many read.
  bool is_quiet(const ThreadAccess& access) const {
    if (access.address / kPageBytes != last_number_ || access.bytes != 4 || access.address & 3 ||
        last_->by_bytes)
      return false;
    return is_known_load(last_->shadows[access.address % kPageBytes / 4], access);
  }
  // The thread that it races with, or nothing.
  std::optional<uint32_t> touch(uint32_t thread, const ThreadAccess& access);
  // A strong access at the address: what other threads have published there becomes known, where it
  // acquires; then what the thread knows is published, where it releases.
  void synchronize(uint32_t thread, uint64_t address, bool acquires, bool releases);
  void pass_barrier();  // all threads of the block
  void pass_warp_barrier(uint32_t warp, uint32_t lanes);

 private:
  static constexpr uint32_t kPageBytes = 1024;
  static constexpr uint16_t kMany = 0xFFFF;
  struct Shadow {
    uint32_t write_epoch = 0, read_epoch = 0;
    uint32_t write_clock = 0, read_clock = 0;
    uint16_t writer = 0, reader = 0;  // thread + 1
    bool strong_write = false, strong_read = false;
  };
  struct Page {
    std::vector<Shadow> shadows = std::vector<Shadow>(kPageBytes / 4);
    bool by_bytes = false;
  };
  using Clock = std::unordered_map<uint32_t, uint32_t>;
  struct WarpKnowledge {
    std::array<std::array<uint32_t, 32>, 32> known{};  // of each lane: the clocks of the others
    uint32_t epoch = 0;
  };

  Page& page_at(uint64_t address);
  bool knows(uint32_t me, uint32_t other, uint32_t clock) const;
  std::optional<uint32_t> race_of(const Shadow& seen, uint32_t thread,
                                  const ThreadAccess& access) const;
  void apply(Shadow& seen, uint32_t thread, const ThreadAccess& access) const;
  // A load of what nobody has written since the barrier, by one that others have read too.
  bool is_known_load(const Shadow& seen, const ThreadAccess& access) const {
    return !access.writes && !access.strong && seen.write_epoch != epoch_ && !seen.strong_read &&
           seen.read_epoch == epoch_ && seen.reader == kMany;
  }

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  Page* last_ = nullptr;
  uint64_t last_number_ = ~0ull;
  std::vector<uint32_t> clocks_;
  std::vector<std::unique_ptr<WarpKnowledge>> warps_;
  std::unordered_map<uint32_t, Clock> acquired_;   // by thread, since the barrier
  std::unordered_map<uint64_t, Clock> published_;  // by address
  uint32_t epoch_ = 1;
};

}  // namespace tuff::emu::ptx

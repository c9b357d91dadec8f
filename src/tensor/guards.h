// Who may look at the nodes of tensors, and who may replace them. Any number of threads build at
// the same time: from the moment that they load a tensor's node until what they made of it is
// registered, no thread replaces nodes, so nothing is built of a node that has been computed
// meanwhile: its assignments would be made twice, and memory be read that has been overwritten.
// Used by everything in tensor through detail::uop(). Knows nothing of nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tuff::detail {

// Short: nothing is realized in it, no device waited for. To enter again costs next to nothing.
class BuildGuard {
 public:
  BuildGuard() {
    if (depth_++ == 0 && (state_.fetch_add(1, std::memory_order_acquire) & kReplacing) != 0)
      enter_when_replaced();
  }
  ~BuildGuard() {
    if (--depth_ == 0) leave();
  }
  BuildGuard(const BuildGuard&) = delete;
  static bool here() { return depth_ > 0; }

 private:
  friend class ReplaceGuard;
  static constexpr uint32_t kReplacing = 1u << 31;
  static void leave() {
    if (state_.fetch_sub(1, std::memory_order_release) == (kReplacing | 1)) state_.notify_all();
  }
  static void enter_when_replaced();

  static inline constinit thread_local uint32_t depth_ = 0;
  // Threads that build, and whether one replaces or wants to.
  alignas(64) static inline constinit std::atomic<uint32_t> state_{0};
};

// One thread alone. It may build as well.
class ReplaceGuard {
 public:
  ReplaceGuard();
  ~ReplaceGuard();
  ReplaceGuard(const ReplaceGuard&) = delete;
};

// One thread at a time chooses what is to be computed, has it scheduled and submitted, and puts the
// memory in its place: what two threads want is computed once. Entered before ReplaceGuard, never
// by a thread that builds.
class RealizeGuard {
 public:
  RealizeGuard();
  ~RealizeGuard();
  RealizeGuard(const RealizeGuard&) = delete;
};

}  // namespace tuff::detail

// SignalEpoch: a 64-bit value that only rises in a word of which packets compare and write 32 bits.
// Used by AMD's signals and queues. The slot's upper half names a base, its lower half, which alone
// the GPU writes, counts from there: one load gives a consistent value, concurrent writes or not.
// Before a value would be kSpan or more above the base, the submitting thread has to let all that
// names the signal finish, rebase() and encode relative to the new base. Knows no packets.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace tuff::devices::amd {

class SignalEpoch {
 public:
  static constexpr uint64_t kSpan = 1ull << 31;  // of values that packets may name, above the base
  static constexpr uint64_t kStep = 1ull << 30;  // bases are multiples of it

  // `slot`: eight aligned bytes that the host and the GPUs of a group share.
  explicit SignalEpoch(uint64_t* slot, uint64_t value = 0) : slot_(slot) { store(value); }

  uint64_t value() const {
    const uint64_t both = std::atomic_ref(*slot_).load(std::memory_order_acquire);
    return (both >> 32) * kStep + (both & 0xffffffffu);
  }
  uint64_t base() const {
    return (std::atomic_ref(*slot_).load(std::memory_order_acquire) >> 32) * kStep;
  }
  bool must_rebase(uint64_t value) const { return value >= base() + kSpan; }
  // What a packet that waits for `value`, or writes it, has to hold. A value at or below the base
  // has been reached: its word is 0, which every word is at least.
  uint32_t word(uint64_t value) const {
    const uint64_t from = base();
    TUFF_CHECK(value < from + kSpan, "signal value {} with base {}: not rebased", value, from);
    return value <= from ? 0 : uint32_t(value - from);
  }
  // Nothing in flight may name the signal. Afterwards all values up to `next` have words.
  void rebase(uint64_t next) {
    const uint64_t reached = value();
    store(reached);
    if (must_rebase(next)) {
      fail<InvalidArgument>("a signal at {} cannot be waited for or raised to {}: {} is too far",
                            reached, next, next - reached);
    }
  }
  // Nothing in flight may name the signal.
  void move_to(uint64_t value) { store(value); }
  // From the host, while packets may wait: the base stays, so a jump is limited to 32 bits of it.
  bool can_set(uint64_t value) const { return value >= base() && value - base() <= 0xffffffffu; }
  void set(uint64_t value) {
    const uint64_t from = base();
    if (value < from || value - from > 0xffffffffu) {
      fail<InvalidArgument>("a signal at {} cannot be set to {} by the host", this->value(), value);
    }
    std::atomic_ref(*slot_).store(from / kStep << 32 | (value - from), std::memory_order_release);
  }

 private:
  void store(uint64_t value) {
    std::atomic_ref(*slot_).store(value / kStep << 32 | value % kStep, std::memory_order_seq_cst);
  }
  uint64_t* slot_;
};

}  // namespace tuff::devices::amd

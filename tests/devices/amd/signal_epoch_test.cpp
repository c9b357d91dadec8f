#include "devices/amd/encode/signal_epoch.h"

#include <gtest/gtest.h>

#include "base/split_mix.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kSpan = SignalEpoch::kSpan;

// What the GPU does: writes and compares the lower half alone.
void gpu_write(uint64_t& slot, uint32_t word) { slot = (slot & ~0xffffffffull) | word; }
bool gpu_reached(uint64_t slot, uint32_t word) { return uint32_t(slot) >= word; }

TEST(AmdSignalEpoch, CountsOverEveryWrapOf32Bits) {
  for (uint64_t around : {kSpan, 2 * kSpan, 3 * kSpan, uint64_t(1) << 33, uint64_t(1) << 40}) {
    uint64_t slot = 0;
    SignalEpoch signal(&slot, around - 5);
    for (uint64_t v = around - 4; v < around + 5; ++v) {
      if (signal.must_rebase(v)) signal.rebase(v);
      const uint32_t word = signal.word(v);
      EXPECT_FALSE(gpu_reached(slot, word)) << v;
      gpu_write(slot, word);
      EXPECT_TRUE(gpu_reached(slot, word)) << v;
      EXPECT_EQ(signal.value(), v);
    }
  }
}

TEST(AmdSignalEpoch, RebasesJustBefore2To31) {
  uint64_t slot = 0;
  SignalEpoch signal(&slot);
  EXPECT_FALSE(signal.must_rebase(kSpan - 1));
  EXPECT_EQ(signal.word(kSpan - 1), 0x7fffffffu);
  EXPECT_TRUE(signal.must_rebase(kSpan));
  EXPECT_THROW(signal.word(kSpan), InternalError);
  gpu_write(slot, signal.word(kSpan - 1));
  signal.rebase(kSpan);
  EXPECT_EQ(signal.value(), kSpan - 1);
  EXPECT_EQ(signal.base(), SignalEpoch::kStep);
  EXPECT_EQ(signal.word(kSpan), uint32_t(SignalEpoch::kStep));
  EXPECT_THROW(signal.rebase(signal.base() + kSpan), InvalidArgument);
}

// Comparisons of 32 bits agree with those of 64, whatever the steps.
TEST(AmdSignalEpoch, AgreesWith64Bits) {
  SplitMix64 random(1);
  uint64_t slot = 0, value = 0;
  SignalEpoch signal(&slot);
  int rebases = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t steps[] = {1, 1000, 1u << 20, 1u << 29};
    const uint64_t next = value + 1 + random.below(steps[random.below(4u)]);
    if (signal.must_rebase(next)) {
      signal.rebase(next);
      ++rebases;
    }
    // Waits for what has been and for what will be, encoded before the value is written.
    const uint64_t past = value - std::min(value, random.below(uint64_t(1) << 33));
    EXPECT_TRUE(gpu_reached(slot, signal.word(past)));
    EXPECT_FALSE(gpu_reached(slot, signal.word(next)));
    gpu_write(slot, signal.word(next));
    value = next;
    ASSERT_EQ(signal.value(), value);
  }
  EXPECT_GT(rebases, 100);
}

TEST(AmdSignalEpoch, HostSetsWithoutMovingTheBase) {
  uint64_t slot = 0;
  SignalEpoch signal(&slot);
  const uint32_t waiting = signal.word(kSpan - 1);
  signal.set(kSpan + 3);  // packets in flight name the old base
  EXPECT_EQ(signal.value(), kSpan + 3);
  EXPECT_TRUE(gpu_reached(slot, waiting));
  EXPECT_TRUE(signal.must_rebase(kSpan + 4));
  signal.rebase(kSpan + 4);
  EXPECT_EQ(signal.value(), kSpan + 3);
  EXPECT_THROW(signal.set(0), InvalidArgument);
  EXPECT_THROW(signal.set(uint64_t(1) << 40), InvalidArgument);
}

}  // namespace
}  // namespace tuff::devices::amd

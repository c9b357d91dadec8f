// Where the GSP's firmware lies in video memory: one layout by hand, invariants of random ones.
#include "devices/nv/pci/memory_layout.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <random>

#include "devices/nv/pci/vbios.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kMiB = 1u << 20, kGiB = 1u << 30;

// A GPU with 10 GiB, a screen's MiB at the end, and files of the sizes of version 570.144.
TEST(NvMemoryLayout, OneByHand) {
  const MemoryLayout m = memory_layout(10 * kGiB, kMiB, 0x2889000, 0x9000);
  EXPECT_EQ(m.screen, 0x27ff00000u);
  EXPECT_EQ(m.protected_end, 0x27ff00000u);
  EXPECT_EQ(m.frts, 0x27fe00000u);
  EXPECT_EQ(m.bootloader, 0x27fdf7000u);
  EXPECT_EQ(m.image, 0x27d560000u) << "0x27fdf7000 - 0x2889000, in steps of 64 KiB";
  // 22 + 8 + 1 (10 x 96 KiB) + 96 MiB
  EXPECT_EQ(m.heap, 0x275600000u) << "0x27d560000 - 127 MiB, in whole MiB";
  EXPECT_EQ(m.heap_bytes, 127 * kMiB);
  EXPECT_EQ(m.protected_begin, 0x275500000u);
  EXPECT_EQ(m.open_heap, 0x275400000u);
}

TEST(NvMemoryLayout, RegionsDoNotMeet) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t total = 2 * kGiB + random() % (190 * kGiB) / kMiB * kMiB;
    const uint64_t screen = random() % (4 * kMiB) / 4096 * 4096;
    const uint64_t image = 1 + random() % (100 * kMiB), bootloader = 1 + random() % kMiB;
    const MemoryLayout m = memory_layout(total, screen, image, bootloader);
    EXPECT_EQ(m.screen, total - screen);
    EXPECT_LE(m.protected_end, m.screen);
    EXPECT_LT(m.screen - m.protected_end, 128u << 10);
    EXPECT_EQ(m.frts, m.protected_end - kFrtsBytes);
    EXPECT_LE(m.bootloader + bootloader, m.frts);
    EXPECT_LE(m.image + image, m.bootloader);
    EXPECT_LE(m.heap + m.heap_bytes, m.image);
    EXPECT_GE(m.heap_bytes, 88 * kMiB);
    EXPECT_LE(m.heap_bytes, 280 * kMiB);
    EXPECT_LE(m.protected_begin + 256, m.heap);
    EXPECT_EQ(m.open_heap, m.protected_begin - kMiB);
    EXPECT_EQ(m.protected_end % (128u << 10), 0u);
    EXPECT_EQ(m.protected_begin % (128u << 10), 0u);
    EXPECT_EQ(m.frts % 4096, 0u);
    EXPECT_EQ(m.bootloader % 4096, 0u);
    EXPECT_EQ(m.image % (64u << 10), 0u);
    EXPECT_EQ(m.heap % kMiB, 0u);
  }
}

TEST(NvMemoryLayout, TooLittleMemoryIsRefused) {
  for (const uint64_t total : {uint64_t(0), kMiB, 64 * kMiB, 128 * kMiB, 160 * kMiB})
    EXPECT_THROW(memory_layout(total, kMiB, 40 * kMiB, 0x9000), InvalidArgument) << total;
  EXPECT_GT(memory_layout(256 * kMiB, kMiB, 40 * kMiB, 0x9000).open_heap, 0u);
  EXPECT_THROW(memory_layout(kGiB, 2 * kGiB, kMiB, 0x9000), InvalidArgument);
  EXPECT_THROW(memory_layout(kGiB, kMiB, ~0ull, 0x9000), InvalidArgument);
}

}  // namespace
}  // namespace tuff::devices::nv

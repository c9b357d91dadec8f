// Memory of every kind: round trips, addresses, copies, limits.
#include <numeric>

#include "fixture.h"
#include "tuff/error.h"

namespace tuff::devices {
namespace {

using hcq::MemoryKind;

class VulkanMemory : public VulkanTest {};

std::vector<uint32_t> pattern(size_t count, uint32_t seed) {
  std::vector<uint32_t> data(count);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint32_t>(i) * 2654435761u + seed;
  return data;
}

TEST_F(VulkanMemory, RoundTripOfEveryKind) {
  for (int kind = 0; kind < hcq::kMemoryKindCount; ++kind) {
    auto data = pattern(70'001, kind);
    hcq::Span span = allocate(data.size() * 4, static_cast<MemoryKind>(kind));
    device_->upload(span, data.data());
    EXPECT_EQ(words(span), data) << "kind " << kind;
  }
}

TEST_F(VulkanMemory, HostKindsAreMapped) {
  EXPECT_NE(allocate(64, MemoryKind::Args).host(), nullptr);
  EXPECT_NE(allocate(64, MemoryKind::Upload).host(), nullptr);
  EXPECT_NE(allocate(64, MemoryKind::Readback).host(), nullptr);
}

TEST_F(VulkanMemory, RawBlockHasAnAddressAndGoesBack) {
  hcq::MemoryBlock block = device_->map_block(1 << 16, MemoryKind::Device);
  EXPECT_NE(block.address, 0u);
  EXPECT_EQ(block.address % 16, 0u);
  EXPECT_EQ(block.size_bytes, size_t{1} << 16);
  device_->unmap_block(block);
}

TEST_F(VulkanMemory, CopiesBetweenAllKindsAtOddOffsets) {
  auto data = pattern(1000, 7);
  for (int from = 0; from < hcq::kMemoryKindCount; ++from) {
    for (int to = 0; to < hcq::kMemoryKindCount; ++to) {
      hcq::Span src = allocate(4000, static_cast<MemoryKind>(from));
      hcq::Span dst = allocate(4000, static_cast<MemoryKind>(to));
      std::vector<uint32_t> zero(1000);
      device_->upload(src, data.data());
      device_->upload(dst, zero.data());
      hcq::CommandList list;
      list.commands.push_back({hcq::CopyCmd{dst.sub(3, 3990), src.sub(1, 3990)}, {}, "copy"});
      run(list);
      std::vector<uint8_t> expected(4000), got(4000);
      std::memcpy(expected.data() + 3, reinterpret_cast<const uint8_t*>(data.data()) + 1, 3990);
      device_->download(dst, got.data());
      EXPECT_EQ(got, expected) << from << " to " << to;
    }
  }
}

TEST_F(VulkanMemory, TooLargeABlockIsOutOfMemory) {
  uint64_t too_large = device_->target().max_buffer_bytes;
  if (too_large > (1ull << 50)) GTEST_SKIP() << "the driver states no limit";
  EXPECT_THROW(device_->map_block(too_large + 1, MemoryKind::Device), OutOfMemory);
  EXPECT_THROW(device_->map_block(0, MemoryKind::Device), InvalidArgument);
  // The device is as good as before.
  auto data = pattern(16, 1);
  hcq::Span span = allocate(64);
  device_->upload(span, data.data());
  EXPECT_EQ(words(span), data);
}

}  // namespace
}  // namespace tuff::devices

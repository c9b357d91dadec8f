// Page tables: goldens of bits, random mappings against a plain list and a walker that was written
// apart, what is refused, and every table that there is no room for.
#include "devices/amd/pci/page_table.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <map>
#include <random>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/error_of.h"
#include "emu/amd/pci/gpu_tables.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kLarge = 2u << 20;

// The GPU sees what was written when it is published, and not before.
class Tables final : public TableMemory {
 public:
  ~Tables() override { EXPECT_TRUE(tables_.empty()) << tables_.size() << " tables are left"; }
  uint64_t allocate() override {
    if (++allocations == fail_at) fail<OutOfMemory>("no room for a table");
    const uint64_t at = next_ += 4096;
    tables_.insert(at);
    for (uint64_t i = 0; i < 512; ++i) seen_[at + 8 * i] = 0;
    return at;
  }
  void free(uint64_t address) noexcept override { EXPECT_EQ(tables_.erase(address), 1u); }
  void write(uint64_t address, uint64_t entry) override {
    EXPECT_TRUE(tables_.contains(address & ~0xfffull)) << std::hex << address;
    written_[address] = entry;
  }
  void publish() override {
    for (const auto& [at, entry] : written_) seen_[at] = entry;
    written_.clear();
  }
  emu::amd::GpuPage walk(uint64_t root, uint64_t address) const {
    return emu::amd::walk_gpu_tables(
        [&](uint64_t at, uint64_t& entry) {
          const auto found = seen_.find(at);
          if (found != seen_.end()) entry = found->second;
          return found != seen_.end();
        },
        root, address);
  }
  uint64_t word(uint64_t address) const { return seen_.at(address); }
  uint64_t allocations = 0, fail_at = 0;

 private:
  std::set<uint64_t> tables_;
  std::unordered_map<uint64_t, uint64_t> seen_, written_;
  uint64_t next_ = 0x10000;
};

TEST(AmdPageTable, BitsAsLinuxHasThem) {
  Tables memory;
  PageTable t(memory);
  const uint64_t va = 0x2000'0000'0000;
  t.map(va, 4096, 0x1234'5000, {});
  t.map(va + 4096, 4096, 0x5000, {.system = true, .uncached = true});
  t.map(va + kLarge, kLarge, 3 * kLarge, {.writable = false, .executable = false});
  // Three directories, then the pages.
  const uint64_t root = memory.word(t.root() + 8 * 64);
  EXPECT_EQ(root & 0xfff, 1u);
  const uint64_t middle = memory.word(root & ~0xfffull), last = memory.word(middle & ~0xfffull);
  const uint64_t table = last & ~0xfffull;
  EXPECT_EQ(memory.word(table), 0x1234'5071u);
  EXPECT_EQ(memory.word(table + 8), 0x0003'0000'0000'5077u);
  EXPECT_EQ(memory.word((middle & ~0xfffull) + 8), 0x0040'0000'0060'0021u);
}

TEST(AmdPageTable, LargePagesWhereAllIsAligned) {
  Tables memory;
  PageTable t(memory);
  const auto page_bytes = [&](uint64_t at) { return memory.walk(t.root(), at).page_bytes; };
  t.map(kLarge, 3 * kLarge, 8 * kLarge, {});
  EXPECT_EQ(page_bytes(kLarge), kLarge);
  EXPECT_EQ(page_bytes(4 * kLarge - 1), kLarge);
  t.map(8 * kLarge - 4096, kLarge + 8192, kLarge - 4096, {});
  EXPECT_EQ(page_bytes(8 * kLarge - 4096), 4096u);
  EXPECT_EQ(page_bytes(8 * kLarge), kLarge);
  EXPECT_EQ(page_bytes(9 * kLarge), 4096u);
  t.map(16 * kLarge, kLarge, 4096, {});  // an address that is not
  EXPECT_EQ(page_bytes(16 * kLarge), 4096u);
  // Where there are small pages already, or were.
  t.map(20 * kLarge, 4096, 0, {});
  t.unmap(20 * kLarge, 4096);
  t.map(20 * kLarge, kLarge, 0, {});
  EXPECT_EQ(page_bytes(20 * kLarge), 4096u);
  EXPECT_EQ(memory.walk(t.root(), 21 * kLarge - 8).physical, kLarge - 8);
}

TEST(AmdPageTable, RandomMappingsAgainstAPlainList) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::mt19937_64 random(seed);
    Tables memory;
    PageTable t(memory);
    struct Range {
      uint64_t bytes, physical;
      PageAttributes attributes;
    };
    std::map<uint64_t, Range> ranges;
    const auto overlaps = [&](uint64_t at, uint64_t bytes) {
      for (const auto& [begin, r] : ranges)
        if (at < begin + r.bytes && begin < at + bytes) return true;
      return false;
    };
    for (int step = 0; step < 120; ++step) {
      if (!ranges.empty() && random() % 3 == 0) {
        const auto it = std::next(ranges.begin(), long(random() % ranges.size()));
        t.unmap(it->first, it->second.bytes);
        EXPECT_FALSE(memory.walk(t.root(), it->first).fault.empty());
        EXPECT_THROW(t.unmap(it->first, it->second.bytes), InvalidArgument);
        ranges.erase(it);
        continue;
      }
      const uint64_t unit = random() % 2 ? 4096 : kLarge;
      const uint64_t at = (random() % 2 ? 1ull << 46 : 0) + random() % 64 * unit;
      const uint64_t bytes = (1 + random() % 5) * unit, physical = random() % 4096 * unit;
      const bool system = random() % 2;
      const PageAttributes a{system, random() % 2 == 0, random() % 2 == 0, random() % 2 == 0};
      if (overlaps(at, bytes)) {
        EXPECT_THROW(t.map(at, bytes, physical, a), InvalidArgument);
      } else {
        t.map(at, bytes, physical, a);
        ranges[at] = {bytes, physical, a};
      }
    }
    for (const auto& [begin, r] : ranges) {
      for (uint64_t at = 0; at < r.bytes; at += 4096) {
        const emu::amd::GpuPage p = memory.walk(t.root(), begin + at);
        ASSERT_EQ(p.fault, "") << std::hex << begin + at;
        ASSERT_EQ(p.physical, r.physical + at);
        ASSERT_EQ(p.system, r.attributes.system);
        ASSERT_EQ(p.snooped, r.attributes.system);
        ASSERT_EQ(p.writable, r.attributes.writable);
        ASSERT_EQ(p.executable, r.attributes.executable);
        ASSERT_EQ(p.mtype, r.attributes.uncached ? 3u : 0u);
        ASSERT_TRUE(p.readable);
      }
      if (!overlaps(begin + r.bytes, 4096)) {
        EXPECT_NE(memory.walk(t.root(), begin + r.bytes).fault, "");
      }
    }
  }
}

TEST(AmdPageTable, Refusals) {
  Tables memory;
  PageTable t(memory);
  t.map(kLarge, kLarge, 0, {});
  EXPECT_THROW(t.map(0, 0, 0, {}), InvalidArgument);
  EXPECT_THROW(t.map(1, 4096, 0, {}), InvalidArgument);
  EXPECT_THROW(t.map(4096, 100, 0, {}), InvalidArgument);
  EXPECT_THROW(t.map(4096, 4096, 8, {}), InvalidArgument);
  EXPECT_THROW(t.map(kEndOfTableAddresses, 4096, 0, {}), InvalidArgument);
  EXPECT_THROW(t.map(kEndOfTableAddresses - 4096, 8192, 0, {}), InvalidArgument);
  EXPECT_THROW(t.map(0, 8192, (1ull << 48) - 4096, {}), InvalidArgument);
  EXPECT_THROW(t.map(kLarge - 4096, 8192, 0, {}), InvalidArgument) << "half of it is mapped";
  EXPECT_NE(memory.walk(t.root(), kLarge - 4096).fault, "");
  EXPECT_NE(error_of<InvalidArgument>([&] { t.unmap(kLarge, 4096); }).find("cut a page"),
            std::string::npos);
  EXPECT_THROW(t.unmap(kLarge + 4096, kLarge - 4096), InvalidArgument);
  EXPECT_THROW(t.unmap(0, 2 * kLarge), InvalidArgument);
  EXPECT_EQ(memory.walk(t.root(), kLarge).fault, "") << "nothing was changed";
}

TEST(AmdPageTable, NoRoomForATableLeavesEverythingAsItWas) {
  for (uint64_t n = 1;; ++n) {
    Tables memory;
    PageTable t(memory);
    t.map(0, 4096, 0, {});
    memory.allocations = 0;
    memory.fail_at = n;
    const uint64_t begin = (1ull << 39) - 2 * kLarge - 4096, bytes = 4 * kLarge;
    try {
      t.map(begin, bytes, 0x1000, {});
      EXPECT_GT(n, 4u) << "the range takes several tables";
      break;
    } catch (const OutOfMemory&) {}
    EXPECT_EQ(memory.walk(t.root(), 0).fault, "");
    for (uint64_t at = begin; at < begin + bytes; at += 4096)
      ASSERT_NE(memory.walk(t.root(), at).fault, "") << n;
    memory.fail_at = 0;
    t.map(begin, bytes, 0x1000, {});
    EXPECT_EQ(memory.walk(t.root(), begin + bytes - 1).physical, 0x1000 + bytes - 1);
  }
}

}  // namespace
}  // namespace tuff::devices::amd

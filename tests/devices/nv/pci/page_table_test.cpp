// Page tables of both versions: goldens of the headers' bits, random mappings against a plain list
// and the emulated GPU's walker, and every allocation that fails.
#include "devices/nv/pci/page_table.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

#include <map>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/error_of.h"
#include "emu/nv/pci/mmu.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kSmall = 4096, kBig = 65536, kHuge = 2u << 20;

// Tables as the GPU sees them: what was written is there once it is published, and a table is not
// given back before the GPU has forgotten it.
class Tables final : public TableMemory {
 public:
  explicit Tables(Aperture aperture) : aperture_(aperture) {}
  ~Tables() override { EXPECT_TRUE(tables_.empty()) << tables_.size() << " tables are left"; }
  Aperture aperture() const override { return aperture_; }
  uint64_t allocate(size_t size_bytes) override {
    if (++allocations == fail_at) fail<OutOfMemory>("no room for a table");
    next_ = (next_ + size_bytes - 1) / size_bytes * size_bytes;
    tables_[next_] = size_bytes;
    for (uint64_t at = 0; at < size_bytes; at += 8) seen_[next_ + at] = written_[next_ + at] = 0;
    return std::exchange(next_, next_ + size_bytes);
  }
  void free(uint64_t address) noexcept override {
    const auto found = tables_.find(address);
    ASSERT_NE(found, tables_.end());
    for (uint64_t at = 0; at < found->second; at += 8) {
      seen_.erase(address + at);
      written_.erase(address + at);
    }
    tables_.erase(found);
  }
  void write(uint64_t address, uint64_t entry) override {
    ASSERT_TRUE(written_.contains(address)) << std::hex << address;
    written_[address] = entry;
    changed_.insert(address);
  }
  void publish() override {
    for (const uint64_t at : changed_)
      if (written_.contains(at)) seen_[at] = written_[at];
    changed_.clear();
  }
  bool read(bool video, uint64_t at, uint64_t& entry) const {
    const auto found = seen_.find(at);
    if (video != (aperture_ == Aperture::Video) || found == seen_.end()) return false;
    entry = found->second;
    return true;
  }
  emu::nv::Translation translate(MmuVersion version, uint64_t root, uint64_t address) const {
    return emu::nv::translate(
        uint32_t(version),
        [&](bool video, uint64_t at, uint64_t& entry) { return read(video, at, entry); },
        aperture_ == Aperture::Video, root, address);
  }
  // Bytes of all pages, by address.
  std::map<uint64_t, uint64_t> pages(MmuVersion version, uint64_t root) const {
    std::map<uint64_t, uint64_t> found;
    emu::nv::for_each_page(
        uint32_t(version),
        [&](bool video, uint64_t at, uint64_t& entry) { return read(video, at, entry); },
        aperture_ == Aperture::Video, root,
        [&](uint64_t address, const emu::nv::Translation& page) {
          EXPECT_TRUE(page.is_mapped()) << page.fault;
          found[address] = page.page_bytes;
        });
    return found;
  }
  uint64_t word(uint64_t address) const { return seen_.at(address); }
  size_t count() const { return tables_.size(); }

  size_t allocations = 0, fail_at = 0;

 private:
  const Aperture aperture_;
  std::map<uint64_t, size_t> tables_;
  std::unordered_map<uint64_t, uint64_t> written_, seen_;
  std::unordered_set<uint64_t> changed_;
  uint64_t next_ = 0x10000000;
};

class NvPageTable : public testing::TestWithParam<MmuVersion> {};
INSTANTIATE_TEST_SUITE_P(Versions, NvPageTable, testing::Values(MmuVersion::V2, MmuVersion::V3),
                         [](const auto& version) {
                           return version.param == MmuVersion::V2 ? "Version2" : "Version3";
                         });

// Whose last entries are another's: the tables stay, whatever is mapped beside them and no more.
TEST_P(NvPageTable, DirectoriesThatAreKept) {
  Tables tables(Aperture::Video);
  PageTable t(GetParam(), tables);
  constexpr uint64_t shared = 1ull << 32, own = 1ull << 36;
  const std::vector<PageDirectory> kept = t.keep_directories(shared, 29);
  ASSERT_EQ(kept.size(), GetParam() == MmuVersion::V2 ? 3u : 4u);
  EXPECT_EQ(kept[0].address, t.root());
  EXPECT_EQ(kept[0].size_bytes, 8ull * t.root_entries());
  EXPECT_EQ(kept.back().shift, 29u);
  for (size_t i = 0; i + 1 < kept.size(); ++i)
    EXPECT_NE(tables.word(kept[i].address), 0u) << "it names the next";
  t.map(own, kSmall, 0x1000, {});
  t.unmap(own, kSmall);
  EXPECT_EQ(tables.count(), kept.size());
  EXPECT_THROW(t.map(own, 1ull << 48, 0, {}), InvalidArgument);
  EXPECT_EQ(tables.count(), kept.size());
}

TEST_P(NvPageTable, TheWalkerFindsEveryPage) {
  Tables tables(Aperture::System);
  PageTable t(GetParam(), tables);
  EXPECT_TRUE(tables.pages(GetParam(), t.root()).empty());
  const uint64_t last = t.end_of_addresses() - kHuge;
  t.map(kHuge + kSmall, kSmall, 0x7000, {});
  t.map(kHuge + kBig, 2 * kBig, kBig, {.writable = false});
  t.map(1ull << 40, kHuge + kBig + kSmall, 8 * kHuge, {.aperture = Aperture::System});
  t.map(last, kHuge, kHuge, {});
  const std::map<uint64_t, uint64_t> wanted = {
      {kHuge + kSmall, kSmall},   {kHuge + kBig, kBig},
      {kHuge + 2 * kBig, kBig},   {1ull << 40, kHuge},
      {(1ull << 40) + kHuge, kBig}, {(1ull << 40) + kHuge + kBig, kSmall},
      {last, kHuge}};
  EXPECT_EQ(tables.pages(GetParam(), t.root()), wanted);
}

// The outermost table lies at 0x10000000, the others in the order in which a first page needs them.
TEST(NvPageTables, EntriesOfVersion2) {
  Tables tables(Aperture::Video);
  PageTable t(MmuVersion::V2, tables);
  ASSERT_EQ(t.root(), 0x10000000u);
  EXPECT_EQ(t.end_of_addresses(), 1ull << 49);
  const uint64_t at = 1ull << 47 | 2ull << 38 | 3ull << 29 | 4ull << 21;
  t.map(at | 5 << 12, kSmall, 0x123456000, {Aperture::Video, true, true});
  t.map(at | 3 << 16, kBig, 0x40000, {Aperture::System, false, false});
  t.map(at + kHuge, kHuge, 0x1fff800000, {Aperture::Video, true, true});
  // A table: its aperture, VOL, its frame number from bit 8 on.
  EXPECT_EQ(tables.word(0x10000008), 0x10001ull << 8 | 8 | 2);
  EXPECT_EQ(tables.word(0x10001010), 0x10002ull << 8 | 8 | 2);
  EXPECT_EQ(tables.word(0x10002018), 0x10003ull << 8 | 8 | 2);
  EXPECT_EQ(tables.word(0x10003048), 0x10004ull << 8 | 8 | 2) << "of 4 KiB";
  EXPECT_EQ(tables.word(0x10003040), 0x100050ull << 4 | 8 | 2) << "of 64 KiB, in units of 256";
  EXPECT_EQ(tables.word(0x10004028), 6ull << 56 | 0x123456ull << 8 | 1);
  EXPECT_EQ(tables.word(0x10005018), 6ull << 56 | 0x40ull << 8 | 0xc0 | 8 | 4 | 1);
  EXPECT_EQ(tables.word(0x10003050), 6ull << 56 | 0x1fff800ull << 8 | 1);
  EXPECT_EQ(tables.word(0x10003058), 0u);
}

TEST(NvPageTables, EntriesOfVersion3) {
  Tables tables(Aperture::System);
  PageTable t(MmuVersion::V3, tables);
  EXPECT_EQ(t.end_of_addresses(), 1ull << 57);
  const uint64_t at = 1ull << 56 | 1ull << 47 | 2ull << 38 | 3ull << 29 | 4ull << 21;
  t.map(at | 5 << 12, kSmall, 0x123456000, {Aperture::Video, true, true});
  t.map(at | 3 << 16, kBig, 0x40000, {Aperture::System, false, false});
  t.map(at + kHuge, kHuge, 0xffffe00000, {Aperture::Video, false, true});
  // A table: its aperture, PCF "uncached", its address in place.
  EXPECT_EQ(tables.word(0x10000008), 0x10001000u | 8 | 4);
  EXPECT_EQ(tables.word(0x10004048), 0x10005000u | 8 | 4) << "of 4 KiB";
  EXPECT_EQ(tables.word(0x10004040), 0x10006000u | 8 | 4) << "of 64 KiB";
  EXPECT_EQ(tables.word(0x10005028), 0x123456000u | 6 << 8 | 0x10 << 3 | 1);
  EXPECT_EQ(tables.word(0x10006018), 0x40000u | 6 << 8 | 0x1d << 3 | 4 | 1);
  EXPECT_EQ(tables.word(0x10004050), 0xffffe00000u | 6 << 8 | 0x1c << 3 | 1);
}

TEST_P(NvPageTable, TakesTheLargestPages) {
  Tables tables(Aperture::Video);
  PageTable t(GetParam(), tables);
  const auto page_at = [&](uint64_t address) {
    const auto found = tables.translate(GetParam(), t.root(), address);
    EXPECT_EQ(found.fault, "");
    return found.page_bytes;
  };
  // Begins 4 KiB before a page of 64 KiB and ends 4 KiB behind one of 2 MiB.
  const uint64_t begin = 5 * kHuge - kBig - kSmall;
  t.map(begin, kSmall + kBig + kHuge + kSmall, 7 * kHuge - kBig - kSmall, {});
  EXPECT_EQ(page_at(begin), kSmall);
  EXPECT_EQ(page_at(begin + kSmall), kBig);
  EXPECT_EQ(page_at(5 * kHuge + 12345), kHuge);
  EXPECT_EQ(page_at(6 * kHuge), kSmall);
  EXPECT_EQ(tables.translate(GetParam(), t.root(), 5 * kHuge + 12345).physical, 7 * kHuge + 12345);
  // Where the two differ by 4 KiB there is no larger page.
  t.map(16 * kHuge, kHuge, 20 * kHuge + kSmall, {});
  EXPECT_EQ(page_at(16 * kHuge), kSmall);
  t.unmap(16 * kHuge, kHuge);
  t.map(16 * kHuge, kHuge, 20 * kHuge, {});  // the place of a table is free again
  EXPECT_EQ(page_at(16 * kHuge), kHuge);
}

TEST_P(NvPageTable, Refusals) {
  Tables tables(Aperture::Video);
  PageTable t(GetParam(), tables);
  const uint64_t end = t.end_of_addresses();
  for (const auto& [address, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 0}, {1, kSmall}, {0, kSmall + 1}, {end, kSmall}, {end - kSmall, 2 * kSmall},
           {~0ull - kSmall + 1, kSmall}, {kSmall, ~0ull - kSmall + 1}}) {
    EXPECT_THROW(t.map(address, size, 0, {}), InvalidArgument) << address << " " << size;
    EXPECT_THROW(t.unmap(address, size), InvalidArgument) << address << " " << size;
  }
  const bool old = GetParam() == MmuVersion::V2;
  EXPECT_THROW(t.map(0, kSmall, 1, {}), InvalidArgument);
  EXPECT_THROW(t.map(0, 2 * kSmall, (old ? 1ull << 37 : 1ull << 40) - kSmall, {}), InvalidArgument);
  const uint64_t end_of_system = old ? 1ull << 47 : 1ull << 52;
  EXPECT_THROW(t.map(0, kSmall, end_of_system, {Aperture::System}), InvalidArgument);
  t.map(0, kSmall, (old ? 1ull << 37 : 1ull << 40) - kSmall, {});
  t.unmap(0, kSmall);

  // What is mapped is not mapped again, by pages of any size, and nothing is changed then.
  const size_t before = tables.count();
  const auto refused = [&](uint64_t address, uint64_t size) {
    const std::string said =
        error_of<InvalidArgument>([&] { t.map(address, size, address, {}); });
    EXPECT_NE(said.find("is mapped already"), std::string::npos) << said;
  };
  for (const uint64_t page : {kSmall, kBig, kHuge}) {
    t.map(4 * kHuge, page, 0, {});
    for (const uint64_t other : {kSmall, kBig, kHuge}) refused(4 * kHuge, other);
    refused(4 * kHuge - kBig, 2 * kHuge);
    EXPECT_FALSE(tables.translate(GetParam(), t.root(), 4 * kHuge - kBig).is_mapped());
    EXPECT_EQ(tables.translate(GetParam(), t.root(), 4 * kHuge).page_bytes, page);
    if (page > kSmall) {
      EXPECT_THROW(t.unmap(4 * kHuge, kSmall), InvalidArgument);
      EXPECT_THROW(t.unmap(4 * kHuge + kSmall, page - kSmall), InvalidArgument);
    }
    EXPECT_THROW(t.unmap(4 * kHuge, page + kSmall), InvalidArgument);
    EXPECT_TRUE(tables.translate(GetParam(), t.root(), 4 * kHuge).is_mapped());
    t.unmap(4 * kHuge, page);
    EXPECT_EQ(tables.count(), before);
  }
  // 4 KiB in the place of the last of a page of 64 KiB.
  t.map(4 * kHuge + kBig - kSmall, kSmall, 0, {});
  refused(4 * kHuge, kBig);
  refused(4 * kHuge, kHuge);
}

// ---- random mappings

struct Range {
  uint64_t size = 0, physical = 0;
  PageAttributes attributes;
};

void expect_as(const Tables& tables, MmuVersion version, uint64_t root, uint64_t address,
               const std::map<uint64_t, Range>& ranges) {
  const auto found = tables.translate(version, root, address);
  auto r = ranges.upper_bound(address);
  const bool mapped =
      r != ranges.begin() && address - std::prev(r)->first < std::prev(r)->second.size;
  ASSERT_EQ(found.is_mapped(), mapped) << std::hex << address << " " << found.fault;
  if (!mapped) {
    EXPECT_NE(found.fault.find("no "), std::string::npos) << found.fault;
    return;
  }
  --r;
  const PageAttributes& a = r->second.attributes;
  EXPECT_EQ(found.physical, r->second.physical + (address - r->first));
  EXPECT_EQ(found.video, a.aperture == Aperture::Video);
  EXPECT_EQ(found.writable, a.writable);
  EXPECT_EQ(found.atomics, a.writable);
  EXPECT_EQ(found.cached, a.cached);
}

TEST_P(NvPageTable, RandomMappings) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return random() % n; };
    Tables tables(seed % 2 ? Aperture::Video : Aperture::System);
    PageTable t(GetParam(), tables);
    std::map<uint64_t, Range> ranges;
    // Few places, so that ranges meet in tables: at both ends of all addresses and across a
    // boundary of each level.
    const uint64_t places[] = {0, 1ull << 29, 1ull << 38, 1ull << 47, t.end_of_addresses() / 2,
                               t.end_of_addresses() - 4 * kHuge};
    for (int step = 0; step < 60; ++step) {
      const uint64_t page = below(3) == 0 ? kHuge : below(2) ? kBig : kSmall;
      const uint64_t address = places[below(6)] + below(4 * kHuge / page) * page;
      const uint64_t shift = below(3) ? 0 : kSmall;  // leaves small pages alone
      const uint64_t pages = 1 + below(shift ? 2 : 20);
      const uint64_t most = std::min(page * pages, t.end_of_addresses() - address);
      Range r{most / kSmall * kSmall, (1 + below(1000)) * page + shift,
              {below(2) ? Aperture::Video : Aperture::System, below(2) != 0, below(2) != 0}};
      auto next = ranges.lower_bound(address);
      const bool free =
          (next == ranges.end() || next->first >= address + r.size) &&
          (next == ranges.begin() ||
           std::prev(next)->first + std::prev(next)->second.size <= address);
      if (free) {
        t.map(address, r.size, r.physical, r.attributes);
        ranges[address] = r;
      } else {
        EXPECT_THROW(t.map(address, r.size, r.physical, r.attributes), InvalidArgument);
        const auto gone = std::next(ranges.begin(), int64_t(below(ranges.size())));
        t.unmap(gone->first, gone->second.size);
        ranges.erase(gone);
      }
      for (int n = 0; n < 8 && !ranges.empty(); ++n) {
        const auto& [begin, range] = *std::next(ranges.begin(), int64_t(below(ranges.size())));
        for (const uint64_t at : {begin, begin + below(range.size), begin + range.size - 1,
                                  begin + range.size, begin - 1})
          if (at < t.end_of_addresses()) expect_as(tables, GetParam(), t.root(), at, ranges);
      }
    }
    while (!ranges.empty()) {
      t.unmap(ranges.begin()->first, ranges.begin()->second.size);
      ranges.erase(ranges.begin());
    }
    EXPECT_EQ(tables.count(), 1u) << "seed " << seed;
    EXPECT_FALSE(tables.translate(GetParam(), t.root(), 0).is_mapped());
  }
}

TEST_P(NvPageTable, WithoutRoomForTablesNothingChanges) {
  const auto work = [](PageTable& t) {
    t.map(5 * kHuge - kBig - kSmall, kSmall + kBig + kHuge + kSmall, 7 * kHuge - kBig - kSmall, {});
  };
  size_t allocations = 0;
  {
    Tables tables(Aperture::Video);
    PageTable t(GetParam(), tables);
    work(t);
    allocations = tables.allocations;
  }
  ASSERT_GT(allocations, 6u);
  for (size_t n = 2; n <= allocations; ++n) {
    Tables tables(Aperture::Video);
    PageTable t(GetParam(), tables);
    tables.fail_at = n;
    EXPECT_THROW(work(t), OutOfMemory) << n;
    EXPECT_EQ(tables.count(), 1u) << n;
    EXPECT_FALSE(tables.translate(GetParam(), t.root(), 5 * kHuge - kSmall).is_mapped());
    work(t);
    EXPECT_TRUE(tables.translate(GetParam(), t.root(), 5 * kHuge - kSmall).is_mapped());
  }
}

// ---- what the walker finds

TEST_P(NvPageTable, EveryBitOfAnEntryMatters) {
  Tables tables(Aperture::Video);
  PageTable t(GetParam(), tables);
  t.map(kHuge, kSmall, 0x100000, {});
  const auto good = tables.translate(GetParam(), t.root(), kHuge);
  ASSERT_TRUE(good.is_mapped());
  const uint64_t leaf = 0x10000000 + (GetParam() == MmuVersion::V2 ? 4 : 5) * kSmall;
  const uint64_t entry = tables.word(leaf);
  for (int bit = 0; bit < 64; ++bit) {
    tables.write(leaf, entry ^ 1ull << bit);
    tables.publish();
    const auto found = tables.translate(GetParam(), t.root(), kHuge);
    const bool same = found.is_mapped() && found.video == good.video &&
                      found.physical == good.physical && found.writable == good.writable &&
                      found.atomics == good.atomics && found.cached == good.cached;
    // Whether accesses are counted (ACE, ACD) is nothing that a translation tells.
    const bool counts = GetParam() == MmuVersion::V3 && bit == 7;
    EXPECT_EQ(same, counts) << bit;
  }
}

}  // namespace
}  // namespace tuff::devices::nv

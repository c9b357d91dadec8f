#include "emu/nv/pci/mmu.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>

namespace tuff::emu::nv {
namespace {

struct Field {
  int high, low;
};

// An entry that tells which of its bits were asked for.
class Entry {
 public:
  explicit Entry(uint64_t word) : word_(word) {}
  uint64_t get(Field f) {
    const int width = f.high - f.low + 1;
    const uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
    asked_ |= mask << f.low;
    return (word_ >> f.low) & mask;
  }
  uint64_t unknown() const { return word_ & ~asked_; }
  bool is_zero() const { return word_ == 0; }

 private:
  uint64_t word_, asked_ = 0;
};

enum TableAperture : uint64_t { kNoTable = 0, kVideoTable = 1, kCoherentTable = 2 };

struct Table {
  bool there = false, video = false;
  uint64_t address = 0;
};

using Visit = std::function<void(uint64_t address, const Translation& page)>;

// Directories above the innermost, outermost first.
constexpr std::array<Field, 4> kLevels3 = {{{56, 56}, {55, 47}, {46, 38}, {37, 29}}};
constexpr std::array<Field, 3> kLevels2 = {{{48, 47}, {46, 38}, {37, 29}}};
std::span<const Field> levels_of(bool version3) {
  return version3 ? std::span<const Field>(kLevels3) : std::span<const Field>(kLevels2);
}

struct Walk {
  bool version3;
  const ReadTable& read;
  uint64_t address;
  Translation out;

  void fail_empty(const char* why) {
    (void)fail(why);
    out.is_empty = true;
  }

  [[nodiscard]] bool fail(std::string why) {
    out.fault = fmt::format("{:#x}: {}", address, why);
    return false;
  }
  std::optional<Entry> load(const Table& t, uint64_t offset) {
    uint64_t word = 0;
    if (read(t.video, t.address + offset, word)) return Entry(word);
    (void)fail(fmt::format("no table can be read at {:#x}", t.address + offset));
    return std::nullopt;
  }

  // A half of an entry that names a table, whose address counts in `unit` bytes; of version 2 that
  // of one in video memory ends below the number of a peer.
  bool table(Entry& e, int lowest, uint64_t unit, Table& t) {
    (void)e.get({0, 0});
    const uint64_t aperture = e.get({2, 1});
    (void)e.get(version3 ? Field{5, 3} : Field{3, 3});  // how it is cached
    const int highest = version3 ? 51 : aperture == kVideoTable ? 32 : 53;
    t.address = e.get({highest, lowest}) * unit;
    t.there = aperture != kNoTable;
    t.video = aperture == kVideoTable;
    if (e.unknown()) return fail(fmt::format("unknown bits {:#x} of a table's entry", e.unknown()));
    if (!t.there) return e.is_zero() || fail("an entry without a table is not empty");
    if (aperture != kVideoTable && aperture != kCoherentTable)
      return fail(fmt::format("a table of aperture {}", aperture));
    return true;
  }

  // True: it is a page, or fault says why not. A zeroed entry is none.
  bool page(Entry& e, uint64_t page_bytes) {
    if (e.get({0, 0}) == 0) return e.is_zero() ? false : !fail("an invalid page with bits set");
    const uint64_t aperture = e.get({2, 1});
    out.video = aperture == 0;
    uint64_t kind = 0, frame = 0;
    if (version3) {
      const uint64_t pcf = e.get({7, 3});
      kind = e.get({11, 8});
      frame = e.get(out.video ? Field{39, 12} : Field{51, 12});
      if (pcf & 2) (void)fail("a page for privileged accesses alone");
      out.cached = !(pcf & 1);
      out.writable = !(pcf & 4);
      out.atomics = !(pcf & 8);
    } else {
      out.cached = !e.get({3, 3});
      out.writable = !e.get({6, 6});
      out.atomics = !e.get({7, 7});
      frame = e.get(out.video ? Field{32, 8} : Field{53, 8});
      kind = e.get({63, 56});
    }
    out.page_bytes = page_bytes;
    out.physical = frame * 4096 + address % page_bytes;
    if (e.unknown()) (void)fail(fmt::format("unknown bits {:#x} of a page's entry", e.unknown()));
    if (aperture == 1 || aperture == 3) (void)fail(fmt::format("a page of aperture {}", aperture));
    if (kind != 6) (void)fail(fmt::format("memory of kind {}", kind));
    if (frame * 4096 % page_bytes) (void)fail("the page is not aligned to its size");
    return true;
  }

  // The innermost directory: a page of 2 MiB, or tables of 64 KiB and of 4 KiB pages; the former
  // come first.
  void last(const Table& directory) {
    const uint64_t at = (address >> 21 & 0xff) * 16;
    std::optional<Entry> low = load(directory, at), high = load(directory, at + 8);
    if (!low || !high) return;
    if (low->get({0, 0})) {
      if (!high->is_zero()) return (void)fail("a page of 2 MiB with a table");
      page(*low, 2u << 20);
      return;
    }
    Table big, small;
    if (!table(*low, version3 ? 8 : 4, 256, big)) return;
    if (!table(*high, version3 ? 12 : 8, 4096, small)) return;
    if (big.there) {
      std::optional<Entry> e = load(big, (address >> 16 & 0x1f) * 8);
      if (!e || page(*e, 65536) || !out.fault.empty()) return;
    }
    if (!small.there) return fail_empty("no page");
    std::optional<Entry> e = load(small, (address >> 12 & 0x1ff) * 8);
    if (e && !page(*e, 4096) && out.fault.empty()) fail_empty("no page");
  }

  // The directory that an entry of one above the innermost names; null, and why not.
  std::optional<Table> next(const Table& directory, Field bits) {
    std::optional<Entry> e = load(directory, Entry(address).get(bits) * 8);
    Table below;
    if (!e) return std::nullopt;
    if (e->get({0, 0})) {
      (void)fail("a page where none of this size is known");
      return std::nullopt;
    }
    if (!table(*e, version3 ? 12 : 8, 4096, below)) return std::nullopt;
    if (!below.there) {
      fail_empty("no table");
      return std::nullopt;
    }
    return below;
  }

  void visit_below(const Table& directory, std::span<const Field> levels, const Visit& visit) {
    const uint64_t begin = address;
    if (levels.empty()) return visit_last(directory, visit);
    const Field bits = levels[0];
    for (uint64_t i = 0; i < uint64_t{2} << (bits.high - bits.low); ++i) {
      address = begin | i << bits.low;
      out = {};
      const std::optional<Table> below = next(directory, bits);
      if (below) visit_below(*below, levels.subspan(1), visit);
      else if (!out.is_empty) visit(address, out);
    }
  }

  void visit_last(const Table& directory, const Visit& visit) {
    const uint64_t begin = address;
    for (uint64_t i = 0; i < 256; ++i) {
      uint64_t words[2] = {};
      if (read(directory.video, directory.address + 16 * i, words[0]) &&
          read(directory.video, directory.address + 16 * i + 8, words[1]) && !words[0] && !words[1])
        continue;
      for (uint64_t at = 0; at < 2u << 20; at += out.is_mapped() ? out.page_bytes : 4096) {
        address = begin | i << 21 | at;
        out = {};
        last(directory);
        if (!out.is_empty) visit(address, out);
      }
    }
  }
};

}  // namespace

Translation translate(uint32_t mmu_version, const ReadTable& read, bool root_in_video,
                      uint64_t root, uint64_t address) {
  Walk walk{mmu_version == 3, read, address, {}};
  const int bits = walk.version3 ? 57 : 49;
  if (address >> bits) {
    (void)walk.fail(fmt::format("beyond {} bits", bits));
    return walk.out;
  }
  Table table{true, root_in_video, root};
  for (const Field bits : levels_of(walk.version3)) {
    const std::optional<Table> below = walk.next(table, bits);
    if (!below) return walk.out;
    table = *below;
  }
  walk.last(table);
  return walk.out;
}

void for_each_page(uint32_t mmu_version, const ReadTable& read, bool root_in_video, uint64_t root,
                   const Visit& visit) {
  Walk walk{mmu_version == 3, read, 0, {}};
  walk.visit_below({true, root_in_video, root}, levels_of(walk.version3), visit);
}

}  // namespace tuff::emu::nv

#include "devices/nv/pci/page_table.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <span>

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kSmallPage = 4096, kBigPage = 65536, kHugePage = 2u << 20;
constexpr size_t kTableBytes = 4096, kBigTableBytes = 256;
constexpr uint64_t kGenericMemory = 6;  // NV_MMU_PTE_KIND_GENERIC_MEMORY, since Turing
// Of version 3: who may do what, and whether it is cached, as one number (PCF).
constexpr uint64_t kReadWriteAtomic = 0x10, kReadOnly = 0x1c, kUncached = 1;
constexpr uint64_t kUncachedTable = 1;

}  // namespace

// Directories from the outermost to that of 2 MiB, whose entries are of two words: for the table of
// 64 KiB pages and for that of 4 KiB pages, or one page.
struct PageTable::Level {
  uint32_t shift, bits;
};

struct PageTable::Leaf {
  uint64_t address = 0;
  std::bitset<512> used;
};

struct PageTable::Directory {
  struct Entry {
    std::unique_ptr<Directory> down;
    std::unique_ptr<Leaf> small, big;
    uint64_t page = 0;  // of 2 MiB
    bool is_empty() const { return !down && !small && !big && page == 0; }
  };
  uint64_t address = 0;
  size_t depth = 0;
  bool kept = false;
  std::map<uint32_t, Entry> entries;

  static std::span<const Level> levels(MmuVersion version) {
    static constexpr Level all[] = {{56, 1}, {47, 9}, {38, 9}, {29, 9}, {21, 8}};
    static constexpr Level version2[] = {{47, 2}, {38, 9}, {29, 9}, {21, 8}};
    if (version == MmuVersion::V3) return all;
    return version2;
  }
  static uint32_t index(const Level& l, uint64_t address) {
    return uint32_t(address >> l.shift & ((1u << l.bits) - 1));
  }
};

PageTable::PageTable(MmuVersion version, TableMemory& memory)
    : version_(version), memory_(memory), root_(make_directory(0)) {}

PageTable::~PageTable() {
  const auto free_below = [&](const auto& self, const Directory& d) -> void {
    for (const auto& [index, e] : d.entries) {
      if (e.down) self(self, *e.down);
      if (e.small) memory_.free(e.small->address);
      if (e.big) memory_.free(e.big->address);
    }
    memory_.free(d.address);
  };
  free_below(free_below, *root_);
}

uint64_t PageTable::root() const { return root_->address; }

uint32_t PageTable::root_entries() const { return 1u << Directory::levels(version_)[0].bits; }

uint64_t PageTable::end_of_addresses() const {
  const Level& outermost = Directory::levels(version_)[0];
  return 1ull << (outermost.shift + outermost.bits);
}

std::vector<PageDirectory> PageTable::keep_directories(uint64_t address, uint32_t shift) {
  const auto levels = Directory::levels(version_);
  std::vector<PageDirectory> kept;
  for (Directory* d = root_.get();;) {
    const Level& level = levels[d->depth];
    d->kept = true;
    kept.push_back({d->address, 8ull << level.bits, level.shift});
    if (level.shift == shift) break;
    const uint32_t index = Directory::index(level, address);
    if (!d->entries.contains(index)) {
      auto down = make_directory(d->depth + 1);
      d->entries[index].down = std::move(down);
      write_entry(*d, index);
    }
    d = d->entries[index].down.get();
  }
  memory_.publish();
  return kept;
}

// ---- entries

uint64_t PageTable::page_entry(uint64_t physical, PageAttributes a) const {
  const uint64_t valid = 1, aperture = a.aperture == Aperture::Video ? 0 : 2;
  if (version_ == MmuVersion::V2)
    return valid | aperture << 1 | uint64_t(!a.cached) << 3 | uint64_t(!a.writable) << 6 |
           uint64_t(!a.writable) << 7 | physical >> 12 << 8 | kGenericMemory << 56;
  const uint64_t pcf = (a.writable ? kReadWriteAtomic : kReadOnly) | (a.cached ? 0 : kUncached);
  return valid | aperture << 1 | pcf << 3 | kGenericMemory << 8 | physical;
}

// The GPU reads tables anew from memory, past its L2, which the host may have written around.
uint64_t PageTable::table_entry(uint64_t address) const {
  const uint64_t aperture = memory_.aperture() == Aperture::Video ? 1 : 2;
  const uint64_t place = version_ == MmuVersion::V2 ? address >> 12 << 8 : address;
  return aperture << 1 | kUncachedTable << 3 | place;
}

// Its table is aligned to its 256 bytes.
uint64_t PageTable::big_table_entry(uint64_t address) const {
  const uint64_t place = version_ == MmuVersion::V2 ? address >> 8 << 4 : address;
  return table_entry(0) | place;
}

void PageTable::write_entry(const Directory& d, uint32_t index) {
  const auto found = d.entries.find(index);
  static const Directory::Entry none;
  const Directory::Entry& e = found == d.entries.end() ? none : found->second;
  if (d.depth + 1 < Directory::levels(version_).size())
    return memory_.write(d.address + 8ull * index, e.down ? table_entry(e.down->address) : 0);
  memory_.write(d.address + 16ull * index + 8, e.small ? table_entry(e.small->address) : 0);
  memory_.write(d.address + 16ull * index,
                e.page ? e.page : e.big ? big_table_entry(e.big->address) : 0);
}

std::unique_ptr<PageTable::Directory> PageTable::make_directory(size_t depth) {
  auto d = std::make_unique<Directory>();
  d->depth = depth;
  d->address = memory_.allocate(kTableBytes);
  return d;
}

// ---- mapping

void PageTable::check_range(uint64_t address, uint64_t size_bytes) const {
  const uint64_t end = end_of_addresses();
  if (size_bytes == 0 || (address | size_bytes) % kSmallPage || size_bytes > end ||
      address > end - size_bytes)
    fail<InvalidArgument>("page table: {:#x} bytes at {:#x} are no whole pages below {:#x}",
                          size_bytes, address, end);
}

void PageTable::map(uint64_t address, uint64_t size_bytes, uint64_t physical,
                    PageAttributes attributes) {
  check_range(address, size_bytes);
  const bool video = attributes.aperture == Aperture::Video;
  const uint64_t room = 1ull << (version_ == MmuVersion::V2 ? video ? 37 : 47 : video ? 40 : 52);
  if (physical % kSmallPage || size_bytes > room || physical > room - size_bytes)
    fail<InvalidArgument>("page table: entries have no room for {:#x} bytes at {:#x}", size_bytes,
                          physical);
  uint64_t done = 0;
  try {
    while (done < size_bytes) {
      const uint64_t at = address + done, from = physical + done, left = size_bytes - done;
      uint64_t page = kHugePage;
      while ((at | from) % page || left < page) page = page == kHugePage ? kBigPage : kSmallPage;
      set(*root_, at, page, page_entry(from, attributes));
      done += page;
    }
  } catch (...) {
    if (done) unmap(address, done);
    prune(*root_);
    memory_.publish();
    free_retired();
    throw;
  }
  memory_.publish();
}

void PageTable::set(Directory& d, uint64_t address, uint64_t page_bytes, uint64_t entry) {
  const auto levels = Directory::levels(version_);
  if (d.depth + 1 == levels.size()) return set_last(d, address, page_bytes, entry);
  const uint32_t index = Directory::index(levels[d.depth], address);
  if (!d.entries.contains(index)) {
    auto down = make_directory(d.depth + 1);
    d.entries[index].down = std::move(down);
    write_entry(d, index);
  }
  set(*d.entries[index].down, address, page_bytes, entry);
}

void PageTable::set_last(Directory& d, uint64_t address, uint64_t page_bytes, uint64_t entry) {
  const uint32_t index = Directory::index(Directory::levels(version_).back(), address);
  if (page_at(address) || (page_bytes == kHugePage && d.entries.contains(index)))
    fail<InvalidArgument>("page table: {:#x} is mapped already", address);
  if (page_bytes == kHugePage) {
    d.entries[index].page = entry;
    return write_entry(d, index);
  }
  const bool big = page_bytes == kBigPage;
  const uint64_t within = address % kHugePage, at = within / page_bytes;
  const auto found = d.entries.find(index);
  if (big && found != d.entries.end() && found->second.small)
    for (uint64_t i = 0; i < kBigPage / kSmallPage; ++i)
      if (found->second.small->used[within / kSmallPage + i])
        fail<InvalidArgument>("page table: {:#x} is mapped already", address + i * kSmallPage);
  if (found == d.entries.end() || !(big ? found->second.big : found->second.small)) {
    auto leaf = std::make_unique<Leaf>();
    leaf->address = memory_.allocate(big ? kBigTableBytes : kTableBytes);
    (big ? d.entries[index].big : d.entries[index].small) = std::move(leaf);
    write_entry(d, index);
  }
  Leaf& leaf = big ? *d.entries[index].big : *d.entries[index].small;
  memory_.write(leaf.address + 8 * at, entry);
  leaf.used.set(at);
}

// ---- unmapping

uint64_t PageTable::page_at(uint64_t address) const {
  const auto levels = Directory::levels(version_);
  const Directory* d = root_.get();
  for (;;) {
    const auto found = d->entries.find(Directory::index(levels[d->depth], address));
    if (found == d->entries.end()) return 0;
    const Directory::Entry& e = found->second;
    const uint64_t within = address % kHugePage;
    if (e.page) return kHugePage;
    if (e.big && e.big->used[within / kBigPage]) return kBigPage;
    if (e.small && e.small->used[within / kSmallPage]) return kSmallPage;
    if (!e.down) return 0;
    d = e.down.get();
  }
}

void PageTable::unmap(uint64_t address, uint64_t size_bytes) {
  check_range(address, size_bytes);
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t at = address + done, page = page_at(at);
    if (page == 0 || at % page || size_bytes - done < page)
      fail<InvalidArgument>("page table: {:#x} bytes at {:#x}: at {:#x} is {}", size_bytes, address,
                            at, page ? fmt::format("a page of {:#x} bytes", page) : "no page");
    done += page;
  }
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t page = page_at(address + done);
    clear(*root_, address + done, page);
    done += page;
  }
  memory_.publish();
  free_retired();
}

// Tables that have become empty go with it, or no page of 2 MiB could take their place.
void PageTable::clear(Directory& d, uint64_t address, uint64_t page_bytes) {
  const uint32_t index = Directory::index(Directory::levels(version_)[d.depth], address);
  Directory::Entry& e = d.entries[index];
  if (e.down) {
    clear(*e.down, address, page_bytes);
    if (!e.down->entries.empty() || e.down->kept) return;
    retired_.push_back(e.down->address);
    e.down.reset();
  } else if (page_bytes == kHugePage) {
    e.page = 0;
  } else {
    auto& leaf = page_bytes == kBigPage ? e.big : e.small;
    const uint64_t at = address % kHugePage / page_bytes;
    memory_.write(leaf->address + 8 * at, 0);
    leaf->used.reset(at);
    if (leaf->used.any()) return;
    retired_.push_back(leaf->address);
    leaf.reset();
  }
  if (e.is_empty()) d.entries.erase(index);
  write_entry(d, index);
}

// Of directories that were made for a page and did not get it.
void PageTable::prune(Directory& d) {
  for (auto at = d.entries.begin(); at != d.entries.end();) {
    const uint32_t index = at->first;
    Directory::Entry& e = at->second;
    if (e.down) prune(*e.down);
    if (!e.down || !e.down->entries.empty() || e.down->kept) {
      ++at;
      continue;
    }
    retired_.push_back(e.down->address);
    at = d.entries.erase(at);
    write_entry(d, index);
  }
}

void PageTable::free_retired() noexcept {
  for (const uint64_t table : retired_) memory_.free(table);
  retired_.clear();
}

}  // namespace tuff::devices::nv

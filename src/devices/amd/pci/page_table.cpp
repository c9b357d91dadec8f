#include "devices/amd/pci/page_table.h"

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

constexpr uint64_t kValid = 1u << 0, kSystem = 1u << 1, kSnooped = 1u << 2, kExecutable = 1u << 4,
                   kReadable = 1u << 5, kWritable = 1u << 6, kUncachedType = 3ull << 48,
                   kIsPage = 1ull << 54;
constexpr uint64_t kEntryAddress = 0x0000'ffff'ffff'f000;
constexpr uint32_t kShifts[] = {39, 30, 21, 12};
constexpr uint32_t kLevels = 4, kLargeLevel = 2, kEntries = 512;

uint32_t index_of(uint32_t level, uint64_t address) {
  return uint32_t(address >> kShifts[level]) % kEntries;
}

uint64_t page_entry(uint64_t physical, PageAttributes a) {
  return physical | kValid | kReadable | (a.writable ? kWritable : 0) |
         (a.executable ? kExecutable : 0) | (a.system ? kSystem | kSnooped : 0) |
         (a.uncached ? kUncachedType : 0);
}

// The largest that fits, which ends where the range does.
uint64_t page_that_fits(uint64_t address, uint64_t physical, uint64_t left) {
  const bool aligned = (address | physical) % kLargePageOfTableBytes == 0;
  return aligned && left >= kLargePageOfTableBytes ? kLargePageOfTableBytes : kSmallPageBytes;
}

}  // namespace

struct PageTable::Table {
  uint64_t address = 0;
  std::bitset<kEntries> used;                          // entries that are pages
  std::array<std::unique_ptr<Table>, kEntries> below;  // of the others
};

// The tables on the way to an address, as far as there are any.
struct PageTable::Way {
  std::array<Table*, kLevels> tables{};
  uint32_t depth = 0;  // the last of them
};

PageTable::PageTable(TableMemory& memory) : memory_(memory), root_(make_table()) {}

PageTable::~PageTable() {
  const auto free_with_below = [&](const auto& self, const Table& t) -> void {
    for (const auto& below : t.below)
      if (below) self(self, *below);
    memory_.free(t.address);
  };
  free_with_below(free_with_below, *root_);
}

uint64_t PageTable::root() const { return root_->address; }

std::unique_ptr<PageTable::Table> PageTable::make_table() {
  auto t = std::make_unique<Table>();
  t->address = memory_.allocate();
  return t;
}

PageTable::Way PageTable::way_to(uint64_t address) const {
  Way w;
  w.tables[0] = root_.get();
  while (w.depth + 1 < kLevels) {
    Table* const below = w.tables[w.depth]->below[index_of(w.depth, address)].get();
    if (below == nullptr) break;
    w.tables[++w.depth] = below;
  }
  return w;
}

uint64_t PageTable::page_at(uint64_t address) const {
  const Way w = way_to(address);
  if (!w.tables[w.depth]->used[index_of(w.depth, address)]) return 0;
  return 1ull << kShifts[w.depth];
}

// By what an entry that leads nowhere is for, so that large gaps cost little.
bool PageTable::is_free(uint64_t address, uint64_t size_bytes) const {
  for (uint64_t at = address; at < address + size_bytes;) {
    const Way w = way_to(at);
    if (w.tables[w.depth]->used[index_of(w.depth, at)]) return false;
    const uint64_t step = 1ull << kShifts[w.depth];
    at = (at / step + 1) * step;
  }
  return true;
}

void PageTable::check_range(uint64_t address, uint64_t size_bytes) const {
  if (size_bytes == 0 || (address | size_bytes) % kSmallPageBytes != 0 ||
      address >= kEndOfTableAddresses || size_bytes > kEndOfTableAddresses - address)
    fail<InvalidArgument>("AMD: no range of pages: {} bytes at {:#x}", size_bytes, address);
}

// Small pages where a table of them is there already, though it may be empty.
uint64_t PageTable::set(uint64_t address, uint64_t page_bytes, uint64_t entry) {
  Table* t = root_.get();
  uint32_t level = 0;
  for (; level + 1 < kLevels; ++level) {
    const uint32_t i = index_of(level, address);
    if (level == kLargeLevel && page_bytes == kLargePageOfTableBytes && !t->below[i]) break;
    if (!t->below[i]) {
      t->below[i] = make_table();
      memory_.write(t->address + 8ull * i, t->below[i]->address | kValid);
    }
    t = t->below[i].get();
  }
  const uint32_t i = index_of(level, address);
  t->used.set(i);
  memory_.write(t->address + 8ull * i, level == kLargeLevel ? entry | kIsPage : entry);
  return 1ull << kShifts[level];
}

void PageTable::map(uint64_t address, uint64_t size_bytes, uint64_t physical,
                    PageAttributes attributes) {
  check_range(address, size_bytes);
  if (physical % kSmallPageBytes != 0 || physical > kEntryAddress ||
      size_bytes > kEntryAddress + kSmallPageBytes - physical)
    fail<InvalidArgument>("AMD: entries have no room for {} bytes at {:#x}", size_bytes, physical);
  if (!is_free(address, size_bytes))
    fail<InvalidArgument>("AMD: of {} bytes at {:#x} some are mapped already", size_bytes, address);
  uint64_t done = 0;
  try {
    while (done < size_bytes) {
      const uint64_t page = page_that_fits(address + done, physical + done, size_bytes - done);
      done += set(address + done, page, page_entry(physical + done, attributes));
    }
  } catch (const OutOfMemory&) {
    clear(address, done);
    throw;
  }
  memory_.publish();
}

void PageTable::unmap(uint64_t address, uint64_t size_bytes) {
  check_range(address, size_bytes);
  for (uint64_t at = address; at < address + size_bytes;) {
    const uint64_t page = page_at(at);
    if (page == 0) fail<InvalidArgument>("AMD: nothing is mapped at {:#x}", at);
    if (at % page != 0 || page > address + size_bytes - at)
      fail<InvalidArgument>("AMD: {} bytes at {:#x} cut a page of {} bytes at {:#x}", size_bytes,
                            address, page, at / page * page);
    at += page;
  }
  clear(address, size_bytes);
}

// Tables stay, empty ones too, until all of it goes: what is mapped later finds them.
void PageTable::clear(uint64_t address, uint64_t size_bytes) {
  for (uint64_t at = address; at < address + size_bytes;) {
    const Way w = way_to(at);
    const uint32_t i = index_of(w.depth, at);
    w.tables[w.depth]->used.reset(i);
    memory_.write(w.tables[w.depth]->address + 8ull * i, 0);
    at += 1ull << kShifts[w.depth];
  }
  memory_.publish();
}

}  // namespace tuff::devices::amd

#include "emu/amd/pci/gpu_tables.h"

#include <fmt/format.h>

namespace tuff::emu::amd {
namespace {

// An entry of a page or of a directory, field by field from bit 0 up.
struct TableEntry {
  explicit TableEntry(uint64_t word) : word(word) {}
  bool bit(int n) const { return word >> n & 1; }
  uint64_t address() const { return (word & ((1ull << 48) - 1)) >> 12 << 12; }
  uint64_t word;
};

GpuPage page_of(const TableEntry& e, uint64_t address, int shift) {
  GpuPage p;
  p.page_bytes = 1ull << shift;
  const uint64_t offset = address & (p.page_bytes - 1);
  if (e.address() & (p.page_bytes - 1)) {
    p.fault = fmt::format("a page of {} bytes lies at {:#x}", p.page_bytes, e.address());
    return p;
  }
  p.physical = e.address() + offset;
  p.system = e.bit(1);
  p.snooped = e.bit(2);
  p.executable = e.bit(4);
  p.readable = e.bit(5);
  p.writable = e.bit(6);
  p.mtype = uint32_t(e.word >> 48 & 7);
  if (p.snooped && !p.system) p.fault = "a page of the GPU's own memory is to be snooped";
  return p;
}

}  // namespace

GpuPage walk_gpu_tables(const ReadEntry& read, uint64_t root, uint64_t address) {
  uint64_t table = root;
  for (int level = 3;; --level) {  // PDB2, PDB1, PDB0, PTB
    const int shift = 12 + 9 * level;
    const uint64_t at = table + 8 * (address >> shift & 0x1ff);
    uint64_t word = 0;
    GpuPage p;
    if (!read(at, word)) {
      p.fault = fmt::format("level {}: there is no memory at {:#x}", level, at);
      return p;
    }
    const TableEntry e(word);
    if (!e.bit(0)) {
      p.fault = fmt::format("level {}: the entry at {:#x} is not valid", level, at);
      return p;
    }
    if (level == 0 || e.bit(54)) {
      if (level == 0 && e.bit(54)) p.fault = "the last level has an entry for a large page";
      if (level > 1) p.fault = fmt::format("a page at level {}", level);
      return p.fault.empty() ? page_of(e, address, shift) : p;
    }
    if (e.bit(1)) {
      p.fault = "a table lies in the host's memory";
      return p;
    }
    table = e.address();
  }
}

}  // namespace tuff::emu::amd

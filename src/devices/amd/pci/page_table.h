// PageTable: what addresses mean to a GPU of RDNA3 that no kernel driver runs, as its MMU reads it:
// four levels of 512 entries, pages of 4 KiB and 2 MiB. Called by what maps memory by PCI. Knows no
// registers: where tables lie and how the GPU forgets old entries is TableMemory's. Not
// thread-safe. Sources: Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_vm.h (bits of entries),
// amdgpu_vm_pt.c (levels), gmc_v11_0.c (gmc_v11_0_get_vm_pde, gmc_v11_0_get_vm_pte: what an entry
// of a kind has).
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>

namespace tuff::devices::amd {

inline constexpr uint64_t kSmallPageBytes = 4096, kLargePageOfTableBytes = 2u << 20;
inline constexpr uint64_t kEndOfTableAddresses = 1ull << 48;

// Memory for tables: of the GPU, by addresses as entries have them.
class TableMemory {
 public:
  virtual ~TableMemory() = default;
  // 4 KiB, zeroed and aligned. OutOfMemory.
  virtual uint64_t allocate() = 0;
  virtual void free(uint64_t address) noexcept = 0;
  virtual void write(uint64_t address, uint64_t entry) = 0;
  // Everything written is there for the GPU, and it has forgotten what it had read before.
  virtual void publish() = 0;
};

struct PageAttributes {
  bool system = false;    // the host's memory, whose caches are looked into
  bool uncached = false;  // not in the GPU's L2
  bool writable = true;
  bool executable = true;
};

class PageTable {
 public:
  explicit PageTable(TableMemory& memory);
  ~PageTable();
  PageTable(const PageTable&) = delete;
  uint64_t root() const;  // address of the outermost table
  // Whole pages of 4 KiB; large ones wherever address, place and size allow them. InvalidArgument
  // where something is mapped already, or beyond what entries have room for; OutOfMemory without
  // room for tables; either leaves everything as it was.
  void map(uint64_t address, uint64_t size_bytes, uint64_t physical, PageAttributes attributes);
  // InvalidArgument, and nothing is changed, if it begins or ends within a page, or a part of it is
  // not mapped.
  void unmap(uint64_t address, uint64_t size_bytes);

 private:
  struct Table;
  struct Way;
  Way way_to(uint64_t address) const;
  std::unique_ptr<Table> make_table();
  // Bytes of the page that was set.
  uint64_t set(uint64_t address, uint64_t page_bytes, uint64_t entry);
  void clear(uint64_t address, uint64_t size_bytes);
  // Bytes of the page there; 0: none.
  uint64_t page_at(uint64_t address) const;
  // Whether nothing is mapped in the range.
  bool is_free(uint64_t address, uint64_t size_bytes) const;
  void check_range(uint64_t address, uint64_t size_bytes) const;

  TableMemory& memory_;
  std::unique_ptr<Table> root_;
};

}  // namespace tuff::devices::amd

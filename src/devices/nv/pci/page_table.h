// PageTable: what addresses mean to a GPU that no kernel driver runs, as its MMU reads it: version
// 2 (Ampere, Ada) and version 3 (Hopper, Blackwell). Called by what maps memory by PCI. Knows no
// registers: where tables lie and how the GPU forgets old entries is TableMemory's.
// Sources: open-gpu-kernel-modules, kernel-open/nvidia-uvm/hwref/hopper/gh100/dev_mmu.h @307159f
// (bits of both versions), uvm_pascal_mmu.c @1739a20, uvm_hopper_mmu.c @2c7bfb4 (levels, values).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tuff::devices::nv {

enum class MmuVersion : uint8_t { V2 = 2, V3 = 3 };
enum class Aperture : uint8_t { Video, System };  // the GPU's own memory; the host's, coherent

// Memory for tables.
class TableMemory {
 public:
  virtual ~TableMemory() = default;
  virtual Aperture aperture() const = 0;
  // Zeroed, aligned to its size, which is 256 or 4096 bytes. OutOfMemory.
  virtual uint64_t allocate(size_t size_bytes) = 0;
  virtual void free(uint64_t address) noexcept = 0;
  virtual void write(uint64_t address, uint64_t entry) = 0;
  // Everything written is there for the GPU, and it has forgotten what it had read before.
  virtual void publish() = 0;
};

// One of the directories on the way to an address.
struct PageDirectory {
  uint64_t address = 0, size_bytes = 0;
  uint32_t shift = 0;  // an entry is for 2^shift bytes
};

struct PageAttributes {
  Aperture aperture = Aperture::Video;
  bool writable = true;  // and for atomics
  bool cached = true;    // in the GPU's L2; not of the host's memory
};

// Pages of 4 KiB, 64 KiB and 2 MiB, the largest that fit. Not thread-safe.
class PageTable {
 public:
  PageTable(MmuVersion version, TableMemory& memory);
  ~PageTable();
  PageTable(const PageTable&) = delete;
  uint64_t root() const;  // address of the outermost table
  uint32_t root_entries() const;
  uint64_t end_of_addresses() const;
  // The directories on the way to an address, from the outermost to that of `shift`, which stay
  // even where nothing is mapped: who else fills entries of the last does so below them.
  // OutOfMemory.
  std::vector<PageDirectory> keep_directories(uint64_t address, uint32_t shift);
  // Whole pages of 4 KiB. InvalidArgument where something is mapped already, or beyond what entries
  // have room for; OutOfMemory without room for tables; either leaves everything as it was.
  void map(uint64_t address, uint64_t size_bytes, uint64_t physical, PageAttributes attributes);
  // InvalidArgument, and nothing is changed, if it begins or ends within a page, or a part of it is
  // not mapped.
  void unmap(uint64_t address, uint64_t size_bytes);

 private:
  struct Level;
  struct Leaf;
  struct Directory;
  uint64_t page_entry(uint64_t physical, PageAttributes attributes) const;
  uint64_t table_entry(uint64_t address) const;
  uint64_t big_table_entry(uint64_t address) const;
  void write_entry(const Directory& d, uint32_t index);
  std::unique_ptr<Directory> make_directory(size_t depth);
  void set(Directory& d, uint64_t address, uint64_t page_bytes, uint64_t entry);
  void set_last(Directory& d, uint64_t address, uint64_t page_bytes, uint64_t entry);
  // Bytes of the page that is mapped there; 0: none.
  uint64_t page_at(uint64_t address) const;
  void clear(Directory& d, uint64_t address, uint64_t page_bytes);
  void prune(Directory& d);
  void free_retired() noexcept;
  void check_range(uint64_t address, uint64_t size_bytes) const;

  const MmuVersion version_;
  TableMemory& memory_;
  std::unique_ptr<Directory> root_;
  std::vector<uint64_t> retired_;  // tables that the GPU may still know
};

}  // namespace tuff::devices::nv

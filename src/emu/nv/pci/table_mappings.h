// TableMappings: what the engines of one VA space reach by its page tables: whenever the GPU is to
// forget what it has read of these, all of them are read anew, and the space's context gets what
// has changed. Between that a change of the tables is not seen, as in a TLB that never evicts.
// Owned by GspChannels, for as long as the space has a table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "emu/nv/context.h"
#include "emu/nv/pci/mmu.h"

namespace tuff::emu::nv {

// How the GPU reaches memory by physical addresses. Called with the bus's lock held.
struct PhysicalMemory {
  uint32_t mmu_version = 2;
  ReadTable read;
  // So many bytes in one piece; null, which is told, where there are none.
  std::function<std::byte*(bool video, uint64_t address, uint64_t size_bytes)> at;
  std::function<void(const std::string&)> mistake;
};

class TableMappings {
 public:
  TableMappings(std::shared_ptr<Context> context, const PhysicalMemory& memory, uint64_t root)
      : context_(std::move(context)), memory_(memory), root_(root) {}
  ~TableMappings();
  TableMappings(const TableMappings&) = delete;
  uint64_t root() const { return root_; }
  void read_tables();
  // The IOMMU translates nothing there any more.
  void forget_host(uint64_t address, uint64_t size_bytes);
  bool maps(uint64_t address, uint64_t size_bytes) const;

 private:
  // Pages side by side, in the same order in memory.
  struct Run {
    uint64_t size_bytes = 0, physical = 0;
    bool video = false, writable = false;
    bool operator==(const Run&) const = default;
  };
  using Runs = std::map<uint64_t, Run>;  // by address
  Runs walk() const;
  void map(uint64_t address, const Run& run);
  const std::shared_ptr<Context> context_;
  const PhysicalMemory& memory_;
  const uint64_t root_;
  Runs runs_;
};

}  // namespace tuff::emu::nv

// What addresses mean to one GPU: its page table, at the grain of whole mappings. Filled by what
// emulates a kernel driver, read by the engines through caches.h. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace tuff::emu {

// A buffer object: one allocation, however many GPUs map it.
struct Buffer {
  enum class Home : uint8_t { Vram, System } home = Home::System;
  uint32_t gpu = 0;  // whose VRAM
  size_t size_bytes = 0;
  std::byte* memory = nullptr;  // what DRAM holds
  // VRAM as the host maps it, where it does, else null. What the host stores there reaches `memory`
  // when the HDP is flushed; what GPUs store shows there once it is in `memory`.
  std::byte* bar = nullptr;
  // What it is now; mappings keep a buffer alive after its handle is gone only until they are.
  uint64_t handle = 0;
};

struct Mapping {
  uint64_t address = 0;
  std::shared_ptr<Buffer> buffer;
  bool writable = false, executable = false;
  bool cached = false;  // in this GPU's L2; system memory that is coherent is not
  uint64_t serial = 0;  // never the same twice: caches of an unmapped range are void
  uint64_t end() const { return address + buffer->size_bytes; }
};

// An access that a GPU may not do.
struct MemoryFault {
  uint64_t address = 0;
  bool write = false, execute = false, not_present = true;
};

class AddressSpace {
 public:
  // Null where nothing is mapped. Engines hold what they use until the end of a step.
  std::shared_ptr<const Mapping> find(uint64_t address) const;
  void map(Mapping mapping);     // the caller has checked for overlaps
  void unmap(uint64_t address);  // what begins there
  bool overlaps(uint64_t address, uint64_t size_bytes) const;
  uint64_t generation() const;  // rises with every change

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<const Mapping>> mappings_;
  uint64_t generation_ = 0, next_serial_ = 1;
};

}  // namespace tuff::emu

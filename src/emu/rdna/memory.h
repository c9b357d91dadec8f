// What a kernel can reach by address. The emulated GPU's page tables implement it; RangeMemory is
// the plain form for tests and foreign code objects. Called by the interpreter: one virtual call
// per range, not per lane.
#pragma once

#include <cstdint>
#include <map>
#include <span>

namespace tuff::emu::rdna {

class Memory {
 public:
  // The mapped bytes around an address; data is null where nothing is mapped for this access.
  struct Range {
    uint64_t begin = 0, end = 0;
    uint8_t* data = nullptr;
  };
  virtual ~Memory() = default;
  virtual Range find(uint64_t address, bool write) = 0;
};

class RangeMemory : public Memory {
 public:
  // `bytes` must outlive the mapping. Ranges may not overlap.
  void map(uint64_t address, std::span<uint8_t> bytes, bool writable = true);
  void unmap(uint64_t address) { ranges_.erase(address); }
  Range find(uint64_t address, bool write) override;

 private:
  struct Mapping {
    std::span<uint8_t> bytes;
    bool writable;
  };
  std::map<uint64_t, Mapping> ranges_;
};

}  // namespace tuff::emu::rdna

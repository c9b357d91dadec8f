// What a kernel can reach by address. The emulated GPU's caches and page tables implement it;
// RangeMemory is the plain form for tests, foreign code objects and PTX. Called by the interpreters
// of machine code (rdna) and of PTX, for runs of lanes of a vector access and for single lanes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace tuff::emu {

enum class AccessKind : uint8_t {
  Load,
  Store,
  Atomic,      // in the L2, whatever its scope
  ScalarLoad,  // through the scalar cache
  Fetch,       // of instructions: a line of kFetchBytes
};

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint32_t kFetchBytes = 64;
inline constexpr uint32_t kMostRunBytes = 512;  // 32 lanes of 16 bytes

struct Access {
  uint64_t address = 0;
  uint32_t bytes = 0;
  AccessKind kind = AccessKind::Load;
  bool device_scope = false;  // not from the caches of the wave's own processor (glc, dlc)
  uint32_t workgroup = 0;     // its number within the dispatch
};

enum class DefectKind : uint8_t {
  StaleData,      // the newest value is elsewhere: a cache, or memory behind one
  StaleCode,      // an instruction cache has, or may have, what was there before
  ConcurrentUse,  // another dispatch or engine uses these bytes, nothing between
};

// What is wrong with an access that is carried out all the same.
struct Defect {
  std::optional<DefectKind> kind;
  std::string detail;
};

class Memory {
 public:
  virtual ~Memory() = default;
  // The bytes of an access, valid until the next call; a store or an atomic writes through them at
  // once. Null: nothing is mapped for it, which is a fault and ends the dispatch. `defect` comes
  // empty; what is put there becomes a Finding with kernel, instruction and lane.
  virtual uint8_t* reach(const Access& access, Defect& defect) = 0;
  // The same for a run of lanes that load or store, at most kMostRunBytes, if nothing is wrong with
  // any of them. Null where something is, or may be: each lane is then asked for by itself, and
  // finds what it would have found without this call.
  virtual uint8_t* reach_run(const Access& access) = 0;
  // What a load past all caches would find there, without being an access: null if nothing.
  virtual const uint8_t* peek(uint64_t address, uint32_t bytes) = 0;
};

class RangeMemory : public Memory {
 public:
  // `bytes` must outlive the mapping. Ranges may not overlap.
  void map(uint64_t address, std::span<uint8_t> bytes, bool writable = true);
  void unmap(uint64_t address);
  uint8_t* reach(const Access& access, Defect& defect) override;
  uint8_t* reach_run(const Access& access) override;
  const uint8_t* peek(uint64_t address, uint32_t bytes) override;

 private:
  struct Mapping {
    uint64_t begin = 0;
    std::span<uint8_t> bytes;
    bool writable = false;
  };
  const Mapping* find(uint64_t address) const;

  std::map<uint64_t, Mapping> ranges_;
  Mapping last_;  // of the last access
};

}  // namespace tuff::emu

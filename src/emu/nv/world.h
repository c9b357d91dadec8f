// World: what the channels of one address space of an emulated GPU share: memory and the caches
// before it, the instruction cache, serial numbers, and the way findings go out. Knows no methods.
//
// The L2 is one for all engines and coherent with the host, so no cache is kept by value: what
// stands before it (L1, the constant cache) is judged by rule (memory/caches.h), the instruction
// cache by what was there when it last looked.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/split_mix.h"
#include "emu/kernel/finding.h"
#include "emu/memory/operations.h"
#include "emu/nv/chip.h"
#include "emu/nv/stub.h"
#include "emu/profile/profiler.h"
#include "emu/ptx/launch.h"

namespace tuff::emu::nv {

class World : public Operations {
 public:
  World(uint32_t gpu, const ChipKind& kind, AddressSpace& space, Reports& told, uint64_t seed)
      : Operations(gpu), chip(kind), caches(gpu, space), random(seed), reports_(told) {}

  // Once nothing is going on that has a serial number.
  void restart_serials();

  void report(FindingKind kind, uint32_t channel, uint64_t address, std::string what);
  void report(const Accessor& who, const Request& request, const Conflict& conflict);

  // The text that a stub names, parsed; null if it is not what the stub says.
  emu_api::PtxModule* module_of(const Stub& stub, const char* text);

  const ChipKind& chip;
  std::unique_ptr<profile::Profiler> profiler;  // null: nothing is counted
  Caches caches;
  SplitMix64 random;
  uint64_t methods_left = 0;
  std::map<uint64_t, Stub> code;  // as the instruction cache has them, by address

 private:
  Reports& reports_;
  std::set<std::string> told_;
  std::map<uint64_t, std::unique_ptr<emu_api::PtxModule>> modules_;  // by the text's hash
};

// Memory as one launch reaches it.
class LaunchMemory : public RangeMemory {
 public:
  LaunchMemory(World& world, Accessor who) : world_(world), who_(std::move(who)) {}
  uint8_t* reach(const Access& access, Defect& defect) override;
  uint8_t* reach_run(const Access& access) override;
  const uint8_t* peek(uint64_t address, uint32_t bytes) override;
  const std::optional<MemoryFault>& fault() const { return fault_; }

 private:
  World& world_;
  Accessor who_;
  std::optional<MemoryFault> fault_;
};

}  // namespace tuff::emu::nv

// Chip: what the queues of one emulated GPU share: memory, instruction cache, serial numbers, what
// signals carry, and the way findings go out. Knows no packets.
#pragma once

#include <set>
#include <string>

#include "base/split_mix.h"
#include "emu/amd/gpu.h"
#include "emu/memory/operations.h"
#include "emu/profile/profiler.h"
#include "emu/rdna/code_cache.h"

namespace tuff::emu::amd {

class Chip : public Operations {
 public:
  Chip(uint32_t number, AddressSpace& space, GpuEvents& listener, uint64_t seed)
      : Operations(number), events(listener), caches(number, space), random(seed) {}

  void restart_serials();

  void report(FindingKind kind, uint32_t queue, uint64_t address, std::string what);
  // One sentence, for a conflict of `who`; and the report, once per pair of names.
  std::string describe(const Accessor& who, const Request& request, const Conflict& c) const;
  void report(const Accessor& who, const Request& request, const Conflict& conflict);

  GpuEvents& events;
  Caches caches;
  rdna::CodeCache code;
  SplitMix64 random;
  GpuStats stats;
  std::unique_ptr<profile::Profiler> profiler;  // null: nothing is counted

 private:
  std::set<std::string> reported_;
};

}  // namespace tuff::emu::amd

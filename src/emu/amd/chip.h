// Chip: what the queues of one emulated GPU share: memory, instruction cache, serial numbers, what
// signals carry, and the way findings go out. Knows no packets.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/split_mix.h"
#include "emu/amd/caches.h"
#include "emu/amd/gpu.h"
#include "emu/profile/profiler.h"
#include "emu/rdna/code_cache.h"

namespace tuff::emu::amd {

class Chip {
 public:
  Chip(uint32_t number, AddressSpace& space, GpuEvents& listener, uint64_t seed)
      : index(number), events(listener), caches(number, space), random(seed) {}

  uint32_t tick() { return ++serial_; }
  OpId begin(uint32_t slot, const std::string& name);
  uint32_t now() const { return serial_; }
  bool serials_run_out() const { return serial_ > (1u << kSerialBits) - (1u << 16); }
  void restart_serials();

  uint32_t take_slot();
  void give_slot(uint32_t slot);

  // What had ended when a packet stored `value` there, and what an engine that finds a value there
  // knows. A value that no packet of this GPU has stored comes from outside, where all that was
  // released may have been seen.
  void signalled(uint64_t address, uint64_t value, const Order& order);
  const Order& learned(uint64_t address, uint32_t value) const;
  const Order& released() const { return released_; }

  void report(FindingKind kind, uint32_t queue, uint64_t address, std::string what);
  // One sentence, for a conflict of `who`; and the report, once per pair of names.
  std::string describe(const Accessor& who, const Request& request, const Conflict& c) const;
  void report(const Accessor& who, const Request& request, const Conflict& conflict);

  const uint32_t index;
  GpuEvents& events;
  Caches caches;
  rdna::CodeCache code;
  SplitMix64 random;
  GpuStats stats;
  std::unique_ptr<profile::Profiler> profiler;  // null: nothing is counted

 private:
  struct Signal {
    uint32_t value;
    Order order;
  };
  std::string name_of(OpId op) const;

  uint32_t serial_ = 0;
  uint64_t slots_ = 1;  // slot 0 is never given out
  Order released_;
  std::map<uint64_t, Signal> signals_;
  std::deque<std::pair<OpId, std::string>> names_;  // of the latest operations
  std::set<std::string> reported_;
};

}  // namespace tuff::emu::amd

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
#include "emu/memory/peer_memory.h"
#include "emu/nv/chip.h"
#include "emu/nv/stub.h"
#include "emu/profile/profiler.h"
#include "emu/ptx/launch.h"

namespace tuff::emu::nv {

class World : public Operations {
 public:
  // `peers`: of a machine of several GPUs, else null.
  World(uint32_t gpu, const ChipKind& kind, AddressSpace& space, Reports& told, uint64_t seed,
        std::shared_ptr<PeerMemory> peers)
      : Operations(gpu),
        chip(kind),
        caches(gpu, space),
        random(seed),
        reports_(told),
        peers_(std::move(peers)) {}

  // Once nothing is going on that has a serial number.
  void restart_serials();

  void report(FindingKind kind, uint32_t channel, uint64_t address, std::string what);
  void report(const Accessor& who, const Request& request, const Conflict& conflict);

  // What a channel says with a semaphore that it has stored, and learns from one: of other GPUs of
  // the machine too. `order` is the channel's.
  void release(uint64_t address, uint64_t payload, const Order& order);
  void acquire(uint64_t address, uint64_t value, Order& order);
  // The host has told a channel something, or sees that one stands still.
  void learn_released(Order& order);
  void stands_still(const Order& order);
  // Finds what other GPUs do there at the same time.
  void use_beside_peers(const Accessor& who, const Request& request);

  // The text that a stub names, parsed; null if it is not what the stub says.
  emu_api::PtxModule* module_of(const Stub& stub, const char* text);

  const ChipKind& chip;
  std::unique_ptr<profile::Profiler> profiler;  // null: nothing is counted
  Caches caches;
  SplitMix64 random;
  uint64_t methods_left = 0;
  std::map<uint64_t, Stub> code;  // as the instruction cache has them, by address

 private:
  Peer me() const { return {index, restarts_}; }
  void report(const Accessor& who, const Conflict& conflict, std::string what);
  Reports& reports_;
  std::shared_ptr<PeerMemory> peers_;
  uint64_t restarts_ = 0;
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

// What the functions that execute see of their dispatch: memory, findings, and whether it goes on.
// Made by dispatch.cpp alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emu/rdna/counters.h"
#include "emu/rdna/finding.h"
#include "emu/memory/global_races.h"
#include "emu/memory/memory.h"
#include "emu/rdna/wave.h"

namespace tuff::emu::rdna {

class Machine {
 public:
  Machine(Memory& memory, std::string kernel, std::vector<Finding>& findings)
      : memory_(memory), kernel_(std::move(kernel)), findings_(findings) {}

  // The bytes of an access, or null after the fault has been reported. `returns`: an atomic whose
  // old value comes back.
  uint8_t* reach(const Wave& w, uint32_t lane, const Access& access, bool returns = false);
  // The bytes of a run of lanes that load or store, or null where the lanes have to be asked for
  // one by one: something may be wrong with one of them.
  uint8_t* reach_run(const Access& access) {
    uint8_t* bytes = memory_.reach_run(access);
    return bytes && (!races_ || races_->note(access)) ? bytes : nullptr;
  }
  // The wave has waited for its loads from global memory, or for its stores.
  void waited_for_loads(const Wave& w);
  void waited_for_stores(Wave& w);
  // A clock of the workgroup's accesses, and that the wave has stores since then (ISA 4.4, vscnt):
  // what it releases before it has waited for them does not order them.
  uint32_t time(const Wave& w) { return races_ ? races_->time(w.group->number) : 0; }
  void stores_since(Wave& w, uint32_t time) const {
    if (w.unfinished_since == 0) w.unfinished_since = time;
  }
  void watch_races() { races_ = std::make_unique<GlobalRaces>(); }

  // Files a finding, once per kind and instruction: the current one, else the next.
  void report(const Wave& w, FindingKind kind, uint32_t lane, uint64_t data_address,
              std::string detail);

  Memory& memory() { return memory_; }
  bool stopped() const { return stopped_; }
  void stop() { stopped_ = true; }

  const Step* current = nullptr;
  Counters* counters = nullptr;  // null: nothing is counted

 private:
  Memory& memory_;
  std::string kernel_;
  std::vector<Finding>& findings_;
  Defect defect_;
  std::unique_ptr<GlobalRaces> races_;  // where there are several workgroups
  bool stopped_ = false;
};

}  // namespace tuff::emu::rdna

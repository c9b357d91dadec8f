#include "emu/ptx/timeline.h"

namespace tuff::emu::ptx {

using profile::StepClass;

void Timeline::set(Times& times, uint32_t reg, uint64_t time) {
  if (reg >= times.size()) times.resize(reg + 1);
  times[reg] = time;
}

void Timeline::results_at(const Instruction& i, uint64_t time) {
  for (uint32_t k = 0; k < i.destinations; ++k) set(registers_, i.d(k), time);
  for (const uint32_t p : i.predicate_destinations)
    if (p != kNone) set(predicates_, p, time);
}

void Timeline::issue(const Instruction& i, const profile::StepCost& cost) {
  const bool ends_block = cost.kind == StepClass::Branch || cost.kind == StepClass::Barrier ||
                          cost.kind == StepClass::Wait;
  if (ends_block) wait_until(latest_);
  begun_ = now_;
  const auto after = [&](uint64_t time) { begun_ = std::max(begun_, time); };
  for (uint32_t k = 0; k < i.sources; ++k) after(ready(registers_, i.s(k)));
  for (const uint32_t p : i.predicate_sources)
    if (p != kNone) after(ready(predicates_, p));
  if (i.guard != kNone) after(ready(predicates_, i.guard));
  for (const uint32_t base : {i.memory.base, i.second.base})
    if (base != kNone) after(ready(registers_, base));
  results_at(i, begun_ + cost.latency);
  latest_ = std::max(latest_, begun_);
  if (ends_block) wait_until(begun_);
  // The special function unit leaves the scheduler to others.
  now_ += cost.kind == StepClass::Xu ? cost.slots : std::max(cost.slots, cost.issue_cycles);
}

void Timeline::settle(const Instruction& i, const profile::StepCost& cost,
                      uint64_t memory_cycles) {
  const uint64_t done = begun_ + memory_cycles;
  if (cost.kind == StepClass::VmemStore || cost.kind == StepClass::Atomic)
    stored_ = std::max(stored_, done);
  if (memory_cycles) results_at(i, done);
}

void Timeline::settle_copies(CopyRole role, uint64_t memory_cycles, uint64_t pending) {
  switch (role) {
    case CopyRole::Copies: copied_ = std::max(copied_, begun_ + memory_cycles); return;
    case CopyRole::Commits:
      groups_.push_back(copied_);
      copied_ = 0;
      return;
    case CopyRole::WaitsForAll: wait_until(copied_); pending = 0; break;
    default: break;
  }
  for (; groups_.size() > pending; groups_.pop_front()) wait_until(groups_.front());
}

}  // namespace tuff::emu::ptx

// The barriers of a block. Part of Control (control.h). Source: PTX ISA 7.8, 9.7.12.1.
#include <algorithm>

#include <fmt/format.h>

#include "emu/ptx/control.h"
#include "emu/ptx/counters.h"
#include "emu/ptx/makers.h"

namespace tuff::emu::ptx {
namespace {

// What the form of a barrier says, in Instruction::variant.
constexpr uint8_t kArrives = 1;  // and does not wait
constexpr uint8_t kAligned = 2;  // all lanes of a warp come by the same instruction
constexpr uint8_t kAllHold = 4;  // .red.and, else .red.or

// Threads of a warp that has come whole count as 32, others one by one.
uint32_t arrived_threads(const Block& block, const BarrierState& barrier) {
  uint32_t count = 0;
  for (size_t k = 0; k < block.warps.size(); ++k) {
    const uint32_t arrived = barrier.arrived[k];
    const bool whole = arrived && (block.warps[k]->live() & ~arrived) == 0;
    count += whole ? kWarpLanes : uint32_t(std::popcount(arrived));
  }
  return count;
}

}  // namespace

void Control::arrive(Warp& w, const Instruction& i, uint32_t lanes) {
  const auto first = uint32_t(std::countr_zero(lanes));
  for (uint32_t k = 0; k < i.sources; ++k)
    machine_.require(w, i.s(k), lanes, "the operand of a barrier");
  const auto number = uint32_t(w.value(i.s(0))[first]);
  const uint32_t threads = i.sources > 1 ? uint32_t(w.value(i.s(1))[first]) : 0;
  if (number >= 16 || threads % kWarpLanes != 0) {
    machine_.report(
        w, FindingKind::Undefined, first, 0,
        fmt::format("barrier {} of {} threads: there are 16, of multiples of 32 threads", number,
                    threads));
    return machine_.stop();
  }
  split_off_rest(w, lanes);
  BarrierState& barrier = w.block->barriers[number];
  if (!barrier.in_use) {
    barrier = {};
    barrier.in_use = true;
    barrier.arrived.resize(w.block->warps.size());
    barrier.by.resize(w.block->warps.size());
    barrier.wanted_threads = threads;
  }
  const bool aligned = i.variant & kAligned;
  if (aligned && barrier.by[w.number] && barrier.by[w.number] != &i)
    machine_.report(w, FindingKind::Barrier, first, 0,
                    fmt::format("other lanes of the warp came to the barrier in line {}",
                                barrier.by[w.number]->line));
  barrier.by[w.number] = &i;
  barrier.arrived[w.number] |= lanes;
  if (i.predicate_sources[0] != kNone) {
    machine_.require_predicate(w, i.predicate_sources[0], lanes, "the predicate of a barrier");
    const uint32_t p = w.predicate(i) & lanes;
    if (p != lanes) barrier.all = 0;
    barrier.any |= p;
    barrier.count += uint32_t(std::popcount(p));
  }
  Group& group = w.groups[current_];
  ++group.pc;
  if (i.variant & kArrives) return;
  group.state = Group::State::AtBarrier;
  group.barrier = number;
  group.at = &i;
}

bool Control::is_complete(const Block& block, const BarrierState& barrier) const {
  if (barrier.wanted_threads) return arrived_threads(block, barrier) >= barrier.wanted_threads;
  for (size_t k = 0; k < block.warps.size(); ++k) {
    if (block.warps[k]->live() & ~barrier.arrived[k]) return false;
  }
  return true;
}

void Control::release_barriers(Block& block) {
  for (uint32_t k = 0; k < block.barriers.size(); ++k) {
    if (block.barriers[k].in_use && is_complete(block, block.barriers[k])) release(block, k);
  }
}

// A barrier without a number of threads is one of all threads of the block.
void Control::check_arrivals(Block& block, const BarrierState& barrier) {
  if (barrier.wanted_threads) return;
  uint32_t ended = 0;
  for (const auto& w : block.warps) ended += uint32_t(std::popcount(w->ended));
  if (ended == 0) return;
  for (const auto& w : block.warps) {
    if (!barrier.by[w->number]) continue;
    machine_.current = barrier.by[w->number];
    machine_.report(*w, FindingKind::Barrier,
                    uint32_t(std::countr_zero(barrier.arrived[w->number])), 0,
                    fmt::format("{} threads of the block ended without coming to it", ended));
    return;
  }
}

void Control::release_group(Group& group, const BarrierState& barrier) {
  const Instruction& i = *group.at;
  Frame& frame = *group.frame;
  if (i.destinations) {
    for_each_set(group.lanes, [&](uint32_t k) { frame.values[i.d()][k] = barrier.count; });
    frame.defined[i.d()] |= group.lanes;
  } else if (i.predicate_destinations[0] != kNone) {
    const bool holds = i.variant & kAllHold ? barrier.all != 0 : barrier.any != 0;
    uint32_t& p = frame.predicates[i.predicate_destinations[0]];
    p = (p & ~group.lanes) | (holds ? group.lanes : 0);
    frame.predicates_defined[i.predicate_destinations[0]] |= group.lanes;
  }
  group.state = Group::State::Ready;
}

void Control::release(Block& block, uint32_t number) {
  BarrierState& barrier = block.barriers[number];
  check_arrivals(block, barrier);
  for (const auto& w : block.warps) {
    for (Group& group : w->groups) {
      if (group.state == Group::State::AtBarrier && group.barrier == number)
        release_group(group, barrier);
    }
    // What was stored before the barrier, a fence behind it covers too (8.5).
    if (w->unfinished_since &&
        (block.unfinished_since == 0 || w->unfinished_since < block.unfinished_since))
      block.unfinished_since = w->unfinished_since;
    w->unfinished_since = 0;
  }
  barrier.in_use = false;
  if (machine_.counters) machine_.counters->pass_barrier(block);
  // Barriers of a part of the threads order, as far as is looked at, all of them.
  if (block.shared_races) block.shared_races->pass_barrier();
  if (block.global_races) block.global_races->pass_barrier();
  if (GlobalRaces* races = machine_.global_races(); races && block.unfinished_since == 0)
    races->advance(block.number);
}

// "bar.sync" is "barrier.sync.aligned".
void make_barrier(const Form& f, Instruction& i) {
  const bool aligned = f.base == "bar" || f.has("aligned");
  i.variant = uint8_t((f.has("arrive") ? kArrives : 0) | (aligned ? kAligned : 0) |
                      (f.has("and") ? kAllHold : 0));
  make_nothing(f, i);
}

}  // namespace tuff::emu::ptx

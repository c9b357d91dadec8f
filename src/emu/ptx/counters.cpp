#include "emu/ptx/counters.h"

#include <algorithm>
#include <bit>

#include "emu/ptx/step_cost.h"

namespace tuff::emu::ptx {
namespace {

using profile::FloatKind;

CopyRole role_of(const std::string& spelling) {
  if (!spelling.starts_with("cp.async")) return CopyRole::None;
  if (spelling.ends_with("commit_group")) return CopyRole::Commits;
  if (spelling.ends_with("wait_group")) return CopyRole::WaitsForGroups;
  return spelling.ends_with("wait_all") ? CopyRole::WaitsForAll : CopyRole::Copies;
}

}  // namespace

// A row's address is its line of the text; what shares a line has others far above all lines.
const Counters::Known& Counters::known(const Instruction& i) {
  Known& found = known_[&i];
  if (found.row) return found;
  uint64_t address = i.line;
  while (!taken_.insert(address).second) address += uint64_t(1) << 32;
  found.row = &row_at(address);
  found.row->text = module_.spellings[i.spelling];
  found.row->cost = cost_of(found.row->text, target_);
  found.copies = role_of(found.row->text);
  return found;
}

void Counters::start(const Warp& w) {
  ++waves_;
  timelines_[&w] = std::make_unique<Timeline>();
}

void Counters::begin(const Warp& w, const Instruction& i, uint32_t lanes) {
  const Known& own = known(i);
  begin_instruction(*own.row);
  copies_ = own.copies;
  const profile::StepCost& cost = own.row->cost;
  const auto count = uint64_t(std::popcount(lanes));
  own.row->lanes += count;
  own.row->flops += cost.floats == FloatKind::Matrix ? cost.flops : cost.flops * count;
  timeline(w).issue(i, cost);
}

void Counters::end(const Warp& w, const Instruction& i) {
  const uint64_t cycles = end_instruction(w.block->number, w.number);
  if (copies_ == CopyRole::None) return timeline(w).settle(i, current_->cost, cycles);
  const uint64_t pending = copies_ == CopyRole::WaitsForGroups ? w.value(i.s(0))[0] : 0;
  timeline(w).settle_copies(copies_, cycles, pending);
}

void Counters::finish(const Warp& w) {
  const auto found = timelines_.find(&w);
  if (found == timelines_.end()) return;
  found->second->finish();
  end_wave(found->second->end());
  timelines_.erase(found);
}

void Counters::pass_barrier(const Block& block) {
  uint64_t last = 0;
  for (const auto& w : block.warps)
    if (timelines_.contains(w.get())) last = std::max(last, timeline(*w).now());
  for (const auto& w : block.warps)
    if (timelines_.contains(w.get())) timeline(*w).wait_until(last);
}

void Counters::local(const Warp& w, const Addresses& at, uint32_t lanes, const Access& shape) {
  private_memory(uint64_t(w.block->number) * kWarpLanes + w.number, w.local_bytes, at, lanes,
                 shape);
}

}  // namespace tuff::emu::ptx

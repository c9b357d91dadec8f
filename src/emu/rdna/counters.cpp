#include "emu/rdna/counters.h"

#include <algorithm>
#include <bit>

namespace tuff::emu::rdna {
namespace {

// How many waves of a workgroup there may be, at most.
constexpr uint64_t kWavesOfGroup = 32;

}  // namespace

void Counters::start(const Wave& w) {
  ++waves_;
  auto& own = timelines_[&w];
  if (!own) own = std::make_unique<Timeline>();
  own->start();
}

void Counters::begin(const Wave& w, const Step& step) {
  profile::InstructionCounts& row = row_at(step.address);
  if (row.executed == 0) {
    row.text = text_of(step);
    row.cost = cost_of(step);
  }
  begin_instruction(row);
  const StepCost& cost = row.cost;
  const bool vector =
      is_valu(cost.kind) || is_vector_memory(cost.kind) || cost.kind == StepClass::Lds;
  const uint64_t lanes = uint64_t(std::popcount(w.exec()));
  if (vector) row.lanes += lanes;
  row.flops += cost.floats == FloatKind::Matrix ? cost.flops : cost.flops * lanes;
  timeline(w).issue(step, cost);
}

void Counters::end(const Wave& w, const Step& step) {
  Timeline& t = timeline(w);
  t.settle(w, step, current_->cost, end_instruction(w.group->number, w.number));
  if (w.ended) end_wave(t.end());
}

void Counters::pass_barrier(std::span<const std::unique_ptr<Wave>> waves) {
  uint64_t last = 0;
  for (const auto& w : waves) {
    if (!w->ended) last = std::max(last, timeline(*w).now());
  }
  for (const auto& w : waves) timeline(*w).wait_until(last);
}

void Counters::scratch(const Wave& w, const Addresses& at, uint32_t lanes, const Access& shape) {
  private_memory(w.group->number * kWavesOfGroup + w.number % kWavesOfGroup, w.scratch_bytes, at,
                 lanes, shape);
}

}  // namespace tuff::emu::rdna

#include "emu/amd/gpu.h"

#include <mutex>

#include "emu/amd/queue.h"

namespace tuff::emu::amd {

struct Gpu::State {
  State(uint32_t index, AddressSpace& space, GpuEvents& events, uint64_t seed)
      : chip(index, space, events, seed) {}

  bool step();
  void restart_serials();

  mutable std::mutex mutex;
  Chip chip;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<Queue::Choice> choices;  // of the last step, for its memory
};

// Serial numbers have few bits. They start again once nothing is going on that has one.
void Gpu::State::restart_serials() {
  for (const auto& q : queues) {
    if (q->busy()) return;
  }
  chip.restart_serials();
  for (const auto& q : queues) q->forget_order();
}

bool Gpu::State::step() {
  if (chip.serials_run_out()) restart_serials();
  chip.caches.begin(chip.now());
  choices.clear();
  for (const auto& q : queues) q->offer(choices);
  while (!choices.empty()) {
    const size_t k = chip.random.below(choices.size());
    if (choices[k].queue->perform(choices[k])) return true;
    choices[k] = choices.back();
    choices.pop_back();
  }
  return false;
}

Gpu::Gpu(uint32_t index, AddressSpace& space, GpuEvents& events, uint64_t seed)
    : state_(std::make_unique<State>(index, space, events, seed)) {}

Gpu::~Gpu() = default;

void Gpu::attach(const QueueSetup& setup) {
  std::lock_guard lock(state_->mutex);
  const auto make = setup.kind == QueueKind::Pm4    ? make_pm4_queue
                    : setup.kind == QueueKind::Sdma ? make_sdma_queue
                                                    : make_aql_queue;
  state_->queues.push_back(make(state_->chip, setup));
}

void Gpu::detach(uint32_t queue) {
  std::lock_guard lock(state_->mutex);
  std::erase_if(state_->queues, [&](const auto& q) { return q->id() == queue; });
}

void Gpu::forget(uint64_t mapping_serial) {
  std::lock_guard lock(state_->mutex);
  state_->chip.caches.forget(mapping_serial);
}

bool Gpu::step() {
  std::lock_guard lock(state_->mutex);
  return state_->step();
}

std::string Gpu::blocked() const {
  std::lock_guard lock(state_->mutex);
  state_->chip.caches.begin(state_->chip.now());
  std::string text;
  for (const auto& q : state_->queues) {
    const std::string line = q->blocked();
    if (!line.empty()) text += line + "\n";
  }
  return text;
}

void Gpu::reset() {
  std::lock_guard lock(state_->mutex);
  for (const auto& q : state_->queues) q->kill("the GPU was reset");
  state_->chip.caches.drop();
  state_->chip.code.invalidate();
}

GpuStats Gpu::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->chip.stats;
}

}  // namespace tuff::emu::amd

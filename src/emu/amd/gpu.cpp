#include "emu/amd/gpu.h"

#include <algorithm>
#include <mutex>

#include "emu/amd/queue.h"

namespace tuff::emu::amd {

constexpr uint32_t kSeldom = 16, kStepsOfSlow = 24;  // on average

struct Gpu::State {
  // What is seldom drawn for a while where there is other work: orders in which something comes
  // late would be rare if all were drawn alike.
  enum class Slow : uint8_t {
    Nothing,
    Packets,
    Kernels,
    Copies,
    Releases,
    FirstQueue,
    LastQueue,
    kCount
  };

  State(uint32_t index, AddressSpace& space, GpuEvents& events, uint64_t seed,
        const emu_api::ProfileOptions& profile)
      : chip(index, space, events, seed) {
    if (profile.report) chip.profiler = std::make_unique<profile::Profiler>(profile);
  }

  bool step();
  bool held_back(const Queue::Choice& choice);
  void restart_serials();

  mutable std::mutex mutex;
  Chip chip;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<Queue::Choice> choices, late;  // of the last step, for their memory
  Slow slow = Slow::Nothing;
};

// Serial numbers have few bits. They start again once nothing is going on that has one.
void Gpu::State::restart_serials() {
  for (const auto& q : queues) {
    if (q->busy()) return;
  }
  chip.restart_serials();
  for (const auto& q : queues) q->forget_order();
}

bool Gpu::State::held_back(const Queue::Choice& c) {
  bool hits = false;
  switch (slow) {
    case Slow::Nothing: return false;
    case Slow::Packets: hits = c.work == Queue::Work::Packet; break;
    case Slow::Kernels: hits = c.work == Queue::Work::Kernel; break;
    case Slow::Copies: hits = c.work == Queue::Work::Copy; break;
    case Slow::Releases: hits = c.work == Queue::Work::Release; break;
    case Slow::FirstQueue: hits = c.queue == queues.front().get(); break;
    case Slow::LastQueue: hits = c.queue == queues.back().get(); break;
    case Slow::kCount: break;
  }
  return hits && chip.random.below(kSeldom) != 0;
}

bool Gpu::State::step() {
  if (chip.serials_run_out()) restart_serials();
  chip.caches.begin(chip.now());
  choices.clear();
  late.clear();
  if (chip.random.below(kStepsOfSlow) == 0) slow = Slow(chip.random.below(uint32_t(Slow::kCount)));
  for (const auto& q : queues) q->offer(choices);
  while (!choices.empty()) {
    const size_t k = chip.random.below(choices.size());
    const Queue::Choice choice = choices[k];
    choices[k] = choices.back();
    choices.pop_back();
    if (held_back(choice)) {
      late.push_back(choice);
    } else if (choice.queue->perform(choice)) {
      return true;
    }
  }
  return std::any_of(late.begin(), late.end(),
                     [](const Queue::Choice& c) { return c.queue->perform(c); });
}

Gpu::Gpu(uint32_t index, AddressSpace& space, GpuEvents& events, uint64_t seed,
         const emu_api::ProfileOptions& profile)
    : state_(std::make_unique<State>(index, space, events, seed, profile)) {}

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

void Gpu::evict() {
  std::lock_guard lock(state_->mutex);
  state_->chip.caches.write_back();
  state_->chip.caches.invalidate();
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

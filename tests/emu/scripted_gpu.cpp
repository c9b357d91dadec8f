#include "emu/scripted_gpu.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace tuff::emu::amd {
namespace {

std::mutex history_mutex;
std::vector<std::string> history;
GpuScript current;

template <class... Args>
void note(fmt::format_string<Args...> text, Args&&... args) {
  std::lock_guard lock(history_mutex);
  history.push_back(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace

void set_gpu_script(GpuScript script) { current = std::move(script); }

std::vector<std::string> take_gpu_history() {
  std::lock_guard lock(history_mutex);
  return std::exchange(history, {});
}

std::byte* reach(AddressSpace& space, uint64_t address) {
  const auto mapping = space.find(address);
  return mapping ? mapping->buffer->memory + (address - mapping->address) : nullptr;
}

struct Gpu::State {
  struct Queue {
    QueueSetup setup;
    uint64_t taken = 0;
  };
  uint32_t index;
  AddressSpace& space;
  GpuEvents& events;
  GpuScript script;
  std::map<uint32_t, Queue> queues;
  GpuStats stats;
  mutable std::mutex mutex;

  bool step(Queue& queue) {
    const uint64_t bell = std::atomic_ref(*const_cast<uint64_t*>(queue.setup.doorbell)).load();
    if (bell == ~uint64_t(0) || bell <= queue.taken) return false;
    if (!events.may_take_packet(index, queue.setup.id)) return false;
    if (!script.packet({index, queue.setup, queue.taken + 1, space, events})) return false;
    ++queue.taken;
    ++stats.packets;
    return true;
  }
};

Gpu::Gpu(uint32_t index, AddressSpace& space, GpuEvents& events, uint64_t,
         const emu_api::ProfileOptions&)
    : state_(new State{index, space, events, current, {}, {}, {}}) {}
Gpu::~Gpu() { note("gone {} with {} queues", state_->index, state_->queues.size()); }

void Gpu::attach(const QueueSetup& queue) {
  std::lock_guard lock(state_->mutex);
  state_->queues[queue.id] = {queue};
  note("attach {}:{}", state_->index, queue.id);
}

void Gpu::detach(uint32_t queue) {
  std::lock_guard lock(state_->mutex);
  state_->queues.erase(queue);
  note("detach {}:{}", state_->index, queue);
}

void Gpu::forget(uint64_t serial) {
  std::lock_guard lock(state_->mutex);
  note("forget {}:{}", state_->index, serial);
}

bool Gpu::step() {
  std::lock_guard lock(state_->mutex);
  for (auto& [id, queue] : state_->queues) {
    if (state_->step(queue)) return true;
  }
  return false;
}

std::string Gpu::blocked() const { return state_->script.blocked; }

void Gpu::reset() {
  std::lock_guard lock(state_->mutex);
  note("reset {}", state_->index);
}

GpuStats Gpu::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

}  // namespace tuff::emu::amd

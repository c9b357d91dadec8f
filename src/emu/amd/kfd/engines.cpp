#include "emu/amd/kfd/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/log.h"
#include "base/os.h"
#include "emu/kernel/pages.h"
#include "emu/amd/kfd/topology.h"

namespace tuff::emu::amd {
namespace {

// An engine that has run out of work looks at doorbells this long before it sleeps, and again this
// often while it sleeps: a doorbell is a plain store that wakes no thread.
constexpr uint64_t kSpinNs = 20'000;
constexpr auto kLookAgain = std::chrono::milliseconds(1);
// No host computes that long while a queue waits for it; drivers give up a little later.
constexpr uint64_t kHangNs = 25'000'000'000;

constexpr uint32_t kCauseHang = 0, kCauseEcc = 1;  // KFD_HW_EXCEPTION_
constexpr uint32_t kErrorEcc = 1;                  // KFD_MEM_ERR_SRAM_ECC

}  // namespace

Engines::Engines(const MockOptions& options, std::span<const std::unique_ptr<AddressSpace>> spaces,
                 Events& events, LoadedCode& code, Reports& reports)
    : options_(options),
      spaces_(spaces),
      events_(events),
      code_(code),
      reports_(reports),
      draw_(options.seed.value_or(0)) {
  for (uint32_t i = 0; i < spaces.size(); ++i) {
    engines_.push_back(std::make_unique<Engine>());
    GpuEvents& told = *this;
    engines_[i]->gpu = std::make_unique<Gpu>(i, *spaces[i], told, draw_.next(), options.profile);
  }
  if (is_stepped()) return;
  for (auto& engine : engines_) engine->thread = std::thread([this, &e = *engine] { run(e); });
}

Engines::~Engines() {
  stopped_ = true;
  wake();
  for (auto& engine : engines_) {
    if (engine->thread.joinable()) engine->thread.join();
  }
}

// An engine's thread takes its turn again and again; another thread that wants one says so first.
template <class Do>
void Engines::visit(uint32_t gpu, const Do& act) {
  Engine& engine = *engines_[gpu];
  engine.visitors.fetch_add(1);
  {
    std::lock_guard turn(engine.turn);
    act(engine);
  }
  engine.visitors.fetch_sub(1);
}

// Queues of a process whose queues were evicted are made, but never run
// (kfd_device_queue_manager.c, create_queue_cpsch).
void Engines::attach(uint32_t gpu, const QueueSetup& queue) {
  visit(gpu, [&](Engine& engine) {
    engine.gpu->attach(queue);
    engine.queues.fetch_add(1);
  });
}

void Engines::detach(uint32_t gpu, uint32_t queue) {
  visit(gpu, [&](Engine& engine) {
    engine.gpu->detach(queue);
    engine.queues.fetch_sub(1);
  });
}

void Engines::end(uint32_t gpu, const Mapping& mapping) {
  visit(gpu, [&](Engine& engine) {
    engine.gpu->forget(mapping.serial);
    spaces_[gpu]->unmap(mapping.address);
  });
}

void Engines::wake() {
  {
    std::lock_guard lock(wake_mutex_);
    ++wakes_;
  }
  woken_.notify_all();
}

bool Engines::step(Engine& engine) {
  std::lock_guard turn(engine.turn);
  if (paused_ || engine.queues.load() == 0) return false;
  bool stepped = engine.health.load() == Health::Running && engine.gpu->step();
  if (engine.dead.exchange(false)) {
    engine.gpu->reset();
    stepped = true;
  }
  if (stepped) last_step_ns_ = os::monotonic_ns();
  return stepped;
}

bool Engines::step() {
  std::vector<Engine*> order;
  for (auto& engine : engines_) order.push_back(engine.get());
  while (!order.empty()) {
    size_t pick;
    {
      std::lock_guard lock(draw_mutex_);
      pick = draw_.below(order.size());
    }
    if (step(*order[pick])) return true;
    order.erase(order.begin() + ptrdiff_t(pick));
  }
  return false;
}

void Engines::run(Engine& engine) {
  uint64_t spin_until = 0;
  while (!stopped_) {
    const uint64_t seen = wakes_;
    if (step(engine)) {
      spin_until = 0;
      while (engine.visitors.load() != 0) std::this_thread::yield();
      continue;
    }
    const uint64_t now = os::monotonic_ns();
    if (spin_until == 0) spin_until = now + kSpinNs;
    if (now < spin_until) {
      os::cpu_relax();
    } else {
      sleep(engine, seen);
    }
  }
}

void Engines::sleep(Engine& engine, uint64_t seen) {
  std::unique_lock lock(wake_mutex_);
  const auto changed = [&] { return wakes_ != seen || stopped_; };
  if (engine.queues.load() == 0 || paused_) {
    woken_.wait(lock, changed);
  } else {
    woken_.wait_for(lock, kLookAgain, changed);
  }
}

// From its return on no packet is taken: a thread in a step has ended it.
void Engines::pause() {
  paused_ = true;
  for (uint32_t gpu = 0; gpu < engines_.size(); ++gpu) visit(gpu, [](Engine&) {});
}

void Engines::resume() {
  paused_ = false;
  last_step_ns_ = os::monotonic_ns();
  wake();
}

void Engines::look_for_hang() {
  const uint64_t last = last_step_ns_;
  if (paused_ || last == 0 || os::monotonic_ns() - last < kHangNs) return;
  for (uint32_t gpu = 0; gpu < engines_.size(); ++gpu) report_blocked(gpu, std::nullopt);
}

void Engines::report_blocked(uint32_t gpu, std::optional<uint32_t> queue) {
  std::string blocked;
  visit(gpu, [&](Engine& engine) {
    if (engine.health.load() == Health::Running && engine.queues.load() != 0)
      blocked = engine.gpu->blocked();
  });
  const std::string of_queue = queue ? fmt::format("queue {} ", *queue) : "";
  std::istringstream lines(blocked);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(of_queue) == std::string::npos) continue;
    reports_.add({FindingKind::Hang, gpu, queue.value_or(0), 0, line});
  }
}

bool Engines::is_lost(uint32_t gpu) const { return engines_[gpu]->health.load() == Health::Lost; }

void Engines::revive() {
  for (uint32_t gpu = 0; gpu < engines_.size(); ++gpu) {
    visit(gpu, [](Engine& engine) {
      if (engine.health.exchange(Health::Running) != Health::Running) engine.gpu->reset();
      engine.dead = false;
    });
  }
}

GpuStats Engines::stats() const {
  GpuStats all;
  for (const auto& engine : engines_) {
    const GpuStats stats = engine->gpu->stats();
    all.packets += stats.packets;
    all.dispatches += stats.dispatches;
    all.instructions += stats.instructions;
  }
  return all;
}

bool Engines::is_fault_at(Fault::Kind kind, uint64_t count) const {
  return std::any_of(options_.faults.begin(), options_.faults.end(), [&](const Fault& fault) {
    return fault.kind == kind && fault.count == count;
  });
}

void Engines::interrupt(uint32_t, uint32_t event_id) {
  const uint64_t number = ++interrupts_;
  if (!is_fault_at(Fault::Kind::LoseInterrupt, number)) events_.interrupt(event_id);
}

void Engines::end_queues(uint32_t gpu, Health health) {
  engines_[gpu]->health = health;
  engines_[gpu]->dead = true;
}

// kfd_signal_vm_fault_event: the page and not the byte. What is not present is told as such, and
// neither as read-only nor as not executable.
void Engines::memory_fault(uint32_t gpu, const MemoryFault& fault) {
  os::kfd::MemoryException what{};
  what.gpu_id = gpu_id_of(gpu);
  what.address = align_down(fault.address, kPageBytes);
  what.not_present = fault.not_present;
  what.read_only = !fault.not_present && fault.write;
  what.no_execute = !fault.not_present && fault.execute;
  end_queues(gpu, Health::Evicted);
  events_.memory_exception(what);
}

// Nothing is signaled: the processor stands still, which shows when a caller waits for it.
void Engines::queue_error(uint32_t gpu, uint32_t queue, const std::string& why) {
  log_info("emulated GPU {}: queue {} stops: {}", gpu, queue, why);
}

// kfd_signal_reset_event.
void Engines::lose(uint32_t gpu, uint32_t cause) {
  end_queues(gpu, Health::Lost);
  os::kfd::HwException hardware{};
  hardware.reset_cause = cause;
  hardware.memory_lost = 1;
  hardware.gpu_id = gpu_id_of(gpu);
  events_.hw_exception(hardware);
  if (cause != kCauseEcc) return;
  os::kfd::MemoryException memory{};
  memory.gpu_id = hardware.gpu_id;
  memory.imprecise = 1;
  memory.error_type = kErrorEcc;
  events_.memory_exception(memory);
}

// 0: no queue takes another one.
uint64_t Engines::count_packet() {
  std::lock_guard lock(packet_mutex_);
  for (const Fault& fault : options_.faults) {
    if (fault.kind == Fault::Kind::StopQueue && packets_ >= fault.count) return 0;
  }
  return ++packets_;
}

bool Engines::may_take_packet(uint32_t gpu, uint32_t) {
  if (paused_ || engines_[gpu]->health.load() != Health::Running) return false;
  const uint64_t number = count_packet();
  if (is_fault_at(Fault::Kind::Ecc, number)) lose(gpu, kCauseEcc);
  if (is_fault_at(Fault::Kind::Reset, number)) lose(gpu, kCauseHang);
  return number != 0 && engines_[gpu]->health.load() == Health::Running;
}

void Engines::report(Finding finding) { reports_.add(finding); }

std::string Engines::kernel_at(uint64_t entry) { return code_.kernel_at(entry); }

}  // namespace tuff::emu::amd

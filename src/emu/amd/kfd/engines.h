// Engines: the GPUs of the machine, what makes them go on, and what they tell: threads of their
// own, or steps inside of calls in an order drawn from a seed; pause; faults that were asked for;
// interrupts and exceptions as events of the process. Called by machine.cpp.
//
// Locks, of the whole of kfd/, outer first: the machine's (one call at a time) > Visit, the turn
// at one GPU > the GPU's own > those of AddressSpace, Events, LoadedCode, Reports (leaves, each
// alone). No thread waits for events or sleeps while it holds one of the first three.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/split_mix.h"
#include "emu/amd/gpu.h"
#include "emu/amd/kfd/events.h"
#include "emu/amd/kfd/loaded_code.h"
#include "emu/amd/mock.h"

namespace tuff::emu::amd {

class Engines final : private GpuEvents {
 public:
  Engines(const MockOptions& options, std::span<const std::unique_ptr<AddressSpace>> spaces,
          Events& events, LoadedCode& code, Reports& reports);
  ~Engines() override;

  void attach(uint32_t gpu, const QueueSetup& queue);
  void detach(uint32_t gpu, uint32_t queue);
  void end(uint32_t gpu, const Mapping& mapping);
  // Something may have changed for engines that wait; called after every call.
  void wake();
  bool is_stepped() const { return options_.seed.has_value(); }
  // One step of one GPU, drawn; false if none has anything to do. Only where stepped.
  bool step();
  void pause();
  void resume();
  // Reports what hangs if no engine has taken a step for long, while a caller waits.
  void look_for_hang();
  // What of one queue, or of all, has packets and cannot go on.
  void report_blocked(uint32_t gpu, std::optional<uint32_t> queue);
  // Its queues are gone for good: a reset, or an error of its memory.
  bool is_lost(uint32_t gpu) const;
  void revive();  // a new process
  GpuStats stats() const;

 private:
  enum class Health : uint8_t { Running, Evicted, Lost };
  struct Engine {
    std::unique_ptr<Gpu> gpu;
    std::mutex turn;
    std::atomic<uint32_t> visitors = 0, queues = 0;
    std::atomic<Health> health = Health::Running;
    std::atomic<bool> dead = false;  // its queues are to be dropped once the step has ended
    std::thread thread;
  };
  template <class Do>
  void visit(uint32_t gpu, const Do& act);
  bool step(Engine& engine);
  void run(Engine& engine);
  void sleep(Engine& engine, uint64_t seen);
  void end_queues(uint32_t gpu, Health health);
  void lose(uint32_t gpu, uint32_t cause);
  bool is_fault_at(Fault::Kind kind, uint64_t count) const;
  uint64_t count_packet();

  void interrupt(uint32_t gpu, uint32_t event_id) override;
  void memory_fault(uint32_t gpu, const MemoryFault& fault) override;
  void queue_error(uint32_t gpu, uint32_t queue, const std::string& why) override;
  bool may_take_packet(uint32_t gpu, uint32_t queue) override;
  void report(Finding finding) override;
  std::string kernel_at(uint64_t entry) override;

  const MockOptions& options_;
  std::span<const std::unique_ptr<AddressSpace>> spaces_;
  Events& events_;
  LoadedCode& code_;
  Reports& reports_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::mutex draw_mutex_;
  SplitMix64 draw_;
  std::mutex packet_mutex_;
  uint64_t packets_ = 0;
  std::atomic<uint64_t> interrupts_ = 0, last_step_ns_ = 0;
  std::atomic<bool> paused_ = false, stopped_ = false;
  std::mutex wake_mutex_;
  std::condition_variable woken_;
  std::atomic<uint64_t> wakes_ = 0;
};

}  // namespace tuff::emu::amd

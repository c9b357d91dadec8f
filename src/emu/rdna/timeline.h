// How long a wave would take alone on its SIMD: instructions in order, each when what it reads is
// there; loads when their s_waitcnt asks for them. What other waves hide is for who reads it.
// Called by counters.cpp around each step. Knows latencies, no chip.
#pragma once

#include <array>
#include <deque>

#include "emu/rdna/step_cost.h"
#include "emu/rdna/wave.h"

namespace tuff::emu::rdna {

// Where a line of memory was found, from near to far.
enum class MemoryLevel : uint8_t { L0, L1, L2, Mall, Dram, Count };

// Cycles of the shader's clock from issue to use.
struct MemoryLatencies {
  std::array<uint32_t, size_t(MemoryLevel::Count)> vector{}, scalar{};
  uint32_t lds = 0;
};

class Timeline {
 public:
  void start();
  void issue(const Step& step, const StepCost& cost);
  // After the step: `memory_cycles` until what it loads is there, or what it stores is stored.
  void settle(const Wave& w, const Step& step, const StepCost& cost, uint64_t memory_cycles);
  uint64_t now() const { return now_; }
  void wait_until(uint64_t time) { now_ = time > now_ ? time : now_; }
  // With the stores that are on their way: a wave keeps its registers until then.
  uint64_t end() const { return stored_ > now_ ? stored_ : now_; }

 private:
  struct Queue {
    std::deque<uint64_t> done;  // of results on their way, in order
    uint32_t first = 1;         // the serial number of the front one
  };
  uint64_t ready(const RegisterRange& range) const;

  uint64_t now_ = 0, stored_ = 0;
  std::array<uint64_t, 256> vector_{};
  std::array<uint64_t, 128> scalar_{};
  std::array<Queue, size_t(Counter::Count)> queues_;
};

}  // namespace tuff::emu::rdna

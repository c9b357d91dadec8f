// How long a wave would take alone on its SIMD: instructions in order, each when what it reads is
// there; loads when their s_waitcnt asks for them. What other waves hide is for who reads it.
// Called by counters.cpp around each step. Knows latencies, no chip.
#pragma once

#include <array>
#include <deque>

#include "emu/profile/wave_time.h"
#include "emu/rdna/step_cost.h"
#include "emu/rdna/wave.h"

namespace tuff::emu::rdna {

class Timeline : public profile::WaveTime {
 public:
  void start();
  void issue(const Step& step, const StepCost& cost);
  // After the step: `memory_cycles` until what it loads is there, or what it stores is stored.
  void settle(const Wave& w, const Step& step, const StepCost& cost, uint64_t memory_cycles);

 private:
  struct Queue {
    std::deque<uint64_t> done;  // of results on their way, in order
    uint32_t first = 1;         // the serial number of the front one
  };
  uint64_t ready(const RegisterRange& range) const;

  std::array<uint64_t, 256> vector_{};
  std::array<uint64_t, 128> scalar_{};
  std::array<Queue, size_t(Counter::Count)> queues_;
};

}  // namespace tuff::emu::rdna

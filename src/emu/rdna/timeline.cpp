#include "emu/rdna/timeline.h"

#include <algorithm>

namespace tuff::emu::rdna {

void Timeline::start() { *this = {}; }

uint64_t Timeline::ready(const RegisterRange& range) const {
  uint64_t time = 0;
  for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
    time = std::max(time, range.vector ? vector_[at & 255] : at < 128 ? scalar_[at] : 0);
  }
  return time;
}

void Timeline::issue(const Step& step, const StepCost& cost) {
  for (const RegisterRange& range : step.reads) wait_until(ready(range));
  const uint64_t done = now_ + cost.latency;
  // A transcendental leaves the port to others after one cycle.
  now_ += cost.kind == StepClass::ValuTrans ? 1 : cost.issue_cycles;
  for (const RegisterRange& range : step.writes) {
    for (uint32_t at = range.first; at < uint32_t(range.first) + range.count; ++at) {
      if (range.vector)
        vector_[at & 255] = done;
      else if (at < 128)
        scalar_[at] = done;
    }
  }
}

void Timeline::settle(const Wave& w, const Step& step, const StepCost& cost,
                      uint64_t memory_cycles) {
  const uint64_t done = now_ + memory_cycles;
  if (cost.kind == StepClass::VmemStore || cost.kind == StepClass::Atomic)
    stored_ = std::max(stored_, done);
  if (step.instruction.row && step.instruction.op() == Op::S_WAITCNT_VSCNT) wait_until(stored_);
  for (size_t c = 0; c < queues_.size(); ++c) {
    Queue& q = queues_[c];
    while (q.first + q.done.size() <= w.issued[c]) {
      q.done.push_back(q.done.empty() ? done : std::max(done, q.done.back()));
    }
    for (; !q.done.empty() && q.first <= w.completed[c]; ++q.first) {
      wait_until(q.done.front());
      q.done.pop_front();
    }
  }
}

}  // namespace tuff::emu::rdna

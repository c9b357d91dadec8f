// Steps that a schedule is right without, by name, and which of them are taken. Called by
// schedule() and its steps. Must never know what a step does.
#pragma once

#include <cstdint>

namespace tuff::sched {

enum class Step : uint8_t {
  OneSum,  // sum_of_sums.h
  Parts,   // parts.h
  Rows,    // rows.h
  Keep,    // keep.h
  Merge,   // merge.h
};
inline constexpr Step kSteps[] = {Step::OneSum, Step::Parts, Step::Rows, Step::Keep, Step::Merge};
const char* name(Step s);  // as TUFF_SKIP takes it

struct StepChoice {
  uint32_t skipped = 0;      // bits by Step
  uint64_t random_seed = 0;  // of parts that are drawn instead of chosen; 0: they are chosen
  bool skips(Step s) const { return skipped >> uint32_t(s) & 1; }
  static StepChoice of_environment();  // TUFF_SKIP, TUFF_RANDOM_OPTS
};

}  // namespace tuff::sched

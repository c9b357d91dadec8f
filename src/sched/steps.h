// Steps that a schedule is right without, by name, and which of them are taken. Called by
// schedule() and its steps. Must never know what a step does, nor who chose.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/spec.h"

namespace tuff::sched {

enum class Step : uint8_t {
  Crop,     // bounds_inference.h
  OneSum,   // sum_of_sums.h
  ByIndex,  // scattered_sum.h
  Parts,    // parts.h
  Rows,     // rows.h
  Sums,     // sums.h
  Keep,     // keep.h
  Merge,    // merge.h
  Beside,   // beside.h
  SingleRows,  // single_rows.h
};
inline constexpr Step kSteps[] = {Step::Crop, Step::OneSum, Step::ByIndex, Step::Parts,
                                  Step::Rows,   Step::Sums,   Step::Keep,    Step::Merge,
                                  Step::Beside, Step::SingleRows};
constexpr const char* name(Step s) {  // as TUFF_SKIP takes it
  constexpr const char* names[] = {"crop", "one-sum", "by-index", "parts",  "rows",
                                   "sums",   "keep",    "merge",    "beside", "single-rows"};
  return names[size_t(s)];
}

struct StepChoice {
  uint32_t skipped = 0;      // bits by Step
  uint64_t random_seed = 0;  // of parts that are drawn instead of chosen; 0: they are chosen
  bool check_spec = ir::kChecksSpec;  // of the graph and of the kernels
  bool any_order = false;  // what comes to one place may be combined in any order, by atomics
  bool skips(Step s) const { return skipped >> uint32_t(s) & 1; }
  void skip(std::string_view step) {  // nothing if there is no such step
    for (const Step s : kSteps)
      if (step == name(s)) skipped |= uint32_t(1) << uint32_t(s);
  }
};

}  // namespace tuff::sched

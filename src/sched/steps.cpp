#include "sched/steps.h"

namespace tuff::sched {

const char* name(Step s) {
  static constexpr const char* names[] = {"one-sum", "parts", "rows", "keep", "merge"};
  return names[size_t(s)];
}

void StepChoice::skip(std::string_view step) {
  for (const Step s : kSteps)
    if (step == name(s)) skipped |= uint32_t(1) << uint32_t(s);
}

}  // namespace tuff::sched

#include "sched/steps.h"

#include <algorithm>

#include "base/env.h"

namespace tuff::sched {

const char* name(Step s) {
  static constexpr const char* names[] = {"one-sum", "parts", "rows", "keep", "merge"};
  return names[size_t(s)];
}

// Every realize asks.
StepChoice StepChoice::of_environment() {
  static thread_local uint32_t generation = 0;
  static thread_local StepChoice choice;
  if (generation == env_generation()) return choice;
  generation = env_generation();
  choice = {};
  const auto skipped = env_names(Env::TUFF_SKIP);
  for (const Step s : kSteps)
    choice.skipped |= uint32_t(std::ranges::find(skipped, name(s)) != skipped.end()) << uint32_t(s);
  choice.random_seed = uint64_t(env_int(Env::TUFF_RANDOM_OPTS));
  return choice;
}

}  // namespace tuff::sched

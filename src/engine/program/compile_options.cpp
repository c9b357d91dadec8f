#include "engine/program/compile_options.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/env.h"
#include "base/nearest.h"
#include "ir/spec.h"
#include "kernel/pipeline.h"

namespace tuff::engine {
namespace {

bool is_step(const std::string& word) {
  return std::ranges::any_of(sched::kSteps, [&](sched::Step s) { return word == sched::name(s); });
}
bool is_pass(const std::string& word) {
  return std::ranges::any_of(kernel::passes(),
                             [&](const kernel::Pass& p) { return word == p.name; });
}

[[noreturn]] void refuse(const std::string& word) {
  std::vector<std::string> known;
  for (const kernel::Pass& p : kernel::passes())
    if (!p.required && std::ranges::find(known, p.name) == known.end()) known.emplace_back(p.name);
  for (const sched::Step s : sched::kSteps) known.emplace_back(sched::name(s));
  fail<InvalidArgument>("TUFF_SKIP: '{}' is not {}{}", word, fmt::join(known, ", "),
                        did_you_mean(word, known));
}

std::atomic<bool> deterministic{true};

struct Options {
  kernel::LowerOptions lower;
  sched::StepChoice steps;
};

Options read() {
  Options out;
  out.lower.check_bounds = checking_bounds();
  out.lower.choose_opts = !env_flag(Env::TUFF_NOOPT);
  out.lower.random_seed = out.steps.random_seed = uint64_t(env_int(Env::TUFF_RANDOM_OPTS));
  out.lower.check_spec = out.steps.check_spec = ir::kChecksSpec || env_flag(Env::TUFF_SPEC);
  for (const std::string& word : env_names(Env::TUFF_SKIP)) {
    if (is_pass(word)) {
      out.lower.skipped.push_back(word);
    } else if (is_step(word)) {
      out.steps.skip(word);
    } else {
      refuse(word);
    }
  }
  return out;
}

// Every realize asks.
const Options& options() {
  static thread_local uint32_t generation = 0;
  static thread_local Options known;
  if (generation != env_generation()) {
    known = read();
    generation = env_generation();
  }
  return known;
}

}  // namespace

bool checking_bounds() {
  static const bool on = env_flag(Env::TUFF_CHECK_OOB);
  return on;
}
const kernel::LowerOptions& lower_options() { return options().lower; }
sched::StepChoice schedule_steps() {
  sched::StepChoice out = options().steps;
  out.any_order = !is_deterministic();
  return out;
}
void set_deterministic(bool on) { deterministic.store(on, std::memory_order_relaxed); }
bool is_deterministic() { return deterministic.load(std::memory_order_relaxed); }

}  // namespace tuff::engine

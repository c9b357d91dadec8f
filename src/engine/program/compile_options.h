// What the environment and the user ask of scheduling and lowering, as options of theirs: TUFF_SKIP,
// TUFF_NOOPT, TUFF_RANDOM_OPTS, TUFF_SPEC, TUFF_CHECK_OOB. Called where engine schedules and
// compiles, and by `tuff check`, which repeats it. Must never know a pass or a step.
#pragma once

#include "kernel/lowered.h"
#include "sched/steps.h"

namespace tuff::engine {

bool checking_bounds();
// InvalidArgument naming what is known, for a word of TUFF_SKIP that is neither a pass nor a step.
const kernel::LowerOptions& lower_options();
sched::StepChoice schedule_steps();
// Whether results have the same bits on every run. Of the process.
void set_deterministic(bool on);
bool is_deterministic();

}  // namespace tuff::engine

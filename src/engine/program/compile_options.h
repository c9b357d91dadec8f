// What the environment asks of scheduling and lowering, as options of theirs: TUFF_SKIP,
// TUFF_NOOPT, TUFF_RANDOM_OPTS, TUFF_SPEC, TUFF_CHECK_OOB. Called where engine schedules and
// compiles, and by `tuff check`, which repeats it. Must never know a pass or a step.
#pragma once

#include "kernel/lowered.h"
#include "sched/steps.h"

namespace tuff::engine {

bool checking_bounds();
// InvalidArgument naming what is known, for a word of TUFF_SKIP that is neither a pass nor a step.
const kernel::LowerOptions& lower_options();
const sched::StepChoice& schedule_steps();

}  // namespace tuff::engine

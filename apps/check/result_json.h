// A case's result as JSON and back: what a worker tells the pool and what `tuff check --json`
// prints. Must never know how a case is run.
#pragma once

#include "base/json.h"
#include "check/run_case.h"
#include "kernel/opt/random_opts.h"
#include "sched/parts.h"

namespace tuff::check {

// Infinite errors (a NaN where a number was expected, a wrong integer) become null.
Json to_json(const CaseResult& r);
CaseResult result_from_json(const Json& j);
// {"split": {"tried": 3, "applied": 1}, ...}, of the kinds that the target allows and of parts.
Json to_json(const kernel::OptCounts& counts, const sched::PartsCounts& parts,
             const Target& target);

}  // namespace tuff::check

// The child's half of the pool: runs the cases that it reads from its standard input and reports
// each on standard output, one JSON line per event. Called by the hidden `tuff check --worker`.
#pragma once

#include <string>
#include <vector>

#include "check/reproducer.h"

namespace tuff::check {

// What a worker is told, as one JSON object on its standard input.
struct WorkOrder {
  Circumstances how;
  std::string out;                 // where failing cases leave their folders; empty: nowhere
  std::string replay;              // a reproducer's folder instead of cases of the suite
  std::vector<std::string> cases;  // names, in order; see random_case.h too
  bool prepare = true;             // compile all kernels together first, where that pays
  // Runs nothing: writes the reproducer of the only case, which crashed or hung with this result.
  bool describe = false;
  CaseResult result;
};
std::string to_text(const WorkOrder& order);
WorkOrder work_order_from(const std::string& text);

// Events: {"event": "prepare" | "ready"}, {"event": "begin", "case": ...}, {"event": "result",
// ...}, {"event": "opts", "counts": ...} with TUFF_RANDOM_OPTS,
// {"event": "lost"} when the device can run nothing more, {"event": "done"}.
// Throws nothing that a case does; errors in the order itself and of opening the device are thrown.
void run_worker(const WorkOrder& order);

}  // namespace tuff::check

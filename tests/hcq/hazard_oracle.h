// The hazard checker's judge: every happens-before edge spelled out, the transitive closure over
// all of them, and all pairs of accesses. Cubic; shares no code with hcq/hazards.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "hcq/hazards.h"

namespace tuff::hcq::test {

// Event and label of both, kind, block and bytes: labels have to be unique within a list.
using Finding = std::tuple<size_t, std::string, size_t, std::string, std::string,
                           const MemoryBlock*, size_t, size_t>;

struct Verdict {
  std::set<Finding> hazards;
  bool stuck = false;  // a wait that nobody ends, or a circle; hazards mean nothing then
  bool clean() const { return hazards.empty() && !stuck; }
};
Verdict oracle(const Trace& trace);
Verdict verdict(const HazardReport& report);  // the checker's, in the same words

// The trace without one command of one of its lists, wherever that is submitted.
struct Mutant {
  Trace trace;
  std::unique_ptr<CommandList> list;
};
Mutant without(const Trace& trace, const CommandList& list, size_t command);

// Every command of a list that only orders: barriers, waits and signals.
bool only_orders(const Command& c);

}  // namespace tuff::hcq::test

// TUFF_CHECK_HAZARDS: command lists are checked where they are made, before a device sees them.
// Called by CommandGraph and by engine's eager path. Must never know how a list was built.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <tuff/error.h>

#include "hcq/hazards.h"

namespace tuff::hcq {

// A command list lets a device run conflicting commands in either order, which is a bug in tuff; or
// a user's kernel writes what it is declared to read.
class HazardFound : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "HazardFound"; }
};

bool checking_hazards();
uint64_t guarded_traces();  // so many have been checked in this process

// What a machine that checks its programs and command streams found (an emulated GPU): beside the
// checker's own findings in TUFF_REPORT.
struct MachineFinding {
  std::string kind;  // "page_fault"
  uint32_t gpu = 0, queue = 0;
  uint64_t address = 0;  // 0: none
  std::string text;      // a sentence with all of it
};
std::string to_json_lines(std::span<const MachineFinding> findings);
// Appends them to TUFF_REPORT; does nothing without one.
void report_findings(std::span<const MachineFinding> findings);

// Throws HazardFound with the findings; appends them, unneeded barriers too, to TUFF_REPORT.
void guard_trace(const Trace& trace, std::string_view what);
// One submission of a list.
void guard_list(const CommandList& list, std::string_view what);

// Replays of a graph whose instances are used in turn, each once more than once: the host waits
// for an instance's last value, writes its patched memory and submits it.
struct ReplayInstance {
  const CommandList* list = nullptr;
  Span patched;  // what the host writes, or empty
};
Trace replay_trace(std::span<const ReplayInstance> instances, const Signal& timeline);

}  // namespace tuff::hcq

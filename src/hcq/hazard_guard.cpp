#include "hcq/hazard_guard.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>

#include "base/check.h"
#include "base/env.h"

namespace tuff::hcq {
namespace {

// Enough to see what is wrong; TUFF_REPORT has them all.
constexpr size_t kShown = 20;

std::atomic<uint64_t> guarded{0};

void append_report(const std::string& lines) {
  const std::string path = env_text(Env::TUFF_REPORT);
  if (path.empty()) return;
  static std::mutex mutex;
  static std::string opened;  // a file that cannot be written is told before there is a finding
  std::lock_guard lock(mutex);
  if (lines.empty() && path == opened) return;
  opened = path;
  std::ofstream file(path, std::ios::app);
  file << lines << std::flush;
  if (!file) fail<IoError>("TUFF_REPORT: cannot append to {}: {}", path, std::strerror(errno));
}

}  // namespace

uint64_t guarded_traces() { return guarded; }

void report_findings(std::span<const MachineFinding> findings) {
  append_report(to_json_lines(findings));
}

bool checking_hazards() { return env_flag(Env::TUFF_CHECK_HAZARDS); }

void guard_trace(const Trace& trace, std::string_view what) {
  guarded++;
  HazardReport report = check_hazards(trace);
  append_report(to_json_lines(report));
  if (report.clean()) return;
  report.unneeded.clear();
  fail<HazardFound>("TUFF_CHECK_HAZARDS: {}: {} hazards, {} waits without an end\n{}", what,
                    report.hazards.size(), report.stuck.size(), to_text(report, kShown));
}

void guard_list(const CommandList& list, std::string_view what) {
  Trace trace;
  trace.events.emplace_back(Submission{.list = &list});
  guard_trace(trace, what);
}

Trace replay_trace(std::span<const ReplayInstance> instances, const Signal& timeline) {
  Trace trace;
  const size_t count = instances.size();
  for (size_t replay = 0; replay < 2 * count + 1; replay++) {
    const ReplayInstance& in = instances[replay % count];
    if (replay >= count) trace.events.emplace_back(HostWait{&timeline, replay - count + 1});
    if (in.patched) trace.events.emplace_back(HostAccess{{{in.patched, true}}, "patch"});
    trace.events.emplace_back(Submission{.list = in.list,
                                         .slots = {},
                                         .timeline = &timeline,
                                         .value = replay + 1,
                                         .label = fmt::format("replay {}", replay)});
  }
  return trace;
}

}  // namespace tuff::hcq

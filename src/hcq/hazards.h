// The hazard checker: which conflicting accesses of a sequence of submissions nothing orders.
// Called by hazard_guard and by tests. Reads neutral command lists and must never know who built
// them or by which rule: software drivers run everything in order, so this is the only proof.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "hcq/command.h"

namespace tuff::hcq {

// Whether a submission begins only when all that was submitted to its queue before has finished.
// It is what Queue::submit promises; a queue that overlaps submissions needs barriers of its own.
enum class SubmissionOrder : uint8_t { AfterAllBefore, Overlapping };

// A command list on a queue. Everything the host did before comes before it. If `timeline` is set,
// it reaches `value` when this and everything before it on the queue has finished.
struct Submission {
  uint32_t queue = 0;
  const CommandList* list = nullptr;
  std::vector<uint64_t> slots{};
  const Signal* timeline = nullptr;
  uint64_t value = 0;
  std::string label{};
};
// What the host does between submissions, one thing after the other.
struct HostAccess {
  std::vector<Access> accesses;
  std::string label;
};
struct HostWait {
  const Signal* signal = nullptr;
  uint64_t value = 0;
};
struct HostSignal {
  const Signal* signal = nullptr;
  uint64_t value = 0;
};
using TraceEvent = std::variant<Submission, HostAccess, HostWait, HostSignal>;

// In the host's order. Lists and blocks must outlive the trace and reports about it.
struct Trace {
  std::vector<TraceEvent> events;
  SubmissionOrder order = SubmissionOrder::AfterAllBefore;
  std::unordered_map<const Signal*, uint64_t> reached;  // timelines before the first event; else 0
};

enum class HazardKind : uint8_t { ReadAfterWrite, WriteAfterRead, WriteAfterWrite };
const char* name(HazardKind kind);  // "RAW", "WAR", "WAW"

// A command of the event'th event, or that event itself where the host does it.
struct TracePlace {
  static constexpr uint32_t kHost = UINT32_MAX;
  size_t event = 0, command = 0;
  uint32_t queue = kHost;
  std::string label;
};

// Two accesses to the same bytes, at least one a write, that may happen in either order. `first`
// comes first in the order of submission.
struct Hazard {
  HazardKind kind = HazardKind::ReadAfterWrite;
  TracePlace first, second;
  const MemoryBlock* block = nullptr;
  size_t block_index = 0;     // by first appearance among the trace's accesses
  size_t begin = 0, end = 0;  // the bytes of the block that both touch
  std::string missing;        // what would order them, in words
};

struct HazardReport {
  std::vector<Hazard> hazards;       // every pair of commands, by place and bytes
  std::vector<TracePlace> stuck;     // waits for a value that is never signalled, or in a circle
  std::vector<TracePlace> unneeded;  // barriers, each of which alone could go: over-synchronized
  size_t barriers = 0;               // of the distinct lists
  bool clean() const { return hazards.empty() && stuck.empty(); }
};

// Happens-before by vector clocks, conflicts by intervals per block: the time grows with the
// accesses and with what is found, not with the pairs of commands. Rules:
// - a barrier orders all before it in its queue's stream with all after it;
// - a wait for v comes after the signal of the lowest value >= v, since timelines only rise; it
//   orders what follows in its stream; a signal comes after all before it in its stream;
// - what the host does is in order, before later submissions, after what it has waited for.
// Throws InvalidArgument where a timeline is signalled to one value twice.
HazardReport check_hazards(const Trace& trace);

// A line for each finding, at most `limit` of them:
//   RAW: #4 "mul" of queue 0, event 0 reads b1[0..64) that #2 "add" of queue 0, event 0 writes;
//   missing: a barrier between them
std::string to_text(const HazardReport& report, size_t limit = SIZE_MAX);
// JSON objects, one a line: kind (RAW, WAR, WAW, stuck_wait, unneeded_barrier) and its fields.
std::string to_json_lines(const HazardReport& report);

}  // namespace tuff::hcq

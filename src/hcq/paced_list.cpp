#include "hcq/paced_list.h"

#include <algorithm>

#include <tuff/error.h>

#include "base/log.h"

namespace tuff::hcq {
namespace {

constexpr uint32_t kMeasured = 3, kCuts = 3;  // replays that are looked at, and cut anew at most

void add_ends(CommandList& list) {
  const auto is_work = [](const Command& c) { return !c.accesses.empty(); };
  const auto first = std::find_if(list.commands.begin(), list.commands.end(), is_work);
  if (first == list.commands.end()) return;
  const auto last = std::find_if(list.commands.rbegin(), list.commands.rend(), is_work).base();
  list.timestamp_count = 2;
  list.commands.insert(last, {TimestampCmd{1}, {}, {}});
  list.commands.insert(std::find_if(list.commands.begin(), list.commands.end(), is_work),
                       {TimestampCmd{0}, {}, {}});
}

}  // namespace

PacedList::PacedList(Queue& queue, CommandList list, bool every_time)
    : queue_(queue),
      list_(std::move(list)),
      every_time_(every_time),
      limit_ns_(queue.device().target().max_submission_ns) {
  if (limit_ns_ && !every_time_ && expected_ns(list_) > limit_ns_ / 2) {
    measurements_left_ = kMeasured;
    cuts_left_ = kCuts;
  }
  parts_ = encode();
  if (!measurements_left_) list_ = {};
}

std::vector<PacedList::Part> PacedList::encode() {
  std::vector<Part> parts;
  for (ListPart& part : cut_by_time(list_, limit_ns_)) {
    std::unique_ptr<EncodedList> encoded = encode(part.list);
    if (!part.list.timestamp_count) part.list = {};
    parts.push_back({std::move(part), std::move(encoded)});
  }
  return parts;
}

std::unique_ptr<EncodedList> PacedList::encode(CommandList& list) {
  if (every_time_) add_timestamps(list);
  if (!measurements_left_) return queue_.encode(list, EncodeUse::Replay);
  CommandList plain = list;
  try {
    add_ends(list);
    return queue_.encode(list, EncodeUse::Replay);
  } catch (const Unsupported&) {  // no timestamps: expectations are all there is
    measurements_left_ = 0;
    list = std::move(plain);
    return queue_.encode(list, EncodeUse::Replay);
  }
}

uint64_t PacedList::time_of(const Part& p) const {
  if (!p.part.list.timestamp_count) return 0;
  const std::vector<uint64_t> times = queue_.timestamps(*p.encoded);
  return times[1] > times[0] ? times[1] - times[0] : 0;
}

// Where a part took longer than it may, or the whole far less than was expected, commands are from
// now on expected to take what they did, and the list is cut anew.
void PacedList::measure() {
  --measurements_left_;
  uint64_t whole = 0, longest = 0;
  std::vector<uint64_t> times;
  for (const Part& p : parts_) {
    times.push_back(time_of(p));
    whole += times.back();
    longest = std::max(longest, times.back());
  }
  const bool wrong = longest > limit_ns_ || (parts_.size() > 1 && whole < limit_ns_ / 2);
  if (!wrong || cuts_left_ == 0) return;
  --cuts_left_;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const std::span<Command> commands =
        std::span(list_.commands)
            .subspan(parts_[i].part.begin, parts_[i].part.end - parts_[i].part.begin);
    uint64_t expected = 0;
    for (const Command& c : commands) expected += c.cost_ns;
    const double rate = expected ? double(times[i]) / double(expected) : 1;
    for (Command& c : commands)
      c.cost_ns =
          std::max<uint64_t>(static_cast<uint64_t>(double(c.cost_ns) * rate), c.cost_ns > 0);
  }
  std::vector<Part> parts = encode();
  log_info("{}: a graph of {} commands took {} ms in {} submissions; {} from now on",
           queue_.device().name(), list_.commands.size(), whole / 1'000'000, parts_.size(),
           parts.size());
  parts_ = std::move(parts);
}

[[gnu::hot]]
void PacedList::submit(std::span<const uint64_t> slots, uint64_t& value) {
  if (measurements_left_ && last_value_ && queue_.passed(last_value_)) measure();
  for (Part& p : parts_) last_value_ = value = queue_.submit(*p.encoded, slots);
}

void PacedList::report(const TimesSink& sink) {
  for (Part& p : parts_) sink(p.part.list, queue_.timestamps(*p.encoded));
}

}  // namespace tuff::hcq

#include "hcq/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "hcq/device.h"

namespace tuff::hcq {
namespace {

// Names blocks and signals by order of first appearance: no address ever reaches the text.
class Printer {
 public:
  std::string line(const Command& c) {
    std::string text = std::visit([this](const auto& body) { return this->body(body); }, c.body);
    if (!c.label.empty()) text += fmt::format(" \"{}\"", c.label);
    for (const Access& a : c.accesses)
      text += fmt::format(" {}:{}", a.write ? "w" : "r", span(a.span));
    return text;
  }

 private:
  std::string span(const Span& s) {
    if (!s) return "none";
    auto [it, fresh] = blocks_.try_emplace(s.block, blocks_.size());
    return fmt::format("b{}[{}..{})", it->second, s.offset, s.offset + s.size_bytes);
  }
  size_t signal(const Signal* s) { return signals_.try_emplace(s, signals_.size()).first->second; }

  std::string body(const WaitCmd& c) {
    return fmt::format("wait s{} >= slot{}", signal(c.signal), c.value_slot);
  }
  std::string body(const SignalCmd& c) {
    return fmt::format("signal s{} = slot{}", signal(c.signal), c.value_slot);
  }
  std::string body(const TimestampCmd& c) { return fmt::format("timestamp {}", c.index); }
  std::string body(const BarrierCmd&) { return "barrier"; }
  std::string body(const DispatchCmd& c) {
    const auto count = [&](size_t axis) {
      const int32_t slot = c.group_slots[axis];
      return slot < 0 ? std::to_string(c.groups[axis]) : fmt::format("slot{}", slot);
    };
    std::string groups =
        c.indirect ? span(c.indirect) : fmt::format("{}x{}x{}", count(0), count(1), count(2));
    return fmt::format("dispatch {} args={} groups={}", c.program ? c.program->name() : "none",
                       span(c.args), groups);
  }
  std::string body(const CopyCmd& c) {
    return fmt::format("copy {} <- {}", span(c.dst), span(c.src));
  }
  std::string body(const HostCallCmd&) { return "host_call"; }

  std::unordered_map<const MemoryBlock*, size_t> blocks_;
  std::unordered_map<const Signal*, size_t> signals_;
};

bool is_work(const Command& c) {
  return std::holds_alternative<DispatchCmd>(c.body) || std::holds_alternative<CopyCmd>(c.body) ||
         std::holds_alternative<HostCallCmd>(c.body);
}

}  // namespace

void add_timestamps(CommandList& list) {
  TUFF_CHECK(list.timestamp_count == 0, "the list has timestamps of its own");
  std::vector<Command> commands;
  const auto stamp = [&] { commands.push_back({TimestampCmd{list.timestamp_count++}, {}, {}}); };
  for (Command& c : list.commands) {
    const bool work = is_work(c);
    if (work && list.timestamp_count == 0) stamp();
    commands.push_back(std::move(c));
    if (work) stamp();
  }
  list.commands = std::move(commands);
}

std::vector<TimedCommand> timed_commands(const CommandList& list, std::span<const uint64_t> times) {
  TUFF_CHECK(times.size() == list.timestamp_count, "{} times for {} timestamps", times.size(),
             list.timestamp_count);
  std::vector<TimedCommand> out;
  for (const Command& c : list.commands) {
    if (!is_work(c)) continue;
    // Clocks of a device may jump back a tick where they are calibrated anew.
    const uint64_t begin = times[out.size()], end = times[out.size() + 1];
    out.push_back({&c, begin, std::max(begin, end)});
  }
  return out;
}

std::string to_text(const CommandList& list) {
  Printer printer;
  std::string text;
  for (const Command& c : list.commands) text += printer.line(c) + "\n";
  return text;
}

}  // namespace tuff::hcq

#include "hcq/order.h"

#include <algorithm>

#include "base/check.h"
#include "hcq/byte_ranges.h"

namespace tuff::hcq {
namespace {

bool is_ordered(const Command& c) {
  return std::holds_alternative<DispatchCmd>(c.body) || std::holds_alternative<CopyCmd>(c.body);
}

// Per byte of memory: the groups of its last write and of the last read after that; 0: none.
class Levels {
 public:
  // The last group that has a conflict with the command.
  uint32_t before(const Command& c) {
    uint32_t level = 0;
    for (const Access& a : c.accesses)
      ranges_.each(a.span, [&](Touched& t) {
        level = std::max({level, t.written, a.write ? t.read : 0u});
      });
    return level;
  }
  void note(const Command& c, uint32_t level) {
    for (const Access& a : c.accesses)
      ranges_.each(a.span, [&](Touched& t) {
        if (a.write) {
          t = {level, 0};
        } else {
          t.read = std::max(t.read, level);
        }
      });
  }

 private:
  struct Touched {
    uint32_t written = 0, read = 0;
  };
  ByteRanges<Touched> ranges_;
};

// Arranges what stands between two commands that nothing moves across.
void order_run(std::span<Command> run) {
  Levels levels;
  std::vector<std::pair<uint32_t, size_t>> order;
  for (size_t i = 0; i < run.size(); ++i) {
    const uint32_t level = levels.before(run[i]) + 1;
    levels.note(run[i], level);
    order.emplace_back(level, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Command> sorted;
  sorted.reserve(run.size());
  for (const auto& [level, i] : order) sorted.push_back(std::move(run[i]));
  std::move(sorted.begin(), sorted.end(), run.begin());
}

}  // namespace

void order_by_levels(CommandList& list) {
  std::span<Command> all(list.commands);
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && is_ordered(all[end])) ++end;
    order_run(all.subspan(begin, end - begin));
    begin = end + 1;
  }
}

void insert_barriers(CommandList& list) {
  Levels levels;
  uint32_t group = 1;
  std::vector<Command> result;
  result.reserve(list.commands.size() * 3 / 2 + 1);
  for (Command& c : list.commands) {
    if (std::holds_alternative<BarrierCmd>(c.body)) {
      ++group;
    } else if (levels.before(c) == group) {
      result.push_back({BarrierCmd{}, {}, {}});
      ++group;
    }
    levels.note(c, group);
    result.push_back(std::move(c));
  }
  list.commands = std::move(result);
}

uint64_t expected_ns(const CommandList& list) {
  uint64_t total = 0;
  for (const Command& c : list.commands) total += c.cost_ns;
  return total;
}

std::vector<ListPart> cut_by_time(const CommandList& list, uint64_t limit_ns) {
  TUFF_CHECK(list.timestamp_count == 0, "a list with timestamps is not cut");
  std::vector<ListPart> parts(1);
  uint64_t spent = 0;
  for (size_t i = 0; i < list.commands.size(); ++i) {
    const uint64_t cost = list.commands[i].cost_ns;
    if (limit_ns && spent && spent + cost > limit_ns) {
      parts.back().end = i;
      parts.push_back({.begin = i, .list = {}});
      spent = 0;
    }
    spent += cost;
  }
  parts.back().end = list.commands.size();
  if (parts.size() == 1) {
    parts[0].list = list;
    return parts;
  }
  for (ListPart& p : parts) {
    p.list.slot_count = list.slot_count;
    for (size_t i = p.begin; i < p.end; ++i) {
      const Command& c = list.commands[i];
      if (!std::holds_alternative<BarrierCmd>(c.body)) p.list.commands.push_back(c);
    }
    insert_barriers(p.list);
  }
  return parts;
}

}  // namespace tuff::hcq

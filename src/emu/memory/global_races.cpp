#include "emu/memory/global_races.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace tuff::emu {
namespace {

bool is_load(const Access& access) {
  return access.kind == AccessKind::Load || access.kind == AccessKind::ScalarLoad;
}

}  // namespace

GlobalRaces::Group& GlobalRaces::group_of(uint32_t workgroup) {
  if (!last_group_ || workgroup != last_workgroup_) {
    last_group_ = &groups_[workgroup];
    last_workgroup_ = workgroup;
  }
  return *last_group_;
}

GlobalRaces::Line& GlobalRaces::line_at(uint64_t address) {
  const uint64_t number = address / kPageBytes;
  Recent& recent = recent_[number % recent_.size()];
  if (recent.number != number) {
    auto& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    recent = {number, page.get()};
  }
  return (*recent.page)[address % kPageBytes / kLineBytes];
}

void GlobalRaces::refine(Line& line, uint32_t count) {
  if (line.count >= count) return;
  if (line.capacity < count) {
    auto more = std::make_unique<Shadow[]>(count);
    std::copy_n(line.parts.get(), line.count == 1 ? 0 : line.count, more.get());
    line.parts = std::move(more);
    line.capacity = count;
  }
  Shadow* parts = line.parts.get();
  if (line.count == 1) std::fill_n(parts, count, line.whole);
  // From behind: what is spread has been read.
  for (uint32_t k = count; line.count > 1 && k-- > 0;) parts[k] = parts[k * line.count / count];
  line.count = count;
}

// The shadows of bytes within one line.
GlobalRaces::Part GlobalRaces::part_of(uint64_t begin, uint64_t end) {
  Line& line = line_at(begin);
  const uint64_t first = begin % kLineBytes, bytes = end - begin;
  if (bytes == kLineBytes) return {&line, line.shadows(), true};
  refine(line, (first | bytes) % 4 == 0 ? kLineBytes / 4 : kLineBytes);
  const uint64_t grain = kLineBytes / line.count;
  return {&line, line.shadows().subspan(first / grain, bytes / grain), false};
}

// Valid until the next call.
std::span<const GlobalRaces::Part> GlobalRaces::parts_of(const Access& access) {
  TUFF_CHECK(access.bytes <= kMostRunBytes, "an access of {} bytes", access.bytes);
  size_t count = 0;
  const uint64_t end = access.address + access.bytes;
  for (uint64_t at = access.address; at < end;) {
    const uint64_t line_end = std::min(end, (at / kLineBytes + 1) * kLineBytes);
    parts_[count++] = part_of(at, line_end);
    at = line_end;
  }
  return std::span(parts_).first(count);
}

bool GlobalRaces::knows(const Group& group, uint32_t other, uint32_t time) {
  const auto found = group.known.find(other);
  return found != group.known.end() && found->second >= time;
}

void GlobalRaces::learn(Group& group, uint32_t other, uint32_t time) {
  uint32_t& known = group.known[other];
  if (known >= time) return;
  known = time;
  ++group.changes;
}

bool GlobalRaces::races_with_writer(const Shadow& seen, const Access& access, const Group& group) {
  const bool other_wrote = seen.writer && seen.writer != access.workgroup + 1;
  if (!other_wrote || (access.kind == AccessKind::Atomic && seen.written_by_atomic)) return false;
  return !knows(group, seen.writer - 1, seen.written_at);
}

bool GlobalRaces::races_with_reader(const Shadow& seen, const Access& access, const Group& group) {
  if (is_load(access) || seen.reader == 0 || seen.reader == access.workgroup + 1) return false;
  // A group that knows of no other cannot know of all of several readers.
  if (seen.reader == kMany) return group.known.empty();
  return !knows(group, seen.reader - 1, seen.read_at);
}

bool GlobalRaces::races(const Shadow& seen, const Access& access, const Group& group) {
  if (is_load(access) && access.device_scope) return false;  // an atomic load
  return races_with_writer(seen, access, group) || races_with_reader(seen, access, group);
}

std::string GlobalRaces::describe(const Shadow& seen, const Access& access, const Group& group) {
  if (races_with_writer(seen, access, group)) {
    return fmt::format("workgroup {} wrote these bytes{}, and nothing orders the two",
                       seen.writer - 1, seen.written_by_atomic ? " by an atomic" : "");
  }
  if (seen.reader == kMany) return "other workgroups read these bytes, and nothing orders them";
  return fmt::format("workgroup {} read these bytes, and nothing orders the two", seen.reader - 1);
}

GlobalRaces::Shadow GlobalRaces::after(const Shadow& seen, const Access& access,
                                       const Group& group) {
  const uint32_t me = access.workgroup + 1, now = group.time & 0x7FFFFFFF;
  if (!is_load(access)) return {me, group.time, 0, 0, access.kind == AccessKind::Atomic};
  Shadow out = seen;
  const bool alone = seen.reader == 0 || seen.reader == me ||
                     (seen.reader != kMany && knows(group, seen.reader - 1, seen.read_at));
  out.reader = alone ? me : kMany;
  out.read_at = alone ? now : 0;
  return out;
}

// The first seen that the access races with, or null.
const GlobalRaces::Shadow* GlobalRaces::find_race(const Part& part, const Access& access,
                                                  const Group& group) {
  const Shadow* fine = nullptr;
  for (const Shadow& seen : part.shadows) {
    if (fine && seen == *fine) continue;
    if (races(seen, access, group)) return &seen;
    fine = &seen;
  }
  return nullptr;
}

void GlobalRaces::apply(const Part& part, const Access& access, Group& group) {
  if (is_load(access) && access.device_scope) {  // an atomic load
    for (const Shadow& seen : part.shadows) {
      const bool other = seen.writer && seen.writer != access.workgroup + 1;
      if (other) learn(group, seen.writer - 1, seen.written_at - 1);
    }
    return;
  }
  Shadow before = part.shadows[0], now = after(before, access, group);
  bool same = true;
  for (Shadow& seen : part.shadows) {
    if (seen != before) {
      before = seen;
      const Shadow next = after(before, access, group);
      same &= next == now;
      now = next;
    }
    seen = now;
  }
  if (!part.whole || !same) return;
  part.line->whole = now;
  part.line->count = 1;
}

bool GlobalRaces::note(const Access& access) {
  Group& group = group_of(access.workgroup);
  const std::span<const Part> parts = parts_of(access);
  for (const Part& part : parts) {
    if (find_race(part, access, group)) return false;
  }
  for (const Part& part : parts) apply(part, access, group);
  return true;
}

// What the word has published becomes known, then what is known is published.
void GlobalRaces::synchronize(const Access& access, Group& group, bool acquires,
                              uint32_t unfinished_since) {
  SyncWord& word = sync_[access.address];
  const bool alone = word.last_group == access.workgroup;
  if (acquires && !alone) {
    for (const auto& [other, time] : word.published) {
      if (other != access.workgroup) learn(group, other, time);
    }
  }
  if (!alone || word.last_changes != group.changes) {
    for (const auto& [other, time] : group.known) {
      uint32_t& published = word.published[other];
      published = std::max(published, time);
    }
  }
  // An atomic may reach the L2 before a store that was not waited for.
  uint32_t& mine = word.published[access.workgroup];
  mine = std::max(mine, unfinished_since ? unfinished_since - 1 : group.time);
  ++group.time;
  word.last_group = acquires || alone ? access.workgroup : kMany;
  word.last_changes = group.changes;
}

std::optional<std::string> GlobalRaces::touch(const Access& access, bool acquires,
                                              uint32_t unfinished_since) {
  Group& group = group_of(access.workgroup);
  std::optional<std::string> found;
  for (const Part& part : parts_of(access)) {
    const Shadow* seen = found ? nullptr : find_race(part, access, group);
    if (seen) found = describe(*seen, access, group);
    apply(part, access, group);
  }
  if (access.kind == AccessKind::Atomic) synchronize(access, group, acquires, unfinished_since);
  return found;
}

void GlobalRaces::advance(uint32_t workgroup) { ++group_of(workgroup).time; }

}  // namespace tuff::emu

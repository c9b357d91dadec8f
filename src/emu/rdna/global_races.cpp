#include "emu/rdna/global_races.h"

#include <fmt/format.h>

#include <algorithm>

namespace tuff::emu::rdna {

GlobalRaces::Line& GlobalRaces::line_at(uint64_t address) {
  const uint64_t number = address / kLineBytes;
  Recent& recent = recent_[number % recent_.size()];
  if (recent.number != number) {
    auto& line = lines_[number];
    if (!line) line = std::make_unique<Line>();
    recent = {number, line.get()};
  }
  return *recent.line;
}

bool GlobalRaces::knows(const Group& group, uint32_t other, uint32_t time) const {
  const auto found = group.known.find(other);
  return found != group.known.end() && found->second >= time;
}

void GlobalRaces::learn(Group& group, uint32_t other, uint32_t time) {
  uint32_t& known = group.known[other];
  if (known >= time) return;
  known = time;
  ++group.changes;
}

std::optional<std::string> GlobalRaces::conflict(const State& state, const Access& access,
                                                 const Group& group) {
  const uint32_t me = access.workgroup + 1;
  const bool atomic = access.kind == AccessKind::Atomic;
  const bool other_wrote =
      state.writer && state.writer != me && !knows(group, state.writer - 1, state.written_at);
  if (other_wrote && !(atomic && state.written_by_atomic)) {
    return fmt::format("workgroup {} wrote these bytes{}, and nothing orders the two",
                       state.writer - 1, state.written_by_atomic ? " by an atomic" : "");
  }
  if (access.kind != AccessKind::Store && !atomic) return {};
  // Of several readers one that has heard of nobody cannot have heard of all.
  if (state.reader == kMany && group.known.empty()) {
    return "other workgroups read these bytes, and nothing orders them";
  }
  const bool one_reader = state.reader && state.reader != kMany && state.reader != me;
  if (one_reader && !knows(group, state.reader - 1, state.read_at)) {
    return fmt::format("workgroup {} read these bytes, and nothing orders the two",
                       state.reader - 1);
  }
  return {};
}

std::optional<std::string> GlobalRaces::touch_state(State& state, const Access& access,
                                                    Group& group) {
  const uint32_t me = access.workgroup + 1;
  const bool load = access.kind == AccessKind::Load || access.kind == AccessKind::ScalarLoad;
  if (load && access.device_scope) {  // an atomic load
    if (state.writer && state.writer != me) learn(group, state.writer - 1, state.written_at - 1);
    return {};
  }
  auto found = conflict(state, access, group);
  if (load) {
    const bool alone = state.reader == 0 || state.reader == me ||
                       (state.reader != kMany && knows(group, state.reader - 1, state.read_at));
    state.reader = alone ? me : kMany;
    state.read_at = group.time;
  } else {
    state = {me, group.time, 0, 0, access.kind == AccessKind::Atomic};
  }
  return found;
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

void GlobalRaces::split(Line& line) {
  if (line.bytes) return;
  line.bytes = std::make_unique<std::array<State, kLineBytes>>();
  for (size_t k = 0; k < kLineBytes; ++k) (*line.bytes)[k] = line.words[k / 4];
}

std::optional<std::string> GlobalRaces::touch(const Access& access, bool acquires,
                                              uint32_t unfinished_since) {
  Group& group = groups_[access.workgroup];
  std::optional<std::string> found;
  const bool whole = (access.address | access.bytes) % 4 == 0;
  for (uint64_t at = access.address; at < access.address + access.bytes;) {
    Line& line = line_at(at);
    if (!whole) split(line);
    const uint64_t in_line = at % kLineBytes;
    State& state = line.bytes ? (*line.bytes)[in_line] : line.words[in_line / 4];
    at += line.bytes ? 1 : 4;
    auto one = touch_state(state, access, group);
    if (one && !found) found = std::move(one);
  }
  if (access.kind == AccessKind::Atomic) synchronize(access, group, acquires, unfinished_since);
  return found;
}

void GlobalRaces::advance(uint32_t workgroup) { ++groups_[workgroup].time; }

}  // namespace tuff::emu::rdna

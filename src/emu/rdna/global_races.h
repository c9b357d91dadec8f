// Races in global memory between the workgroups of one dispatch, byte by byte. The hardware starts
// workgroups in no order that a kernel may rely on, so two that touch a byte, one of them writing,
// race unless something that one waits for and the other does stands between. Told of every access
// by machine.cpp.
//
// Workgroups are the threads of a happens-before detector. Atomics on one word order what a
// workgroup did before its atomic with what another does after its own, if that returns a value; a
// load of device scope does so with the store or atomic that it reads. Before is what was waited
// for: a wave's stores that vscnt still counts may come later. Source: Flanagan, Freund,
// "FastTrack: Efficient and Precise Dynamic Race Detection" (2009).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "emu/rdna/memory.h"

namespace tuff::emu::rdna {

class GlobalRaces {
 public:
  // What the access races with, or nothing. `acquires`: an atomic whose old value comes back.
  // `unfinished_since`: the time of the oldest store that the wave has not waited for, or 0.
  std::optional<std::string> touch(const Access& access, bool acquires, uint32_t unfinished_since);
  // The workgroup waited for its loads or stores: those that come are apart from those before.
  void advance(uint32_t workgroup);
  uint32_t time(uint32_t workgroup) { return groups_[workgroup].time; }

 private:
  // What one byte, or four that were always touched together, has seen.
  struct State {
    uint32_t writer = 0, written_at = 0;  // workgroup + 1; the time of that workgroup
    uint32_t reader = 0, read_at = 0;     // kMany: several, none of which knew of the others
    bool written_by_atomic = false;
  };
  static constexpr uint32_t kMany = ~0u;
  static constexpr uint32_t kLineBytes = 64;
  struct Line {
    std::array<State, kLineBytes / 4> words;
    std::unique_ptr<std::array<State, kLineBytes>> bytes;  // once somebody touched part of a word
  };
  using Clock = std::unordered_map<uint32_t, uint32_t>;  // the time of others that is known
  struct Group {
    uint32_t time = 1;
    Clock known;
    uint64_t changes = 0;  // of `known`
  };
  struct SyncWord {
    Clock published;
    uint32_t last_group = kMany;
    uint64_t last_changes = 0;
  };

  Line& line_at(uint64_t address);
  void split(Line& line);
  bool knows(const Group& group, uint32_t other, uint32_t time) const;
  void learn(Group& group, uint32_t other, uint32_t time);
  std::optional<std::string> touch_state(State& state, const Access& access, Group& group);
  std::optional<std::string> conflict(const State& state, const Access& access, const Group& group);
  void synchronize(const Access& access, Group& group, bool acquires, uint32_t unfinished_since);

  std::unordered_map<uint64_t, std::unique_ptr<Line>> lines_;
  std::unordered_map<uint32_t, Group> groups_;
  std::unordered_map<uint64_t, SyncWord> sync_;
  struct Recent {
    uint64_t number = ~uint64_t(0);
    Line* line = nullptr;
  };
  std::array<Recent, 16> recent_;
};

}  // namespace tuff::emu::rdna

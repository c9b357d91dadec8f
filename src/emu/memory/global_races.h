// Races in global memory between the workgroups of one dispatch, byte by byte. The hardware starts
// workgroups in no order that a kernel may rely on, so two that touch a byte, one of them writing,
// race unless something that one waits for and the other does stands between. Told of every access
// by rdna/machine.cpp and ptx/memory_access.cpp, which calls blocks what are workgroups here.
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
#include <span>
#include <string>
#include <unordered_map>

#include "emu/memory/memory.h"

namespace tuff::emu {

class GlobalRaces {
 public:
  // Notes a load or store and returns true, or returns false with nothing noted: it races.
  bool note(const Access& access);
  // Notes any access. What it races with, or nothing. `acquires`: an atomic whose old value comes
  // back. `unfinished_since`: the time of the oldest store that the wave has not waited for, or 0.
  std::optional<std::string> touch(const Access& access, bool acquires, uint32_t unfinished_since);
  // The workgroup waited for its loads or stores: those that come are apart from those before.
  void advance(uint32_t workgroup);
  uint32_t time(uint32_t workgroup) { return group_of(workgroup).time; }

 private:
  static constexpr uint32_t kMany = ~0u;
  static constexpr uint32_t kLineBytes = 64, kPageBytes = 4096;
  // What bytes that were always touched together have seen.
  struct Shadow {
    uint32_t writer = 0, written_at = 0;  // workgroup + 1; the time of that workgroup
    uint32_t reader = 0;                  // kMany: several, none of which knew of the others
    uint32_t read_at : 31 = 0;            // 0 for kMany
    uint32_t written_by_atomic : 1 = 0;
    bool operator==(const Shadow&) const = default;
  };
  // One seen for all its bytes until an access touches a part, then of words, then of bytes.
  struct Line {
    Shadow whole;
    std::unique_ptr<Shadow[]> parts;
    uint32_t count = 1;     // of shadows: 1, 16 or 64
    uint32_t capacity = 0;  // of `parts`
    std::span<Shadow> shadows() { return {count == 1 ? &whole : parts.get(), count}; }
  };
  // What an access touches of a line.
  struct Part {
    Line* line = nullptr;
    std::span<Shadow> shadows;
    bool whole = false;
  };
  using Page = std::array<Line, kPageBytes / kLineBytes>;
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

  Group& group_of(uint32_t workgroup);
  Line& line_at(uint64_t address);
  static void refine(Line& line, uint32_t count);
  Part part_of(uint64_t begin, uint64_t end);
  std::span<const Part> parts_of(const Access& access);
  static bool knows(const Group& group, uint32_t other, uint32_t time);
  static void learn(Group& group, uint32_t other, uint32_t time);
  static bool races_with_writer(const Shadow& seen, const Access& access, const Group& group);
  static bool races_with_reader(const Shadow& seen, const Access& access, const Group& group);
  static bool races(const Shadow& seen, const Access& access, const Group& group);
  static Shadow after(const Shadow& seen, const Access& access, const Group& group);
  static std::string describe(const Shadow& seen, const Access& access, const Group& group);
  static const Shadow* find_race(const Part& part, const Access& access, const Group& group);
  static void apply(const Part& part, const Access& access, Group& group);
  void synchronize(const Access& access, Group& group, bool acquires, uint32_t unfinished_since);

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<uint32_t, Group> groups_;
  std::unordered_map<uint64_t, SyncWord> sync_;
  struct Recent {
    uint64_t number = ~uint64_t(0);
    Page* page = nullptr;
  };
  std::array<Recent, 64> recent_;
  std::array<Part, kMostRunBytes / kLineBytes + 1> parts_;
  uint32_t last_workgroup_ = 0;
  Group* last_group_ = nullptr;
};

}  // namespace tuff::emu

// The state of one warp of 32 lanes and of its block. Changed by what executes and by the dispatch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emu/ptx/finding.h"
#include "emu/ptx/module.h"
#include "emu/ptx/thread_races.h"

namespace tuff::emu::ptx {

class Machine;

inline constexpr uint32_t kWarpLanes = 32;
// A register of all lanes; narrower types are the low bits.
struct alignas(64) Lanes {
  std::array<uint64_t, kWarpLanes> v{};
  uint64_t& operator[](uint32_t lane) { return v[lane]; }
  const uint64_t& operator[](uint32_t lane) const { return v[lane]; }
};

// A call of a function by the lanes that made it together.
struct Frame {
  const Function* function = nullptr;
  Frame* parent = nullptr;
  uint32_t return_to = 0;  // an instruction of the parent's function
  const CallSite* site = nullptr;
  uint32_t depth = 0;
  uint32_t lanes = 0;       // that are in it, or in what it calls
  uint32_t local_base = 0;  // of its variables, in the local memory of each lane
  std::vector<Lanes> values;
  std::vector<uint32_t> defined;  // lanes of each register that hold a value
  // Of registers that are not defined, by lane: the bits that are (known_bits.h).
  std::unordered_map<uint32_t, Lanes> known_bits;
  std::vector<uint32_t> predicates, predicates_defined;
  std::vector<uint8_t> parameters;          // of the frame's own parameter space, lane by lane
  std::vector<uint8_t> parameters_written;  // 1 for each byte that has a value

  void forget_bits(uint32_t reg, uint32_t lanes);
};

// Lanes that stand at the same instruction of the same call.
struct Group {
  enum class State : uint8_t { Ready, AtBarrier, AtWarpSync };
  uint32_t lanes = 0, pc = 0;
  Frame* frame = nullptr;
  State state = State::Ready;
  bool forced = false;  // at a warp-wide instruction: it goes on without the lanes that are missing
  uint32_t barrier = 0;
  const Instruction* at = nullptr;  // the barrier's instruction
};

struct Warp;

// One of the 16 barriers of a block.
struct BarrierState {
  std::vector<uint32_t> arrived;           // lanes, by warp
  std::vector<const Instruction*> by;      // where the warp's first lanes came from
  uint32_t wanted_threads = 0;             // 0: all that have not ended
  uint32_t all = ~0u, any = 0, count = 0;  // of the predicates of bar.red
  bool in_use = false;
};

struct Block {
  uint32_t number = 0;
  std::array<uint32_t, 3> id{};
  uint32_t threads = 0;
  std::vector<uint8_t> shared, shared_written;
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<BarrierState, 16> barriers;
  std::optional<ThreadRaces> shared_races, global_races;
  uint32_t unfinished_since = 0;  // as of a warp, of what came before the last barrier
};

struct Warp {
  Machine* machine = nullptr;
  Block* block = nullptr;
  uint32_t number = 0;
  uint32_t present = 0, ended = 0;  // lanes
  std::vector<Group> groups;
  std::vector<std::unique_ptr<Frame>> frames;
  uint64_t frame_bytes = 0;  // of all of them
  Frame* frame = nullptr;                     // of the group that executes
  uint32_t carry = 0;                         // CC.CF of each lane (9.7.2)
  std::vector<uint8_t> local, local_written;  // lane by lane
  uint32_t local_bytes = 0;                   // of a lane
  uint32_t unfinished_since = 0;  // the block's time at the oldest store that no fence followed

  uint32_t live() const { return present & ~ended; }
  Lanes& value(uint32_t reg) { return frame->values[reg]; }
  const Lanes& value(uint32_t reg) const { return frame->values[reg]; }
  uint32_t thread(uint32_t lane) const { return number * kWarpLanes + lane; }
  void define(uint32_t reg, uint32_t lanes, uint32_t defined_lanes) {
    uint32_t& d = frame->defined[reg];
    d = (d & ~lanes) | (lanes & defined_lanes);
    if ((lanes & ~defined_lanes) && !frame->known_bits.empty())
      frame->forget_bits(reg, lanes & ~defined_lanes);
  }
  void define_predicate(uint32_t reg, uint32_t lanes, uint32_t defined_lanes) {
    uint32_t& d = frame->predicates_defined[reg];
    d = (d & ~lanes) | (lanes & defined_lanes);
  }
  void set_predicate(uint32_t reg, uint32_t lanes, uint32_t values) {
    uint32_t& p = frame->predicates[reg];
    p = (p & ~lanes) | (lanes & values);
  }
  // Source k, with its negation.
  uint32_t predicate(const Instruction& i, uint32_t k = 0) const {
    const uint32_t p = frame->predicates[i.predicate_sources[k]];
    return i.predicate_negated[k] ? ~p : p;
  }
};

template <class F>
void for_each_set(uint32_t lanes, F f) {
  for (; lanes; lanes &= lanes - 1) f(uint32_t(std::countr_zero(lanes)));
}

}  // namespace tuff::emu::ptx

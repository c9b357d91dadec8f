// The state of one wave of 32 lanes and of its workgroup. Changed by the executing functions alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emu/rdna/float_mode.h"
#include "emu/rdna/step.h"

namespace tuff::emu::rdna {

class Machine;

inline constexpr int kLanes = 32;
using Words = std::array<uint32_t, kLanes>;
// What a mask has of each lane: loops over it become vector comparisons, which variable shifts do
// not on every machine.
inline constexpr Words kLaneBit = [] {
  Words bits{};
  for (int k = 0; k < kLanes; ++k) bits[size_t(k)] = 1u << k;
  return bits;
}();

// A word or a byte of LDS: who touched it since the last barrier of the workgroup.
struct LdsShadow {
  uint32_t epoch = 0;
  uint8_t writer = 0, reader = 0;  // wave + 1; reader 255: several
};

// An access of a wave to LDS, and the serial number of its instruction among those of lgkmcnt.
struct LdsAccess {
  uint32_t at = 0, bytes = 0, serial = 0;
  bool is_store = false;
};

struct Workgroup {
  uint32_t number = 0;
  std::array<uint32_t, 3> id{};
  std::vector<uint8_t> lds;
  std::vector<LdsShadow> shadow;  // of words, of bytes once a part of a word was touched alone
  bool shadow_by_bytes = false;
  uint32_t epoch = 1;  // counts barriers
};

// The counters of s_waitcnt: what was issued and what is known to have completed.
enum class Counter : uint8_t { Vector, Lds, Scalar, Count };  // vmcnt, lgkmcnt in order, and not

struct Wave {
  alignas(64) std::array<Words, 256> v;
  std::array<uint32_t, 256> v_written;  // lanes of each register that hold a value
  std::array<uint32_t, 128> s;
  std::array<bool, 128> s_written;
  bool scc = false, ended = false, at_barrier = false;
  uint32_t mode = kDefaultMode;
  uint64_t pc = 0;      // of the next instruction
  uint32_t number = 0;  // within the workgroup
  Workgroup* group = nullptr;
  Machine* machine = nullptr;
  std::vector<uint8_t> scratch;  // lane by lane
  uint32_t scratch_bytes = 0;    // of a lane

  // Results on their way: the serial number of the operation that a register waits for, per
  // counter.
  std::array<uint32_t, size_t(Counter::Count)> issued{}, completed{};
  std::array<uint32_t, 256> v_vector_load{}, v_lds_load{};
  std::array<uint32_t, 256> v_load_lanes{};  // that the loads on their way write
  std::array<uint32_t, 128> s_load{};
  bool outstanding = false;
  uint32_t unfinished_since = 0;  // the group's time at the oldest store that vscnt has; 0: none
  std::vector<LdsAccess>
      lds_on_the_way;  // those that no s_waitcnt has waited for, and maybe others

  uint32_t exec() const { return s[source::ExecLo]; }
  uint32_t vcc() const { return s[source::VccLo]; }
};

}  // namespace tuff::emu::rdna

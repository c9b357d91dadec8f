#include "emu/ptx/memory_access.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "emu/ptx/counters.h"

namespace tuff::emu::ptx {
namespace {

// Two values of so many bits, the same as floats: equal, zeros of either sign, or NaNs. Of 16 and of
// 8 bits in the format whose infinity is the lower one.
bool are_one_float(uint64_t a, uint64_t b, uint32_t bits) {
  const uint64_t infinity = bits == 64   ? 0x7ff0'0000'0000'0000
                            : bits == 32 ? 0x7f80'0000
                            : bits == 16 ? 0x7c00
                                         : 0x7c;
  const uint64_t magnitude = ~uint64_t{0} >> (65 - bits);
  const uint64_t first = a & magnitude, second = b & magnitude;
  return a == b || (first == 0 && second == 0) || (first > infinity && second > infinity);
}

bool writes(AccessKind kind) { return kind == AccessKind::Store || kind == AccessKind::Atomic; }

const char* verb(AccessKind kind) {
  return kind == AccessKind::Store ? "write" : kind == AccessKind::Atomic ? "change" : "read";
}

// Where the bytes of a space lie, lane by lane or shared by all.
struct Place {
  uint8_t* bytes = nullptr;
  uint8_t* written = nullptr;  // null: all of them are
  uint64_t size = 0;
};

Place place_of(Warp& w, const MemoryForm& m, Space space, uint32_t lane) {
  switch (space) {
    case Space::Shared: {
      Block& b = *w.block;
      return {b.shared.data(), b.shared_written.data(), b.shared.size()};
    }
    case Space::Local: {
      const uint64_t begin = uint64_t(lane) * w.local_bytes;
      return {w.local.data() + begin, w.local_written.data() + begin, w.local_bytes};
    }
    default: break;
  }
  if (!m.in_frame) {
    const auto& block = w.machine->launch().parameters;
    return {const_cast<uint8_t*>(block.data()), nullptr, block.size()};
  }
  const uint64_t bytes = w.frame->function->parameter_bytes, begin = lane * bytes;
  return {w.frame->parameters.data() + begin, w.frame->parameters_written.data() + begin, bytes};
}

// Bytes that are 0 or 1.
bool all_set(const uint8_t* bytes, uint32_t count) {
  if (count == 4) {
    uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word == 0x01010101;
  }
  return std::find(bytes, bytes + count, 0) == bytes + count;
}

// The detector says "workgroup" of what PTX calls a block.
std::string in_words_of_ptx(std::string text) {
  constexpr std::string_view kGroup = "workgroup";
  for (size_t at = 0; (at = text.find(kGroup, at)) != std::string::npos;)
    text.replace(at, kGroup.size(), "block");
  return text;
}

const char* name_of(Space space) {
  return space == Space::Shared  ? "the block's shared memory"
         : space == Space::Local ? "the thread's local memory"
                                 : "the parameters";
}

class WarpAccess {
 public:
  WarpAccess(Warp& w, const MemoryForm& m, const Addresses& at, const AccessShape& shape)
      : w_(w), machine_(*w.machine), m_(m), at_(at), shape_(shape) {}

  LaneBytes reach(uint32_t lanes) {
    lanes = check_alignment(lanes);
    if (m_.space != Space::Generic) {
      into(m_.space, lanes);
      return out_;
    }
    for (const Space space : {Space::Shared, Space::Local, Space::Param}) {
      uint32_t there = 0;
      for_each_set(lanes, [&](uint32_t k) {
        there |= uint32_t((at_[k] & kWindowMask) == window_of(space)) << k;
      });
      if (there) into(space, there);
      lanes &= ~there;
    }
    if (lanes) into(Space::Global, lanes);
    return out_;
  }

 private:
  void report(FindingKind kind, uint32_t lane, uint64_t address, std::string detail) {
    machine_.report(w_, kind, lane, address, std::move(detail));
  }

  // PTX ISA, 6.4.1: addresses are multiples of the size of what is accessed.
  uint32_t check_alignment(uint32_t lanes) {
    uint64_t low = 0;
    for_each_set(lanes, [&](uint32_t k) { low |= at_[k]; });
    if ((low & (shape_.alignment - 1)) == 0) return lanes;
    for_each_set(lanes, [&](uint32_t k) {
      if ((at_[k] & (shape_.alignment - 1)) == 0) return;
      report(FindingKind::Misaligned, k, at_[k],
             fmt::format("a multiple of {} is wanted", shape_.alignment));
      machine_.stop();
      lanes &= ~(1u << k);
    });
    return lanes;
  }

  void into(Space space, uint32_t lanes) {
    if (space == Space::Global || space == Space::Const) {
      into_global(lanes);
      return;
    }
    const uint64_t window = m_.space == Space::Generic ? window_of(space) : 0;
    if (space == Space::Shared) return into_shared(lanes, window);
    for_each_set(lanes, [&](uint32_t k) { into_place(space, k, at_[k] - window); });
  }

  // As into_place(), for the space that most is asked of.
  void into_shared(uint32_t lanes, uint64_t window) {
    Block& b = *w_.block;
    const uint64_t size = b.shared.size();
    const bool reads = shape_.kind != AccessKind::Store, stores = writes(shape_.kind);
    for_each_set(lanes, [&](uint32_t k) {
      const uint64_t at = at_[k] - window;
      if (at > size || size - at < shape_.bytes) return into_place(Space::Shared, k, at);
      uint8_t* const written = b.shared_written.data() + at;
      if (reads && !all_set(written, shape_.bytes)) out_.undefined |= 1u << k;
      if (stores) std::memset(written, 1, shape_.bytes);
      out_.at[k] = b.shared.data() + at;
      out_.lanes |= 1u << k;
    });
    if (b.shared_races) note_shared(lanes, window);
  }

  void into_place(Space space, uint32_t lane, uint64_t at) {
    const Place place = place_of(w_, m_, space, lane);
    const bool read_only = space == Space::Param && !m_.in_frame && writes(shape_.kind);
    if (at > place.size || place.size - at < shape_.bytes || read_only) {
      report(FindingKind::OutOfBounds, lane, at,
             fmt::format("{} bytes to {} at {} of the {} bytes of {}", shape_.bytes,
                         verb(shape_.kind), at, place.size, name_of(space)));
      machine_.stop();
      return;
    }
    out_.at[lane] = place.bytes + at;
    out_.lanes |= 1u << lane;
    if (!place.written) return;
    if (shape_.kind != AccessKind::Store) {
      if (!all_set(place.written + at, shape_.bytes)) out_.undefined |= 1u << lane;
    }
  }

  ThreadAccess thread_access(uint64_t address) const {
    return {address, shape_.bytes, writes(shape_.kind), shape_.strong};
  }

  void note_thread(ThreadRaces& races, uint32_t lane, uint64_t address, const char* where) {
    const uint32_t me = w_.thread(lane);
    const ThreadAccess access = thread_access(address);
    if (races.is_quiet(access)) return;
    const auto other = races.touch(me, access);
    if (shape_.strong) {
      const bool loads = shape_.kind == AccessKind::Load;
      races.synchronize(me, address, loads || shape_.acquires, !loads);
    }
    if (!other || is_same_store(lane, *other)) return;
    report(FindingKind::Race, lane, address,
           *other == me ? fmt::format("other threads of the block used these bytes of {}, and "
                                      "nothing orders the accesses",
                                      where)
                        : fmt::format("thread {} of the block used these bytes of {}, and nothing "
                                      "orders the two",
                                      *other, where));
  }

  // Whichever of two lanes of one store comes last: the value is the same. What lanes have reduced
  // together may leave each its own NaN, or zero.
  bool is_same_store(uint32_t lane, uint32_t other) const {
    if (shape_.kind != AccessKind::Store || other / kWarpLanes != w_.number) return false;
    const uint32_t theirs = other % kWarpLanes;
    return theirs < lane && (out_.lanes >> theirs & 1) && at_[theirs] == at_[lane] &&
           stores_the_same(theirs, lane);
  }

  // What is stored is the low bits of a register.
  bool stores_the_same(uint32_t a, uint32_t b) const {
    const Instruction& i = *machine_.current;
    const uint32_t bits = 8 * shape_.bytes / i.sources;
    const uint64_t mask = ~uint64_t{0} >> (64 - bits);
    for (uint32_t k = 0; k < i.sources; ++k) {
      const Lanes& value = w_.value(i.s(k));
      if (!are_one_float(value[a] & mask, value[b] & mask, bits)) return false;
    }
    return true;
  }

  void note_shared(uint32_t lanes, uint64_t window) {
    for_each_set(lanes & out_.lanes, [&](uint32_t k) {
      note_thread(*w_.block->shared_races, k, at_[k] - window, "shared memory");
    });
  }

  Access global_access(uint64_t address, uint32_t bytes) const {
    const bool strong_store = shape_.strong && shape_.kind == AccessKind::Store;
    const bool device = shape_.scope != Scope::Block;
    return {address, bytes, strong_store ? AccessKind::Atomic : shape_.kind,
            shape_.strong && device, w_.block->number};
  }

  void into_global(uint32_t lanes) {
    for (LaneRuns runs(at_, lanes, shape_.bytes); !runs.done();) {
      const LaneRun run = runs.next();
      uint8_t* bytes = reach_run(run);
      for_each_set(run.lanes, [&](uint32_t k) {
        uint8_t* own = bytes ? bytes + (at_[k] - run.begin) : reach_one(k);
        if (!own) return;
        out_.at[k] = own;
        out_.lanes |= 1u << k;
      });
    }
    if (shape_.kind != AccessKind::Load) note_unfinished();
    if (!w_.block->global_races) return;
    for_each_set(lanes & out_.lanes, [&](uint32_t k) {
      note_thread(*w_.block->global_races, k, at_[k], "global memory");
    });
  }

  uint8_t* reach_run(const LaneRun& run) {
    const Access access = global_access(run.begin, run.bytes);
    if (access.kind == AccessKind::Atomic) return nullptr;
    uint8_t* bytes = machine_.memory().reach_run(access);
    GlobalRaces* races = machine_.global_races();
    return bytes && (!races || races->note(access)) ? bytes : nullptr;
  }

  uint8_t* reach_one(uint32_t lane) {
    const Access access = global_access(at_[lane], shape_.bytes);
    Defect defect;
    uint8_t* bytes = machine_.memory().reach(access, defect);
    if (!bytes) {
      report(FindingKind::OutOfBounds, lane, at_[lane],
             fmt::format("{} bytes to {} where no memory is, or none to write", shape_.bytes,
                         verb(shape_.kind)));
      machine_.stop();
      return nullptr;
    }
    GlobalRaces* races = machine_.global_races();
    if (!races || (access.kind != AccessKind::Atomic && races->note(access))) return bytes;
    const uint32_t since = std::min(w_.unfinished_since - 1, w_.block->unfinished_since - 1) + 1;
    if (const auto race = races->touch(access, shape_.acquires, since))
      report(FindingKind::Race, lane, at_[lane], in_words_of_ptx(*race));
    return bytes;
  }

  // What other blocks may not rely on before a fence (8.5).
  void note_unfinished() {
    GlobalRaces* races = machine_.global_races();
    if (races && w_.unfinished_since == 0 && shape_.kind == AccessKind::Store && !shape_.strong)
      w_.unfinished_since = races->time(w_.block->number);
  }

  Warp& w_;
  Machine& machine_;
  const MemoryForm& m_;
  const Addresses& at_;
  const AccessShape& shape_;
  LaneBytes out_;
};

// Each space by itself. Parameters are constants, or registers of a call: no memory.
[[gnu::noinline]] void count_lanes(Warp& w, const MemoryForm& m, const Addresses& at,
                                   uint32_t lanes, const AccessShape& shape) {
  std::array<uint32_t, 3> in{};  // lanes: of shared, of local and of global memory
  Addresses near = at;
  for_each_set(lanes, [&](uint32_t k) {
    const bool generic = m.space == Space::Generic;
    const uint64_t window = generic ? at[k] & kWindowMask : window_of(m.space);
    if (generic) near[k] &= ~kWindowMask;
    if (window == window_of(Space::Param)) return;
    in[window == window_of(Space::Shared) ? 0 : window == window_of(Space::Local) ? 1 : 2] |=
        1u << k;
  });
  const bool past_l1 = shape.strong && shape.scope != Scope::Block;
  const Access access{0, shape.bytes, shape.kind, past_l1};
  Counters& counters = *w.machine->counters;
  if (in[0]) counters.lds(near, in[0], shape.bytes, shape.kind == AccessKind::Atomic);
  if (in[1]) counters.local(w, near, in[1], access);
  if (in[2]) counters.global(at, in[2], access);
}

}  // namespace

Addresses addresses_of(Warp& w, const MemoryForm& m, uint32_t lanes) {
  if (w.machine->watches_values()) w.machine->require(w, m.base, lanes, "the address");
  const Lanes& base = w.value(m.base);
  const bool narrow = w.frame->function->register_bits[m.base] == 32;
  Addresses out;
  for (uint32_t k = 0; k < kWarpLanes; ++k) {
    out[k] = base[k] + uint64_t(m.offset);
    if (narrow) out[k] = uint32_t(out[k]);
  }
  return out;
}

LaneBytes reach_lanes(Warp& w, const MemoryForm& m, const Addresses& at, uint32_t lanes,
                      const AccessShape& shape) {
  if (w.machine->counters) [[unlikely]]
    count_lanes(w, m, at, lanes, shape);
  return WarpAccess(w, m, at, shape).reach(lanes);
}

void mark_stored(Warp& w, const MemoryForm& m, const Addresses& at, uint32_t lanes,
                 uint32_t defined, uint32_t bytes) {
  for_each_set(lanes, [&](uint32_t k) {
    Space space = m.space;
    uint64_t address = at[k];
    if (space == Space::Generic && (address & kWindowMask) == window_of(Space::Local)) {
      space = Space::Local;
      address -= window_of(Space::Local);
    }
    if (space != Space::Local && !(space == Space::Param && m.in_frame)) return;
    const Place place = place_of(w, m, space, k);
    std::fill_n(place.written + address, bytes, uint8_t(defined >> k & 1));
  });
}

}  // namespace tuff::emu::ptx

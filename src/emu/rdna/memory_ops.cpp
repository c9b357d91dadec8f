// Loads, stores and atomics of global, flat, scratch, LDS and scalar memory.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "emu/memory/lane_runs.h"
#include "emu/rdna/lds_races.h"
#include "emu/rdna/machine.h"
#include "emu/rdna/memory_ops.h"

namespace tuff::emu::rdna {
namespace {

uint8_t* reach_lds(Wave& w, uint32_t lane, uint64_t at, uint32_t bytes, AccessKind kind) {
  Workgroup& group = *w.group;
  if (at + bytes > group.lds.size()) {
    w.machine->report(
        w, FindingKind::LdsOutOfBounds, lane, at,
        fmt::format("{} bytes at {} of {} bytes of LDS", bytes, at, group.lds.size()));
    return nullptr;
  }
  if (touch_lds(w, uint32_t(at), bytes, kind)) {
    w.machine->report(w, FindingKind::LdsRace, lane, at,
                      "another wave used these bytes since the last barrier");
  }
  return group.lds.data() + at;
}

uint8_t* reach_scratch(Wave& w, uint32_t lane, uint64_t at, uint32_t bytes) {
  if (at + bytes > w.scratch_bytes) {
    w.machine->report(
        w, FindingKind::ScratchOutOfBounds, lane, at,
        fmt::format("{} bytes at {} of {} bytes of scratch", bytes, at, w.scratch_bytes));
    return nullptr;
  }
  return w.scratch.data() + uint64_t(lane) * w.scratch_bytes + at;
}

// What the lanes of an instruction have in common.
struct Shape {
  uint32_t bytes = 4;
  AccessKind kind = AccessKind::Load;
};

// Linux sets SH_MEM_CONFIG.ALIGNMENT_MODE to unaligned (gfx_v11_0.c, DEFAULT_SH_MEM_CONFIG;
// kfd_device_queue_manager_v11.c, update_qpd_v11): loads and stores may lie anywhere, atomics not.
void check_alignment(Wave& w, uint32_t lane, uint64_t address, const Shape& shape) {
  if (shape.kind == AccessKind::Atomic && address & (shape.bytes - 1)) {
    w.machine->report(w, FindingKind::Misaligned, lane, address,
                      fmt::format("an atomic's address is a multiple of {}", shape.bytes));
  }
}

uint8_t* reach_global(Wave& w, const Instruction& i, uint32_t lane, uint64_t address,
                      const Shape& shape) {
  const bool atomic = shape.kind == AccessKind::Atomic;
  return w.machine->reach(
      w, lane, {address, shape.bytes, shape.kind, atomic || i.glc || i.dlc, w.group->number},
      atomic && i.glc);
}

uint8_t* reach(Wave& w, const Instruction& i, uint32_t lane, uint64_t address, const Shape& shape) {
  check_alignment(w, lane, address, shape);
  const auto lds = [&](uint64_t at) { return reach_lds(w, lane, at, shape.bytes, shape.kind); };
  switch (i.encoding()) {
    case Encoding::DS: return lds(address);
    case Encoding::SCRATCH: return reach_scratch(w, lane, address, shape.bytes);
    case Encoding::FLAT:
      if (address >> 32 == kSharedAperture) return lds(uint32_t(address));
      if (address >> 32 == kPrivateAperture) {
        return reach_scratch(w, lane, uint32_t(address), shape.bytes);
      }
      [[fallthrough]];
    default: return reach_global(w, i, lane, address, shape);
  }
}

// The bytes of a run of several lanes, or null where the lanes have to be asked for one by one.
uint8_t* reach_run(Wave& w, const Instruction& i, const LaneRun& run, const Shape& shape) {
  const Encoding e = i.encoding();
  if (shape.kind == AccessKind::Atomic || e == Encoding::SCRATCH || std::has_single_bit(run.lanes))
    return nullptr;
  if (e == Encoding::DS) {
    std::vector<uint8_t>& lds = w.group->lds;
    const bool inside = run.begin + run.bytes <= lds.size();
    return inside && note_lds(w, uint32_t(run.begin), run.bytes, shape.kind)
               ? lds.data() + run.begin
               : nullptr;
  }
  const uint64_t upper = run.begin >> 32;
  if (e == Encoding::FLAT && (upper == kSharedAperture || upper == kPrivateAperture))
    return nullptr;
  return w.machine->reach_run({run.begin, run.bytes, shape.kind, i.glc || i.dlc, w.group->number});
}

// Out of line: nearly always nothing is counted.
[[gnu::noinline]] void count_lanes(Counters& counters, const Wave& w, const Instruction& i,
                                   const Addresses& at, const Shape& shape) {
  const bool atomic = shape.kind == AccessKind::Atomic;
  const Access access{0, shape.bytes, shape.kind, atomic || i.glc || i.dlc};
  const Encoding e = i.encoding();
  uint32_t lds = e == Encoding::DS ? w.exec() : 0, own = e == Encoding::SCRATCH ? w.exec() : 0;
  if (e == Encoding::FLAT) {
    for_each_lane(w.exec(), [&](uint32_t lane) {
      if (at[lane] >> 32 == kSharedAperture) lds |= 1u << lane;
      if (at[lane] >> 32 == kPrivateAperture) own |= 1u << lane;
    });
  }
  Addresses near = at;
  for (uint64_t& address : near) address = uint32_t(address);
  if (lds) counters.lds(near, lds, shape.bytes, atomic);
  if (own) counters.scratch(w, near, own, access);
  counters.global(at, w.exec() & ~lds & ~own, access);
}

// Calls f(lane, bytes) for each active lane that reaches its bytes.
template <class F>
void each_lane(Wave& w, const Instruction& i, const Addresses& at, const Shape& shape, F f) {
  if (w.machine->counters) [[unlikely]]
    count_lanes(*w.machine->counters, w, i, at, shape);
  for (LaneRuns runs(at, w.exec(), shape.bytes); !runs.done();) {
    const LaneRun run = runs.next();
    uint8_t* bytes = reach_run(w, i, run, shape);
    for_each_lane(run.lanes, [&](uint32_t lane) {
      uint8_t* own = bytes ? bytes + (at[lane] - run.begin) : reach(w, i, lane, at[lane], shape);
      if (own) f(lane, own);
    });
  }
}

Addresses addresses_of(const Wave& w, const Instruction& i) {
  static constexpr Words kNone{};
  const Operand* a = i.find('A');
  const Operand* s = i.find('S');
  const bool vector = a && a->kind == OperandKind::Vector;
  const Words& low = vector ? w.v[a->index] : kNone;
  const bool scalar = s && s->kind == OperandKind::Scalar;
  const Encoding e = i.encoding();
  Addresses out;
  if (e == Encoding::DS || e == Encoding::SCRATCH) {
    const uint32_t base = e == Encoding::SCRATCH && scalar ? read_scalar(w, s->index) : 0;
    for (int k = 0; k < kLanes; ++k) out[k] = low[k] + base + uint32_t(i.offset);
  } else if (e == Encoding::GLOBAL && scalar) {
    const uint64_t base = read_scalar64(w, s->index) + uint64_t(int64_t(i.offset));
    for (int k = 0; k < kLanes; ++k) out[k] = base + low[k];
  } else {
    const Words& high = w.v[(a->index + 1) & 255];
    for (int k = 0; k < kLanes; ++k) {
      out[k] = (low[k] | uint64_t(high[k]) << 32) + uint64_t(int64_t(i.offset));
    }
  }
  return out;
}

// lgkmcnt counts what returns nothing too; vector memory has vscnt for it.
void mark_store(Wave& w, const Instruction& i, uint32_t since) {
  if (i.encoding() != Encoding::DS) w.machine->stores_since(w, since);
  if (i.encoding() != Encoding::DS && i.encoding() != Encoding::FLAT) return;
  ++w.issued[size_t(Counter::Lds)];
  w.outstanding = true;
}

}  // namespace

void mark_result(Wave& w, const Instruction& i, const Operand& d) {
  const bool lds = i.encoding() == Encoding::DS || i.encoding() == Encoding::FLAT;
  const bool vector = i.encoding() != Encoding::DS;
  const uint32_t lds_serial = lds ? ++w.issued[size_t(Counter::Lds)] : 0;
  const uint32_t vector_serial = vector ? ++w.issued[size_t(Counter::Vector)] : 0;
  for (int k = 0; k < d.registers; ++k) {
    const size_t at = (d.index + k) & 255;
    const bool on_its_way = w.v_lds_load[at] > w.completed[size_t(Counter::Lds)] ||
                            w.v_vector_load[at] > w.completed[size_t(Counter::Vector)];
    w.v_load_lanes[at] = w.exec() | (on_its_way ? w.v_load_lanes[at] : 0);
    if (lds) w.v_lds_load[at] = lds_serial;
    if (vector) w.v_vector_load[at] = vector_serial;
    w.v_written[at] |= w.exec();
  }
  w.outstanding = true;
}

void mark_store(Wave& w, const Instruction& i) { mark_store(w, i, w.machine->time(w)); }

namespace {

template <class T, Half half>
void load(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const Shape shape{sizeof(T)};
  each_lane(w, i, addresses_of(w, i), shape, [&](uint32_t lane, const uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    put_loaded<half>(w.v[d.index][lane], value);
  });
  mark_result(w, i, d);
}

template <uint32_t words>
void load_words(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const Shape shape{words * 4};
  each_lane(w, i, addresses_of(w, i), shape, [&](uint32_t lane, const uint8_t* from) {
    for (uint32_t k = 0; k < words; ++k) {
      std::memcpy(&w.v[(d.index + k) & 255][lane], from + 4 * k, 4);
    }
  });
  mark_result(w, i, d);
}

template <uint32_t bytes, int shift = 0>
void store_bytes(Wave& w, const Instruction& i) {
  const Operand& data = *i.find('0');
  const Shape shape{bytes, AccessKind::Store};
  each_lane(w, i, addresses_of(w, i), shape, [&](uint32_t lane, uint8_t* to) {
    for (uint32_t k = 0; k < bytes; k += 4) {
      const uint32_t word = w.v[(data.index + k / 4) & 255][lane] >> shift;
      std::memcpy(to + k, &word, std::min(bytes, 4u));
    }
  });
  mark_store(w, i);
}

// The first or second of two addresses, each with an 8-bit offset in units of the element.
Addresses two_addresses_of(const Instruction& i, const Words& base, uint32_t which, uint32_t unit) {
  const uint32_t offset = (uint32_t(i.offset) >> (8 * which) & 255) * unit;
  Addresses out;
  for (int k = 0; k < kLanes; ++k) out[k] = base[k] + offset;
  return out;
}

template <uint32_t words, uint32_t stride>
void load_two(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const Words base = w.v[i.find('A')->index];
  for (uint32_t which = 0; which < 2; ++which) {
    const Addresses at = two_addresses_of(i, base, which, words * 4 * stride);
    each_lane(w, i, at, {words * 4}, [&](uint32_t lane, const uint8_t* from) {
      for (uint32_t k = 0; k < words; ++k) {
        std::memcpy(&w.v[(d.index + which * words + k) & 255][lane], from + 4 * k, 4);
      }
    });
  }
  mark_result(w, i, d);
}
template <uint32_t words, uint32_t stride>
void store_two(Wave& w, const Instruction& i) {
  const Words& base = w.v[i.find('A')->index];
  for (uint32_t which = 0; which < 2; ++which) {
    const Operand& data = *i.find(which ? '1' : '0');
    const Addresses at = two_addresses_of(i, base, which, words * 4 * stride);
    each_lane(w, i, at, {words * 4, AccessKind::Store}, [&](uint32_t lane, uint8_t* to) {
      for (uint32_t k = 0; k < words; ++k) {
        std::memcpy(to + 4 * k, &w.v[(data.index + k) & 255][lane], 4);
      }
    });
  }
  mark_store(w, i);
}

template <class T>
T lane_value(const Wave& w, const Operand& o, uint32_t lane, uint32_t skip = 0) {
  uint64_t bits = w.v[o.index + skip][lane];
  if (sizeof(T) == 8) bits |= uint64_t(w.v[o.index + skip + 1][lane]) << 32;
  return from_bits<T>(bits);
}

// LDS obeys MODE's denormals and always rounds to nearest (LLVM, SIISelLowering, FP atomics).
void held_as_mode_says(const Wave& w, float& a, float& b) {
  if (keeps_input_denormals<4>(w.mode)) return;
  a = flush_denormal(a);
  b = flush_denormal(b);
}
float flushed_as_mode_says(const Wave& w, float a) {
  return keeps_output_denormals<4>(w.mode) ? a : flush_denormal(a);
}

// f(old, data, second data) in memory; the old value is the result where one is asked for. The data
// of a compare-and-swap is two values in one operand for global memory, two operands for LDS.
template <class T, bool returns_always, class F>
void atomic(Wave& w, const Instruction& i, F f) {
  const Operand& data = *i.find('0');
  const Operand* second = i.find('1');
  const bool returns = i.encoding() == Encoding::DS ? returns_always : i.glc;
  const Operand* d = returns ? i.find('D') : nullptr;
  const Shape shape{sizeof(T), AccessKind::Atomic};
  const uint32_t since = w.machine->time(w);
  each_lane(w, i, addresses_of(w, i), shape, [&](uint32_t lane, uint8_t* at) {
    T old;
    std::memcpy(&old, at, sizeof old);
    const T b = second ? lane_value<T>(w, *second, lane)
                : size_t(data.registers) * 4 > sizeof(T)
                    ? lane_value<T>(w, data, lane, sizeof(T) / 4)
                    : T{};
    T value = lane_value<T>(w, data, lane), before = old;
    if constexpr (std::is_same_v<T, float>) held_as_mode_says(w, before, value);
    T now = f(before, value, b);
    if constexpr (std::is_same_v<T, float>) now = flushed_as_mode_says(w, now);
    std::memcpy(at, &now, sizeof now);
    if (!d) return;
    uint64_t bits = 0;
    std::memcpy(&bits, &old, sizeof old);
    w.v[d->index][lane] = uint32_t(bits);
    if (sizeof(T) == 8) w.v[d->index + 1][lane] = uint32_t(bits >> 32);
  });
  if (d)
    mark_result(w, i, *d);
  else
    mark_store(w, i, since);
}

template <uint32_t words>
void scalar_load(Wave& w, const Instruction& i) {
  const Operand &d = *i.find('D'), &t = *i.find('T');
  const uint64_t base = read_scalar64(w, i.find('A')->index);
  const uint64_t asked = base + uint64_t(int64_t(i.offset)) + read_scalar(w, t.index);
  if (asked & 3) {
    w.machine->report(w, FindingKind::Misaligned, 0, asked,
                      "scalar loads ignore the two lowest bits of an address");
  }
  const Access access{asked & ~uint64_t(3), words * 4, AccessKind::ScalarLoad, i.glc || i.dlc,
                      w.group->number};
  if (w.machine->counters) [[unlikely]]
    w.machine->counters->range(access);
  const uint8_t* from = w.machine->reach(w, 0, access);
  const uint32_t serial = ++w.issued[size_t(Counter::Scalar)];
  for (uint32_t k = 0; from && k < words && d.index + k < 128; ++k) {
    uint32_t word;
    std::memcpy(&word, from + 4 * k, 4);
    write_scalar(w, d.index + k, word);
    w.s_load[d.index + k] = serial;
  }
  w.outstanding = true;
}

void read_from_lane(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const Words data = w.v[i.find('0')->index], where = w.v[i.find('A')->index];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (!(w.exec() >> lane & 1)) continue;
    const uint32_t from = (where[lane] + uint32_t(i.offset)) / 4 % kLanes;
    w.v[d.index][lane] = w.exec() >> from & 1 ? data[from] : 0;
  }
  mark_result(w, i, d);
}
void write_to_lane(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const Words data = w.v[i.find('0')->index], where = w.v[i.find('A')->index];
  Words out{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (w.exec() >> lane & 1) out[(where[lane] + uint32_t(i.offset)) / 4 % kLanes] = data[lane];
  }
  blend(w.v[d.index], out, w.exec());
  mark_result(w, i, d);
}
void swizzle(Wave& w, const Instruction& i) {
  const Operand& d = *i.find('D');
  const Words data = w.v[i.find('A')->index];
  const uint32_t mode = uint32_t(i.offset);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (!(w.exec() >> lane & 1)) continue;
    const uint32_t from = mode >> 15
                              ? (lane & ~3u) | (mode >> (2 * (lane & 3)) & 3)
                              : ((lane & (mode & 31)) | (mode >> 5 & 31)) ^ (mode >> 10 & 31);
    w.v[d.index][lane] = w.exec() >> from & 1 ? data[from] : 0;
  }
  mark_result(w, i, d);
}

#define ATOMIC_ROW(op, T, returns, expr) \
  TUFF_RDNA_ROW(                         \
      op, (atomic<T, returns>(w, i, [](T old, T a, [[maybe_unused]] T b) -> T { return expr; })))
#define ATOMIC(name, T, expr) \
  ATOMIC_ROW(GLOBAL_ATOMIC_##name, T, false, expr), ATOMIC_ROW(FLAT_ATOMIC_##name, T, false, expr)
#define LDS_ATOMIC(name, suffix, T, expr)           \
  ATOMIC_ROW(DS_##name##_##suffix, T, false, expr), \
      ATOMIC_ROW(DS_##name##_RTN_##suffix, T, true, expr)

#define ATOMICS(suffix_b, suffix_i, suffix_u, U, I)                                              \
  ATOMIC(SWAP_##suffix_b, U, (void(old), a)), ATOMIC(CMPSWAP_##suffix_b, U, old == b ? a : old), \
      ATOMIC(ADD_##suffix_u, U, old + a), ATOMIC(SUB_##suffix_u, U, old - a),                    \
      ATOMIC(MIN_##suffix_i, I, std::min(old, a)), ATOMIC(MIN_##suffix_u, U, std::min(old, a)),  \
      ATOMIC(MAX_##suffix_i, I, std::max(old, a)), ATOMIC(MAX_##suffix_u, U, std::max(old, a)),  \
      ATOMIC(AND_##suffix_b, U, old& a), ATOMIC(OR_##suffix_b, U, old | a),                      \
      ATOMIC(XOR_##suffix_b, U, old ^ a), ATOMIC(INC_##suffix_u, U, old >= a ? 0 : old + 1),     \
      ATOMIC(DEC_##suffix_u, U, old == 0 || old > a ? a : old - 1)
#define LDS_ATOMICS(suffix_b, suffix_i, suffix_u, U, I)                                       \
  ATOMIC_ROW(DS_STOREXCHG_RTN_##suffix_b, U, true, (void(old), a)),                           \
      LDS_ATOMIC(CMPSTORE, suffix_b, U, old == b ? a : old),                                  \
      LDS_ATOMIC(ADD, suffix_u, U, old + a), LDS_ATOMIC(SUB, suffix_u, U, old - a),           \
      LDS_ATOMIC(RSUB, suffix_u, U, a - old), LDS_ATOMIC(MIN, suffix_i, I, std::min(old, a)), \
      LDS_ATOMIC(MIN, suffix_u, U, std::min(old, a)),                                         \
      LDS_ATOMIC(MAX, suffix_i, I, std::max(old, a)),                                         \
      LDS_ATOMIC(MAX, suffix_u, U, std::max(old, a)), LDS_ATOMIC(AND, suffix_b, U, old& a),   \
      LDS_ATOMIC(OR, suffix_b, U, old | a), LDS_ATOMIC(XOR, suffix_b, U, old ^ a),            \
      LDS_ATOMIC(INC, suffix_u, U, old >= a ? 0 : old + 1),                                   \
      LDS_ATOMIC(DEC, suffix_u, U, old == 0 || old > a ? a : old - 1)

constexpr Handler kRows[] = {
    PLAIN_ACCESSES(GLOBAL),
    PLAIN_ACCESSES(FLAT),
    PLAIN_ACCESSES(SCRATCH),
    PLAIN_ACCESSES(DS),
    D16_ACCESSES(GLOBAL),
    D16_ACCESSES(FLAT),
    D16_ACCESSES(SCRATCH),
    {Op::DS_LOAD_U8_D16, load<uint8_t, Half::Low>},
    {Op::DS_LOAD_U8_D16_HI, load<uint8_t, Half::High>},
    {Op::DS_LOAD_I8_D16, load<int8_t, Half::Low>},
    {Op::DS_LOAD_I8_D16_HI, load<int8_t, Half::High>},
    {Op::DS_LOAD_U16_D16, load<uint16_t, Half::Low>},
    {Op::DS_LOAD_U16_D16_HI, load<uint16_t, Half::High>},
    {Op::DS_LOAD_2ADDR_B32, load_two<1, 1>},
    {Op::DS_LOAD_2ADDR_B64, load_two<2, 1>},
    {Op::DS_LOAD_2ADDR_STRIDE64_B32, load_two<1, 64>},
    {Op::DS_LOAD_2ADDR_STRIDE64_B64, load_two<2, 64>},
    {Op::DS_STORE_B8_D16_HI, store_bytes<1, 16>},
    {Op::DS_STORE_B16_D16_HI, store_bytes<2, 16>},
    {Op::DS_STORE_2ADDR_B32, store_two<1, 1>},
    {Op::DS_STORE_2ADDR_B64, store_two<2, 1>},
    {Op::DS_STORE_2ADDR_STRIDE64_B32, store_two<1, 64>},
    {Op::DS_STORE_2ADDR_STRIDE64_B64, store_two<2, 64>},
    {Op::DS_BPERMUTE_B32, read_from_lane},
    {Op::DS_PERMUTE_B32, write_to_lane},
    {Op::DS_SWIZZLE_B32, swizzle},
    {Op::S_LOAD_B32, scalar_load<1>},
    {Op::S_LOAD_B64, scalar_load<2>},
    {Op::S_LOAD_B128, scalar_load<4>},
    {Op::S_LOAD_B256, scalar_load<8>},
    {Op::S_LOAD_B512, scalar_load<16>},
    ATOMICS(B32, I32, U32, uint32_t, int32_t),
    ATOMICS(B64, I64, U64, uint64_t, int64_t),
    // In the L2, which knows no denormals (LLVM, SIISelLowering, FP atomics); LDS does.
    ATOMIC(ADD_F32, float, flush_denormal(flush_denormal(old) + flush_denormal(a))),
    ATOMIC(MIN_F32, float, std::fmin(old, a)),
    ATOMIC(MAX_F32, float, std::fmax(old, a)),
    LDS_ATOMICS(B32, I32, U32, uint32_t, int32_t),
    LDS_ATOMICS(B64, I64, U64, uint64_t, int64_t),
    LDS_ATOMIC(ADD, F32, float, old + a),
    LDS_ATOMIC(MIN, F32, float, std::fmin(old, a)),
    LDS_ATOMIC(MAX, F32, float, std::fmax(old, a)),
};

}  // namespace

std::span<const Handler> memory_handlers() { return kRows; }

}  // namespace tuff::emu::rdna

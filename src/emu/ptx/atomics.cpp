// Atomics, reductions and fences. Source: PTX ISA 7.8, 9.7.12.4 (atom) and on; 8 (Memory
// Consistency Model). Lanes of one instruction come in the order of their numbers.
#include <algorithm>
#include <cstring>

#include "base/narrow_float.h"
#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/memory_access.h"
#include "emu/ptx/rounding.h"

namespace tuff::emu::ptx {
namespace {

void fence_rows(Warp& w, const Instruction&, uint32_t) {
  w.unfinished_since = 0;
  w.block->unfinished_since = 0;
  if (GlobalRaces* races = w.machine->global_races()) races->advance(w.block->number);
}

template <class T, class F>
void atomic_rows(Warp& w, const Instruction& i, uint32_t lanes, F f) {
  const bool returns = i.destinations != 0;
  const MemoryForm& m = i.memory;
  if (m.order == Order::Release || m.order == Order::AcquireRelease) fence_rows(w, i, lanes);
  for (uint32_t k = 0; k < i.sources; ++k)
    w.machine->require(w, i.s(k), lanes, "the value of an atomic");
  const Addresses at = addresses_of(w, m, lanes);
  const AccessShape shape{sizeof(T), sizeof(T), AccessKind::Atomic, true, returns, m.scope};
  const LaneBytes bytes = reach_lanes(w, m, at, lanes, shape);
  const Lanes &b = w.value(i.s(0)), &c = w.value(i.s(i.sources > 1 ? 1 : 0));
  for_each_set(bytes.lanes, [&](uint32_t k) {
    T old;
    std::memcpy(&old, bytes.at[k], sizeof old);
    const T now = f(old, from_bits<T>(b[k]), from_bits<T>(c[k]));
    std::memcpy(bytes.at[k], &now, sizeof now);
    if (returns) w.value(i.d())[k] = to_bits<T>(old);
  });
  if (returns) w.define(i.d(), lanes, bytes.lanes & ~bytes.undefined);
}

template <class T, class F>
Execute atomic_row_of(F) {
  return [](Warp& w, const Instruction& i, uint32_t lanes) { atomic_rows<T>(w, i, lanes, F{}); };
}

template <class T>
Execute integer_atomic(const Form& f) {
  if (f.has("add"))
    return atomic_row_of<T>([](T a, T b, T) { return T(uint64_t(a) + uint64_t(b)); });
  if (f.has("min")) return atomic_row_of<T>([](T a, T b, T) { return std::min(a, b); });
  if (f.has("max")) return atomic_row_of<T>([](T a, T b, T) { return std::max(a, b); });
  if (f.has("and")) return atomic_row_of<T>([](T a, T b, T) { return T(a & b); });
  if (f.has("or")) return atomic_row_of<T>([](T a, T b, T) { return T(a | b); });
  if (f.has("xor")) return atomic_row_of<T>([](T a, T b, T) { return T(a ^ b); });
  if (f.has("exch")) return atomic_row_of<T>([](T, T b, T) { return b; });
  if (f.has("cas")) return atomic_row_of<T>([](T a, T b, T c) { return a == b ? c : a; });
  if (f.has("inc")) return atomic_row_of<T>([](T a, T b, T) { return a >= b ? T(0) : T(a + 1); });
  return atomic_row_of<T>([](T a, T b, T) { return a == 0 || a > b ? b : T(a - 1); });
}

// Global atomics of f32 flush subnormals, those of shared memory do not (9.7.12.4).
float added(float a, float b, bool flushes) {
  if (!flushes) return a + b;
  return flushed(flushed(a) + flushed(b));
}

uint16_t half_sum(uint16_t a, uint16_t b) {
  return uint16_t(narrowed(double(narrow::f16_to_f32(a)) + double(narrow::f16_to_f32(b)), kHalf,
                           Rounding::Nearest));
}
uint16_t brain_sum(uint16_t a, uint16_t b) {
  return uint16_t(
      narrowed(sum_to_odd(double(narrow::bf16_to_f32(a)), double(narrow::bf16_to_f32(b))), kBrain,
               Rounding::Nearest));
}
template <uint16_t (*sum)(uint16_t, uint16_t)>
uint32_t sum_of_pair(uint32_t a, uint32_t b) {
  return uint32_t(sum(uint16_t(a), uint16_t(b))) |
         uint32_t(sum(uint16_t(a >> 16), uint16_t(b >> 16))) << 16;
}

Execute float_atomic(const Form& f, const Instruction& i) {
  using U = uint32_t;
  switch (f.type()) {
    case Type::F32:
      return i.memory.space == Space::Shared
                 ? atomic_row_of<float>([](float a, float b, float) { return added(a, b, false); })
                 : atomic_row_of<float>([](float a, float b, float) { return added(a, b, true); });
    case Type::F64: return atomic_row_of<double>([](double a, double b, double) { return a + b; });
    case Type::F16:
      return atomic_row_of<uint16_t>(
          [](uint16_t a, uint16_t b, uint16_t) { return half_sum(a, b); });
    case Type::BF16:
      return atomic_row_of<uint16_t>(
          [](uint16_t a, uint16_t b, uint16_t) { return brain_sum(a, b); });
    case Type::F16x2:
      return atomic_row_of<U>([](U a, U b, U) { return sum_of_pair<half_sum>(a, b); });
    default: return atomic_row_of<U>([](U a, U b, U) { return sum_of_pair<brain_sum>(a, b); });
  }
}

}  // namespace

void make_atomic(const Form& f, Instruction& i) {
  i.own_definedness = true;
  MemoryForm& m = i.memory;
  m.space = f.has("global")                           ? Space::Global
            : f.has("shared") || f.has("shared::cta") ? Space::Shared
                                                      : Space::Generic;
  m.type = f.type();
  m.scope = f.has("cta") ? Scope::Block : f.has("sys") ? Scope::System : Scope::Device;
  m.order = f.has("acquire")   ? Order::Acquire
            : f.has("release") ? Order::Release
            : f.has("acq_rel") ? Order::AcquireRelease
                               : Order::Relaxed;
  if (is_float(f.type()))
    i.execute = float_atomic(f, i);
  else
    with_integer(f.type(), [&]<class T>() {
      if constexpr (sizeof(T) >= 2) i.execute = integer_atomic<T>(f);
    });
}

// A fence of the block orders nothing for other blocks.
void make_fence(const Form& f, Instruction& i) {
  if (f.has("cta"))
    make_nothing(f, i);
  else
    i.execute = fence_rows;
}

}  // namespace tuff::emu::ptx

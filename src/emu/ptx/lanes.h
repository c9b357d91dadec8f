// Functions of one lane's values made to what executes an instruction for all of its lanes. Called
// by the makers.
#pragma once

#include <bit>
#include <cstring>

#include "emu/ptx/warp.h"

namespace tuff::emu::ptx {

// Between a value and its register, in which it has the low bits.
template <class T>
T from_bits(uint64_t bits) {
  T out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}
template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Loops over all lanes become vector instructions.
template <class F>
void for_lanes(uint32_t lanes, F f) {
  if (lanes == ~0u) {
    for (uint32_t k = 0; k < kWarpLanes; ++k) f(k);
  } else {
    for_each_set(lanes, f);
  }
}

template <class D, class A, class F>
void apply(Warp& w, const Instruction& i, uint32_t lanes, F f) {
  Lanes& d = w.value(i.d());
  const Lanes& a = w.value(i.s(0));
  for_lanes(lanes, [&](uint32_t k) { d[k] = to_bits<D>(f(from_bits<A>(a[k]))); });
}
template <class D, class A, class B, class F>
void apply(Warp& w, const Instruction& i, uint32_t lanes, F f) {
  Lanes& d = w.value(i.d());
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1));
  for_lanes(lanes,
            [&](uint32_t k) { d[k] = to_bits<D>(f(from_bits<A>(a[k]), from_bits<B>(b[k]))); });
}
template <class D, class A, class B, class C, class F>
void apply(Warp& w, const Instruction& i, uint32_t lanes, F f) {
  Lanes& d = w.value(i.d());
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1)), &c = w.value(i.s(2));
  for_lanes(lanes, [&](uint32_t k) {
    d[k] = to_bits<D>(f(from_bits<A>(a[k]), from_bits<B>(b[k]), from_bits<C>(c[k])));
  });
}

// rows<D, A...>(f): f, which captures nothing, takes the sources and returns the destination.
template <class D, class... Sources, class F>
Execute rows(F) {
  return
      [](Warp& w, const Instruction& i, uint32_t lanes) { apply<D, Sources...>(w, i, lanes, F{}); };
}

// f of sources of the same type as the destination.
template <class T, size_t count, class F>
Execute uniform_rows(F f) {
  if constexpr (count == 1) return rows<T, T>(f);
  if constexpr (count == 2) return rows<T, T, T>(f);
  if constexpr (count == 3) return rows<T, T, T, T>(f);
}

// Calls f<T>() with the integer type of C++ that the type is.
template <class F>
void with_integer(Type type, F f) {
  switch (type) {
    case Type::U8:
    case Type::B8: return f.template operator()<uint8_t>();
    case Type::U16:
    case Type::B16: return f.template operator()<uint16_t>();
    case Type::U32:
    case Type::B32: return f.template operator()<uint32_t>();
    case Type::U64:
    case Type::B64: return f.template operator()<uint64_t>();
    case Type::S8: return f.template operator()<int8_t>();
    case Type::S16: return f.template operator()<int16_t>();
    case Type::S32: return f.template operator()<int32_t>();
    case Type::S64: return f.template operator()<int64_t>();
    default: return;
  }
}

}  // namespace tuff::emu::ptx

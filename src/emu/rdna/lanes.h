// Operands as 32 lanes of a C++ type, with modifiers, and results back into registers. Included by
// the files that hold the handlers of vector instructions; loops are plain so that compilers
// vectorize.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/narrow_float.h"
#include "emu/rdna/wave.h"

namespace tuff::emu::rdna {

// A 16-bit float: computed with as float, rounded when it is written.
struct F16 {};

template <class T>
struct Computed {
  using type = T;
};
template <>
struct Computed<F16> {
  using type = float;
};
template <class T>
using Lanes = std::array<typename Computed<T>::type, kLanes>;

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || std::is_same_v<T, F16>;
template <class T>
inline constexpr int size_of = std::is_same_v<T, F16> ? 2 : int(sizeof(typename Computed<T>::type));

inline uint32_t read_scalar(const Wave& w, uint32_t index) {
  switch (index) {
    case source::Null: return 0;
    case source::SharedBase: return 0;
    case source::SharedBase + 1: return 0xFFFFFFFF;
    case source::SharedBase + 2: return 0;
    case source::SharedBase + 3: return 0xFFFFFFFF;
    case source::Vccz: return w.vcc() == 0;
    case source::Execz: return w.exec() == 0;
    case source::Scc: return w.scc;
    default: return w.s[index & 127];
  }
}

// Flat addresses with these upper halves are LDS and scratch memory.
inline constexpr uint32_t kSharedAperture = 0x00010000, kPrivateAperture = 0x00020000;

inline uint64_t read_scalar64(const Wave& w, uint32_t index) {
  if (index == source::SharedBase) return uint64_t(kSharedAperture) << 32;
  if (index == source::SharedBase + 2) return uint64_t(kPrivateAperture) << 32;
  if (index >= 128) return read_scalar(w, index);
  return read_scalar(w, index) | uint64_t(read_scalar(w, index + 1)) << 32;
}

inline constexpr double kInlineFloats[] = {
    0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532};

// A constant operand as the bits of T. Inline floats take the width of the operand.
template <class T>
uint64_t constant_bits(const Operand& o) {
  if (o.index >= source::Float0 && o.index <= 248) {
    const double value = kInlineFloats[o.index - source::Float0];
    if constexpr (size_of<T> == 8) return std::bit_cast<uint64_t>(value);
    const float single = o.index == 248 ? 0x1.45f306p-3f : float(value);
    if constexpr (size_of<T> == 2) return o.index == 248 ? 0x3118 : narrow::f16_from_f32(single);
    return std::bit_cast<uint32_t>(single);
  }
  if (size_of<T> < 8) return o.value;
  if (o.index != source::Literal || std::is_same_v<T, int64_t>) {
    return uint64_t(int64_t(int32_t(o.value)));
  }
  return std::is_same_v<T, double> ? uint64_t(o.value) << 32 : o.value;
}

template <class T>
typename Computed<T>::type from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, F16>)
    return narrow::f16_to_f32(uint16_t(bits));
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(uint32_t(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return T(bits);
}

// The lane that each lane reads from through DPP; 255: none, whose lane then reads zero or is off.
std::array<uint8_t, kLanes> dpp_lanes(const Dpp& dpp);
uint32_t dpp_active_lanes(const Wave& w, const Instruction& i);
// Lanes that an instruction writes.
inline uint32_t active_lanes(const Wave& w, const Instruction& i) {
  return i.dpp.kind == DppKind::Dpp16 ? dpp_active_lanes(w, i) : w.exec();
}
void fetch_dpp(const Wave& w, const Instruction& i, uint32_t index, Words& out);

inline bool takes_high_half(const Instruction& i, const Operand& o) {
  if (o.half) return o.high;
  return i.encoding() == Encoding::VOP3 && o.field >= '0' && i.op_sel >> (o.field - '0') & 1;
}

template <class T>
void fetch_vector(const Wave& w, const Instruction& i, const Operand& o, Lanes<T>& out) {
  if constexpr (size_of<T> == 8) {
    const Words &low = w.v[o.index], &high = w.v[(o.index + 1) & 255];
    for (int k = 0; k < kLanes; ++k) out[k] = from_bits<T>(low[k] | uint64_t(high[k]) << 32);
  } else {
    Words through;
    const Words* words = &w.v[o.index];
    if (i.dpp.kind != DppKind::None && o.field == '0') {
      fetch_dpp(w, i, o.index, through);
      words = &through;
    }
    const int shift = size_of<T> == 2 && takes_high_half(i, o) ? 16 : 0;
    for (int k = 0; k < kLanes; ++k) out[k] = from_bits<T>((*words)[k] >> shift);
  }
}

template <class T>
uint64_t uniform_bits(const Wave& w, const Instruction& i, const Operand& o) {
  if (o.kind != OperandKind::Scalar) return constant_bits<T>(o);
  if (size_of<T> == 8) return read_scalar64(w, o.index);
  const int shift = size_of<T> == 2 && takes_high_half(i, o) ? 16 : 0;
  return read_scalar(w, o.index) >> shift;
}

template <class T>
void fetch(const Wave& w, const Instruction& i, const Operand& o, Lanes<T>& out) {
  if (o.kind == OperandKind::Vector) {
    fetch_vector<T>(w, i, o, out);
  } else {
    out.fill(from_bits<T>(uniform_bits<T>(w, i, o)));
  }
  if constexpr (is_float<T>) {
    if (o.absolute) {
      for (auto& value : out) value = std::fabs(value);
    }
    if (o.negate) {
      for (auto& value : out) value = -value;
    }
  } else if constexpr (std::is_same_v<T, uint16_t>) {
    // Instructions that move halves without computing take a float's modifiers.
    if (o.absolute) {
      for (auto& value : out) value &= 0x7FFF;
    }
    if (o.negate) {
      for (auto& value : out) value ^= 0x8000;
    }
  }
}

template <class T>
void flush_inputs(const Wave& w, Lanes<T>& values) {
  if constexpr (is_float<T>) {
    if (keeps_input_denormals<size_of<T>>(w.mode)) [[likely]]
      return;
    for (auto& value : values) value = flush_denormal<size_of<T>>(value);
  }
}

// What is computed with. Instructions that move or sort bits alone take what is there.
template <class T>
void fetch_number(const Wave& w, const Instruction& i, const Operand& o, Lanes<T>& out) {
  fetch<T>(w, i, o, out);
  flush_inputs<T>(w, out);
}

// double to float on its way to f16, for one rounding in all: to odd, as float keeps more than f16
// needs. However the host rounds.
inline float odd_from_f64(double value) {
  float single = float(value);
  if (double(single) != value && std::isfinite(value)) {
    uint32_t bits = std::bit_cast<uint32_t>(single);
    if (std::fabs(double(single)) > std::fabs(value)) --bits;
    single = std::bit_cast<float>(bits | 1);
  }
  return single;
}
inline uint16_t f16_from_f64(double value) { return narrow::f16_from_f32(odd_from_f64(value)); }
// fma of halves: exact in double, rounded once where it is stored.
inline float half_fma(float a, float b, float c) {
  return odd_from_f64(double(a) * double(b) + double(c));
}
inline float widened(uint32_t half, bool brain) {
  return brain ? narrow::bf16_to_f32(uint16_t(half)) : narrow::f16_to_f32(uint16_t(half));
}

template <class T>
bool has_quiet_bit(T a) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<uint32_t>(a) >> 22 & 1;
  else
    return std::bit_cast<uint64_t>(a) >> 51 & 1;
}

// IEEE 754-2008's minNum and maxNum that order the zeros; a signalling NaN is quieted and returned
// where MODE has IEEE. Those of halves have become quiet by being widened.
struct Order {
  Order() = default;
  explicit Order(const Wave& w) : ieee(w.mode & kIeee) {}
  bool ieee = false;

  template <class T>
  T pick(T a, T b, bool first) const {
    const auto signals = [](T x) { return std::isnan(x) && !has_quiet_bit(x); };
    if (ieee && (signals(a) || signals(b))) return a + b;
    if (std::isnan(a)) return std::isnan(b) ? a + b : b;
    return std::isnan(b) || first ? a : b;
  }
  template <class T>
  T min(T a, T b) const {
    return pick(a, b, a == b ? std::signbit(a) : a < b);
  }
  template <class T>
  T max(T a, T b) const {
    return pick(a, b, a == b ? std::signbit(b) : a > b);
  }
  template <class T>
  T med(T a, T b, T c) const {
    if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return min(min(a, b), c);
    return max(min(a, b), min(max(a, b), c));
  }
};

template <class T>
T reverse_bits(T a) {
  T out = 0;
  for (size_t k = 0; k < sizeof(T) * 8; ++k) out |= (a >> k & 1) << (sizeof(T) * 8 - 1 - k);
  return out;
}
// Bits before the first that differs from the sign, which counts; -1 if all are alike.
template <class T>
int32_t leading_sign_bits(T a) {
  using U = std::make_unsigned_t<T>;
  const U flipped = U(a < 0 ? ~a : a);
  return flipped == 0 ? -1 : std::countl_zero(flipped);
}

// A result that is less than the least normal number once it is rounded.
template <class T>
void flush_outputs(const Wave& w, Lanes<T>& values) {
  for (auto& value : values) {
    if constexpr (size_of<T> == 2) value = narrow::f16_to_f32(f16_rounded(value, w.mode));
    value = flush_denormal<size_of<T>>(value);
  }
}

// Factors are for modes without IEEE and without denormals and ignored in others; they leave no
// negative zero. ISA 7.2.3.
template <class T>
void apply_factor(const Wave& w, const Instruction& i, Lanes<T>& values) {
  if (w.mode & kIeee || keeps_output_denormals<size_of<T>>(w.mode)) return;
  const float factor = i.output_modifier == 1 ? 2 : i.output_modifier == 2 ? 4 : 0.5f;
  for (auto& value : values) {
    value *= factor;
    if (value == 0) value = 0;
  }
  flush_outputs<T>(w, values);
}

template <class T>
void apply_output(const Wave& w, const Instruction& i, Lanes<T>& values) {
  if constexpr (is_float<T>) {
    if (!keeps_output_denormals<size_of<T>>(w.mode)) [[unlikely]]
      flush_outputs<T>(w, values);
    if (i.output_modifier) apply_factor<T>(w, i, values);
    if (!i.clamp) return;
    const bool keeps_nan = !(w.mode & kDx10Clamp);
    for (auto& value : values) {
      if (keeps_nan && std::isnan(value)) continue;
      value = !(value > 0) ? 0 : value > 1 ? 1 : value;
    }
  }
}

inline void blend(Words& to, const Words& from, uint32_t lanes) {
  if (lanes == ~0u) {
    to = from;
    return;
  }
  for (int k = 0; k < kLanes; ++k) to[k] = lanes & kLaneBit[k] ? from[k] : to[k];
}

// Writes 16 bits of each lane, the other half stays.
template <class Bits>
void store_half(Wave& w, const Instruction& i, const Operand& d, uint32_t lanes, Bits bits) {
  const bool high = d.half ? d.high : i.encoding() == Encoding::VOP3 && i.op_sel >> 3 & 1;
  Words& to = w.v[d.index];
  for (int k = 0; k < kLanes; ++k) {
    const uint32_t half = bits(k);
    const uint32_t word = high ? (to[k] & 0xFFFF) | half << 16 : (to[k] & 0xFFFF0000) | half;
    to[k] = lanes & kLaneBit[k] ? word : to[k];
  }
}

template <class T>
void store(Wave& w, const Instruction& i, const Operand& d, const Lanes<T>& values,
           uint32_t lanes) {
  if constexpr (std::is_same_v<T, F16>) {
    if ((w.mode & kRoundingBits) == 0) [[likely]] {
      store_half(w, i, d, lanes, [&](int k) { return uint32_t(narrow::f16_from_f32(values[k])); });
    } else {
      store_half(w, i, d, lanes, [&](int k) { return uint32_t(f16_rounded(values[k], w.mode)); });
    }
  } else if constexpr (size_of<T> == 2) {
    store_half(w, i, d, lanes, [&](int k) { return uint32_t(uint16_t(values[k])); });
  } else if constexpr (size_of<T> == 4) {
    Words words;
    for (int k = 0; k < kLanes; ++k) words[k] = std::bit_cast<uint32_t>(values[k]);
    blend(w.v[d.index], words, lanes);
  } else {
    Words low, high;
    for (int k = 0; k < kLanes; ++k) {
      const uint64_t bits = std::bit_cast<uint64_t>(values[k]);
      low[k] = uint32_t(bits);
      high[k] = uint32_t(bits >> 32);
    }
    blend(w.v[d.index], low, lanes);
    blend(w.v[(d.index + 1) & 255], high, lanes);
  }
}

inline void write_scalar(Wave& w, uint32_t index, uint32_t value) {
  if (index == source::Null || index >= 128) return;
  w.s[index] = value;
  w.s_written[index] = true;
}

// R = f(A, B, C) in every active lane.
template <class R, class A, class F>
void vector1(Wave& w, const Instruction& i, F f) {
  Lanes<A> a;
  Lanes<R> r;
  fetch_number<A>(w, i, *i.find('0'), a);
  for (int k = 0; k < kLanes; ++k) r[k] = f(a[k]);
  apply_output<R>(w, i, r);
  store<R>(w, i, *i.find('D'), r, active_lanes(w, i));
}

template <class R, class A, class B, class F>
void vector2(Wave& w, const Instruction& i, F f) {
  Lanes<A> a;
  Lanes<B> b;
  Lanes<R> r;
  fetch_number<A>(w, i, *i.find('0'), a);
  fetch_number<B>(w, i, *i.find('1'), b);
  for (int k = 0; k < kLanes; ++k) r[k] = f(a[k], b[k]);
  apply_output<R>(w, i, r);
  store<R>(w, i, *i.find('D'), r, active_lanes(w, i));
}

// The third source is field 2 unless told: D for accumulating instructions, K for literals.
template <class R, class A, class B, class C, class F>
void vector3(Wave& w, const Instruction& i, F f, char second = '1', char third = '2') {
  Lanes<A> a;
  Lanes<B> b;
  Lanes<C> c;
  Lanes<R> r;
  fetch_number<A>(w, i, *i.find('0'), a);
  fetch_number<B>(w, i, *i.find(second), b);
  fetch_number<C>(w, i, *i.find(third), c);
  for (int k = 0; k < kLanes; ++k) r[k] = f(a[k], b[k], c[k]);
  apply_output<R>(w, i, r);
  store<R>(w, i, *i.find('D'), r, active_lanes(w, i));
}

}  // namespace tuff::emu::rdna

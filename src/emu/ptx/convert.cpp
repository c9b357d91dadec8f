// Conversions between types. Source: PTX ISA 7.8, 9.7.8.17 (cvt).
#include <algorithm>
#include <bit>
#include <limits>

#include "base/narrow_float.h"
#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/rounding.h"

namespace tuff::emu::ptx {
namespace {

// Floats of each type as doubles, which hold them exactly.
template <Type type>
double float_value(uint64_t bits) {
  if constexpr (type == Type::F16) return double(narrow::f16_to_f32(uint16_t(bits)));
  if constexpr (type == Type::BF16) return double(narrow::bf16_to_f32(uint16_t(bits)));
  if constexpr (type == Type::F32) return double(from_bits<float>(bits));
  return from_bits<double>(bits);
}

bool is_subnormal_f32(double value) { return value != 0 && std::fabs(value) < 0x1p-126; }

double rounded_to_integer(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::Zero: return std::trunc(value);
    case Rounding::Down: return std::floor(value);
    case Rounding::Up: return std::ceil(value);
    default: return std::nearbyint(value);
  }
}

// A double in the destination's bits.
uint64_t float_bits(Type type, double value, Rounding rounding, bool flushes) {
  switch (type) {
    case Type::F16: return narrowed(value, kHalf, rounding);
    case Type::BF16: return narrowed(value, kBrain, rounding);
    case Type::TF32: return uint64_t(narrowed(value, kTensor, rounding)) << 13;
    case Type::F32: {
      if (value != value) return 0x7FFFFFFF;
      const HostDirection direction(rounding);
      volatile float out = float(value);
      const float rounded = out;
      return std::bit_cast<uint32_t>(flushes ? flushed(rounded) : rounded);
    }
    default: return std::bit_cast<uint64_t>(value);
  }
}

// ---- from floats

// The destination is in `memory.type`; .ftz is of f32, on either side.
template <Type source>
void from_float_rows(Warp& w, const Instruction& i, uint32_t lanes, auto convert) {
  Lanes& d = w.value(i.d());
  const Lanes& a = w.value(i.s(0));
  for_each_set(lanes, [&](uint32_t k) {
    double value = float_value<source>(a[k]);
    if (source == Type::F32 && i.flushes && is_subnormal_f32(value))
      value = std::copysign(0.0, value);
    d[k] = convert(value);
  });
}

template <Type source>
void float_to_float_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const bool integral = i.variant;
  from_float_rows<source>(w, i, lanes, [&](double value) {
    if (integral) value = rounded_to_integer(value, i.rounding);
    if (i.saturates) value = saturated_to_unit(value);
    if (i.relu && value < 0) value = 0;
    return float_bits(i.memory.type, value, integral ? Rounding::Nearest : i.rounding, i.flushes);
  });
}

// Out of range is the nearest that there is. NaN is 0, but the highest bit alone where one of the
// types has 64 bits (9.7.8.17, integer notes).
template <class T>
uint64_t saturated_integer(double value, bool from_double) {
  if (value != value) {
    const bool wide = from_double || sizeof(T) == 8;
    return wide ? uint64_t(1) << (8 * sizeof(T) - 1) : 0;
  }
  constexpr double kMost = sizeof(T) == 8 ? (std::is_signed_v<T> ? 0x1p63 : 0x1p64)
                                          : double(std::numeric_limits<T>::max()) + 1;
  if (value >= kMost) return to_bits<T>(std::numeric_limits<T>::max());
  if (value <= double(std::numeric_limits<T>::min()))
    return to_bits<T>(std::numeric_limits<T>::min());
  return to_bits<T>(T(value));
}

// What a wider register gets above the result: its sign, or zeros.
uint64_t extended(uint64_t bits, Type type, uint32_t register_bits) {
  const uint32_t width = bits_of(type);
  if (is_signed(type) && width < 64) bits = uint64_t(int64_t(bits << (64 - width)) >> (64 - width));
  return register_bits == 64 ? bits : bits & ((1ull << register_bits) - 1);
}

template <Type source, class T>
void float_to_integer_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const uint32_t width = w.frame->function->register_bits[i.d()];
  from_float_rows<source>(w, i, lanes, [&](double value) {
    const double whole = rounded_to_integer(value, i.rounding);
    return extended(saturated_integer<T>(whole, source == Type::F64), i.memory.type, width);
  });
}

// ---- from integers

template <class S>
void integer_to_float_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Lanes& d = w.value(i.d());
  const Lanes& a = w.value(i.s(0));
  const Type type = i.memory.type;
  const HostDirection direction(i.rounding);
  for_each_set(lanes, [&](uint32_t k) {
    const S value = from_bits<S>(a[k]);
    if (type == Type::F32) {
      const float out = float(value);
      d[k] = to_bits(i.saturates ? saturated_to_unit(out) : out);
    } else if (type == Type::F64) {
      d[k] = to_bits(double(value));
    } else {
      // Beyond 2^53 all halves are infinite or the greatest; bf16 has more (double rounding is kept
      // from it by rounding to odd).
      const auto high = double(int64_t(value) >> 32) * 0x1p32;
      const double upper = std::is_signed_v<S> ? high : double(uint64_t(value) >> 32) * 0x1p32;
      d[k] = float_bits(type, sum_to_odd(upper, double(uint32_t(value))), i.rounding, false);
    }
  });
}

// As wide as the destination, or saturated to its range.
template <class S>
void integer_to_integer_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Lanes& d = w.value(i.d());
  const Lanes& a = w.value(i.s(0));
  const Type type = i.memory.type;
  const uint32_t width = w.frame->function->register_bits[i.d()], bits = bits_of(type);
  const __int128 most = (__int128(1) << (is_signed(type) ? bits - 1 : bits)) - 1;
  const __int128 least = is_signed(type) ? -most - 1 : 0;
  for_each_set(lanes, [&](uint32_t k) {
    __int128 value = from_bits<S>(a[k]);
    if (i.saturates) value = std::clamp(value, least, most);
    const uint64_t kept = bits == 64 ? uint64_t(value) : uint64_t(value) & ((1ull << bits) - 1);
    d[k] = extended(kept, type, width);
  });
}

template <Type source>
Execute from_float(const Form& f) {
  if (is_float(f.type(0))) return float_to_float_rows<source>;
  Execute out = nullptr;
  with_integer(f.type(0), [&]<class T>() { out = float_to_integer_rows<source, T>; });
  return out;
}

Execute from_integer(const Form& f) {
  Execute out = nullptr;
  const bool to_float = is_float(f.type(0));
  with_integer(f.type(1), [&]<class S>() {
    out = to_float ? integer_to_float_rows<S> : integer_to_integer_rows<S>;
  });
  return out;
}

// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
void convert_pair_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Lanes& d = w.value(i.d());
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1));
  const NarrowFormat format = i.memory.type == Type::F16x2 ? kHalf : kBrain;
  const auto half = [&](uint64_t bits) {
    double value = double(from_bits<float>(bits));
    if (i.relu && value < 0) value = 0;
    return uint64_t(narrowed(value, format, i.rounding));
  };
  for_each_set(lanes, [&](uint32_t k) { d[k] = half(a[k]) << 16 | half(b[k]); });
}

}  // namespace

void make_convert(const Form& f, Instruction& i) {
  i.memory.type = f.type(0);
  i.variant = f.has("rni") || f.has("rzi") || f.has("rmi") || f.has("rpi");
  switch (f.type(1)) {
    case Type::F16: i.execute = from_float<Type::F16>(f); break;
    case Type::BF16: i.execute = from_float<Type::BF16>(f); break;
    case Type::F32: i.execute = from_float<Type::F32>(f); break;
    case Type::F64: i.execute = from_float<Type::F64>(f); break;
    default:
      i.execute = from_integer(f);
      i.bit_sources = !is_float(f.type(0)) && !f.has("sat");
      break;
  }
}

void make_convert_pair(const Form& f, Instruction& i) {
  i.memory.type = f.type(0);
  i.execute = convert_pair_rows;
}

}  // namespace tuff::emu::ptx

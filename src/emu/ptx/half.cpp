// Arithmetic of f16 and bf16, alone and in pairs, each result rounded once.
// Source: PTX ISA 7.8, 9.7.4. NaN results are 0x7fff.
#include <bit>

#include "base/narrow_float.h"
#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/rounding.h"

namespace tuff::emu::ptx {
namespace {

struct Ieee {
  static constexpr NarrowFormat kFormat = kHalf;
  static constexpr uint16_t kInfinity = 0x7C00;
  static constexpr double kLeastNormal = 0x1p-14;
  static double widened(uint16_t bits) { return double(narrow::f16_to_f32(bits)); }
};
struct Brain {
  static constexpr NarrowFormat kFormat = kBrain;
  static constexpr uint16_t kInfinity = 0x7F80;
  static constexpr double kLeastNormal = 0x1p-126;
  static double widened(uint16_t bits) { return double(narrow::bf16_to_f32(bits)); }
};

template <class H>
double taken(const Instruction& i, uint16_t bits) {
  const double value = H::widened(bits);
  const bool flush = i.flushes && std::fabs(value) < H::kLeastNormal;
  return flush ? std::copysign(0.0, value) : value;
}

// A result before it is rounded, exactly or to odd.
template <class H>
uint16_t given(const Instruction& i, double value) {
  if (i.saturates) value = saturated_to_unit(value);
  if (i.relu && value < 0) value = 0;
  const auto bits = uint16_t(narrowed(value, H::kFormat, Rounding::Nearest));
  const bool flush = i.flushes && (bits & 0x7FFF) < (1 << H::kFormat.fraction_bits);
  return flush ? bits & 0x8000 : bits;
}

template <class H>
bool is_nan(uint16_t bits) {
  return (bits & 0x7FFF) > H::kInfinity;
}

template <class H, bool greater>
uint16_t extreme_of(const Instruction& i, uint16_t a, uint16_t b) {
  constexpr uint16_t kNan = 0x7FFF;
  if (is_nan<H>(a) && is_nan<H>(b)) return kNan;
  if (is_nan<H>(a)) return i.nan ? kNan : given<H>(i, taken<H>(i, b));
  if (is_nan<H>(b)) return i.nan ? kNan : given<H>(i, taken<H>(i, a));
  const double x = taken<H>(i, a), y = taken<H>(i, b);
  if (x == y) return given<H>(i, std::signbit(x) != greater ? x : y);
  return given<H>(i, (x < y) != greater ? x : y);
}

// One function for a half of all sources; `sources` of them.
template <class H, size_t sources, bool pair, class F>
void half_rows(Warp& w, const Instruction& i, uint32_t lanes, F f) {
  Lanes& d = w.value(i.d());
  const Lanes& a = w.value(i.s(0));
  const Lanes& b = w.value(i.s(sources > 1 ? 1 : 0));
  const Lanes& c = w.value(i.s(sources > 2 ? 2 : 0));
  for_each_set(lanes, [&](uint32_t k) {
    uint64_t out = 0;
    for (uint32_t at = 0; at < (pair ? 32 : 16); at += 16)
      out |= uint64_t(f(i, uint16_t(a[k] >> at), uint16_t(b[k] >> at), uint16_t(c[k] >> at))) << at;
    d[k] = out;
  });
}

template <class H, size_t sources, bool pair, class F>
Execute half_row_of(F) {
  return [](Warp& w, const Instruction& i, uint32_t lanes) {
    half_rows<H, sources, pair>(w, i, lanes, F{});
  };
}

template <class H, bool pair>
Execute sums(const Form& f) {
  using In = const Instruction&;
  using U = uint16_t;
  if (f.base == "add")
    return half_row_of<H, 2, pair>(
        [](In i, U a, U b, U) { return given<H>(i, sum_to_odd(taken<H>(i, a), taken<H>(i, b))); });
  if (f.base == "sub")
    return half_row_of<H, 2, pair>(
        [](In i, U a, U b, U) { return given<H>(i, sum_to_odd(taken<H>(i, a), -taken<H>(i, b))); });
  if (f.base == "mul")
    return half_row_of<H, 2, pair>(
        [](In i, U a, U b, U) { return given<H>(i, taken<H>(i, a) * taken<H>(i, b)); });
  return half_row_of<H, 3, pair>([](In i, U a, U b, U c) {
    return given<H>(i, sum_to_odd(taken<H>(i, a) * taken<H>(i, b), taken<H>(i, c)));
  });
}

template <class H, bool pair>
Execute half_row(const Form& f) {
  using In = const Instruction&;
  using U = uint16_t;
  if (f.base == "neg")
    return half_row_of<H, 1, pair>(
        [](In i, U a, U, U) { return i.flushes ? given<H>(i, -taken<H>(i, a)) : U(a ^ 0x8000); });
  if (f.base == "abs")
    return half_row_of<H, 1, pair>([](In i, U a, U, U) {
      return i.flushes ? given<H>(i, std::fabs(taken<H>(i, a))) : U(a & 0x7FFF);
    });
  if (f.base == "min")
    return half_row_of<H, 2, pair>([](In i, U a, U b, U) { return extreme_of<H, false>(i, a, b); });
  if (f.base == "max")
    return half_row_of<H, 2, pair>([](In i, U a, U b, U) { return extreme_of<H, true>(i, a, b); });
  if (f.base == "ex2")
    return half_row_of<H, 1, pair>(
        [](In i, U a, U, U) { return given<H>(i, std::exp2(taken<H>(i, a))); });
  if (f.base == "tanh")
    return half_row_of<H, 1, pair>(
        [](In i, U a, U, U) { return given<H>(i, std::tanh(taken<H>(i, a))); });
  return sums<H, pair>(f);
}

}  // namespace

void make_half(const Form& f, Instruction& i) {
  i.by_halves = f.type() == Type::F16x2 || f.type() == Type::BF16x2;
  switch (f.type()) {
    case Type::F16: i.execute = half_row<Ieee, false>(f); break;
    case Type::F16x2: i.execute = half_row<Ieee, true>(f); break;
    case Type::BF16: i.execute = half_row<Brain, false>(f); break;
    default: i.execute = half_row<Brain, true>(f); break;
  }
}

}  // namespace tuff::emu::ptx

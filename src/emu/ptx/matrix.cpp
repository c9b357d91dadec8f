// Matrix products of a warp, and loads of their fragments. Source: PTX ISA 7.8, 9.7.13: which lane
// has which element. Products and sums of floats are exact in f64 here and rounded once for each
// element, where hardware sums in an order and with a precision that are not specified.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "base/narrow_float.h"
#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/memory_access.h"
#include "emu/ptx/rounding.h"

namespace tuff::emu::ptx {
namespace {

constexpr uint32_t kRows = 16, kColumns = 8;

// Elements of both factors are read as this.
enum class Element : uint8_t { F16, BF16, TF32, U8, S8 };

struct Product {
  Element a, b;
  uint32_t depth;
};

uint32_t elements_per_register(Element e) {
  return e == Element::TF32 ? 1 : e == Element::F16 || e == Element::BF16 ? 2 : 4;
}

double element(Element e, uint64_t bits, uint32_t at) {
  switch (e) {
    case Element::F16: return double(narrow::f16_to_f32(uint16_t(bits >> (16 * at))));
    case Element::BF16: return double(narrow::bf16_to_f32(uint16_t(bits >> (16 * at))));
    // The low 13 bits are not looked at.
    case Element::TF32: return double(std::bit_cast<float>(uint32_t(bits) & ~0x1FFFu));
    case Element::U8: return double(uint8_t(bits >> (8 * at)));
    default: return double(int8_t(bits >> (8 * at)));
  }
}

// Lanes in groups of four have a row (or a column of B); each has `per` elements side by side, in
// each of the tiles that the depth is cut into: of 4 * per elements.
struct Fragment {
  uint32_t lane, reg, at;
};
// A: registers alternate between the upper eight rows and the lower ones, then go on along k.
Fragment place_in_a(uint32_t row, uint32_t k, uint32_t per) {
  const uint32_t tile = k / (4 * per), inside = k % (4 * per);
  return {row % 8 * 4 + inside / per, 2 * tile + row / 8, inside % per};
}
Fragment place_in_b(uint32_t k, uint32_t column, uint32_t per) {
  const uint32_t tile = k / (4 * per), inside = k % (4 * per);
  return {column * 4 + inside / per, tile, inside % per};
}
// C and D: two columns a lane; the second pair is of the lower rows.
Fragment place_in_c(uint32_t row, uint32_t column) {
  return {row % 8 * 4 + column / 2, row / 8, column % 2};
}

Product product_of(const Instruction& i) {
  return {Element(i.matrix.a), Element(i.matrix.b), i.matrix.depth};
}

template <class Sum, class F>
void each_element(Warp& w, const Instruction& i, F f) {
  const Product p = product_of(i);
  const uint32_t per = elements_per_register(p.a);
  const uint32_t a_count = 2 * (p.depth / (4 * per)), b_count = p.depth / (4 * per);
  std::vector<Lanes> s;
  for (uint32_t k = 0; k < i.sources; ++k) s.push_back(w.value(i.s(k)));
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t column = 0; column < kColumns; ++column) {
      Sum sum{};
      for (uint32_t k = 0; k < p.depth; ++k) {
        const Fragment a = place_in_a(row, k, per), b = place_in_b(k, column, per);
        sum.add(element(p.a, s[a.reg][a.lane], a.at) *
                element(p.b, s[a_count + b.reg][b.lane], b.at));
      }
      f(place_in_c(row, column), std::span(s).subspan(a_count + b_count), sum);
    }
  }
}

// A sum of doubles whose error is kept: what is rounded at the end is the exact sum but for errors
// far below an f32's.
struct FloatSum {
  double high = 0, low = 0;
  void add(double value) {
    const double sum = high + value, part = sum - high;
    low += (high - (sum - part)) + (value - part);
    high = sum;
  }
  double total() const { return std::isfinite(high) ? sum_to_odd(high, low) : high; }
};

struct IntegerSum {
  int64_t total = 0;
  void add(double value) { total += int64_t(value); }
};

float f32_or_nan(double value) {
  const float out = float(value);
  return out != out ? std::bit_cast<float>(0x7FFFFFFFu) : out;
}

void product_of_singles(Warp& w, const Instruction& i, uint32_t) {
  std::array<Lanes, 4> d;
  each_element<FloatSum>(w, i, [&](Fragment at, std::span<const Lanes> c, FloatSum sum) {
    const uint32_t reg = at.reg * 2 + at.at;
    sum.add(double(from_bits<float>(c[reg][at.lane])));
    d[reg][at.lane] = to_bits(f32_or_nan(sum.total()));
  });
  for (uint32_t k = 0; k < 4; ++k) w.value(i.d(k)) = d[k];
}

void product_of_halves(Warp& w, const Instruction& i, uint32_t) {
  std::array<Lanes, 2> d;
  each_element<FloatSum>(w, i, [&](Fragment at, std::span<const Lanes> c, FloatSum sum) {
    sum.add(element(Element::F16, c[at.reg][at.lane], at.at));
    d[at.reg][at.lane] |= uint64_t(narrowed(sum.total(), kHalf, Rounding::Nearest)) << (16 * at.at);
  });
  for (uint32_t k = 0; k < 2; ++k) w.value(i.d(k)) = d[k];
}

void product_of_integers(Warp& w, const Instruction& i, uint32_t) {
  std::array<Lanes, 4> d;
  each_element<IntegerSum>(w, i, [&](Fragment at, std::span<const Lanes> c, IntegerSum sum) {
    const uint32_t reg = at.reg * 2 + at.at;
    int64_t total = sum.total + from_bits<int32_t>(c[reg][at.lane]);
    if (i.saturates) total = std::clamp<int64_t>(total, INT32_MIN, INT32_MAX);
    d[reg][at.lane] = uint32_t(total);
  });
  for (uint32_t k = 0; k < 4; ++k) w.value(i.d(k)) = d[k];
}

Element element_of(Type type) {
  switch (type) {
    case Type::F16: return Element::F16;
    case Type::BF16: return Element::BF16;
    case Type::TF32: return Element::TF32;
    case Type::U8: return Element::U8;
    default: return Element::S8;
  }
}

// ---- ldmatrix: 8 lanes have the addresses of the 8 rows of a matrix, 16 bytes each (9.7.13.4.15)

void load_matrix_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const bool transposed = i.variant;
  const uint32_t matrices = i.destinations;
  const uint32_t used = matrices == 4 ? ~0u : (1u << (8 * matrices)) - 1;
  const Addresses at = addresses_of(w, i.memory, used & lanes);
  const LaneBytes rows_there =
      reach_lanes(w, i.memory, at, used & lanes, {16, 16, AccessKind::Load});
  if (rows_there.lanes != used) return;
  for (uint32_t m = 0; m < matrices; ++m) {
    uint32_t defined = 0;
    Lanes out;
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      uint64_t bits = 0;
      bool known = true;
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t row = transposed ? lane % 4 * 2 + half : lane / 4;
        const uint32_t column = transposed ? lane / 4 : lane % 4 * 2 + half;
        const uint8_t* bytes = rows_there.at[m * 8 + row] + 2 * column;
        bits |= uint64_t(bytes[0] | bytes[1] << 8) << (16 * half);
        known &= !(rows_there.undefined >> (m * 8 + row) & 1);
      }
      out[lane] = bits;
      defined |= uint32_t(known) << lane;
    }
    w.value(i.d(m)) = out;
    w.define(i.d(m), ~0u, defined);
  }
}

}  // namespace

void make_matrix(const Form& f, Instruction& i) {
  const bool integers = f.has("s32");
  const Type a = f.type(1), b = f.type(2);
  const int depth = f.has("m16n8k4") ? 4 : f.has("m16n8k8") ? 8 : f.has("m16n8k16") ? 16 : 32;
  i.matrix = {uint8_t(element_of(a)), uint8_t(element_of(b)), uint8_t(depth)};
  i.saturates = f.has("satfinite");
  i.execute = integers                 ? product_of_integers
              : f.type(0) == Type::F32 ? product_of_singles
                                       : product_of_halves;
}

void make_matrix_load(const Form& f, Instruction& i) {
  i.own_definedness = true;
  i.variant = f.has("trans");
  i.memory.space = f.has("shared") || f.has("shared::cta") ? Space::Shared : Space::Generic;
  i.execute = load_matrix_rows;
}

}  // namespace tuff::emu::ptx

// Dtypes' names and the promotion lattice. Conversions stand in convert.cpp and
// scalar.cpp.
#include <tuff/dtype.h>

#include <array>
#include <cmath>

#include "base/check.h"

namespace tuff {
namespace {

struct Alias {
  std::string_view text;
  DType dtype;
};
constexpr Alias kAliases[] = {
    {"float", DType::F32}, {"double", DType::F64},  {"half", DType::F16},  {"int", DType::I32},
    {"uint", DType::U32},  {"long", DType::I64},    {"short", DType::I16}, {"char", DType::I8},
    {"uchar", DType::U8},  {"bfloat", DType::BF16},
};

struct Edge {
  DType below, above;
};
// The covering relation of the lattice; everything else about promotion follows from it.
constexpr Edge kEdges[] = {
    {DType::Void, DType::Bool},     {DType::Bool, DType::WeakInt},  {DType::WeakInt, DType::Index},
    {DType::Index, DType::I8},      {DType::Index, DType::U8},      {DType::I8, DType::I16},
    {DType::U8, DType::I16},        {DType::U8, DType::U16},        {DType::I16, DType::I32},
    {DType::U16, DType::I32},       {DType::U16, DType::U32},       {DType::I32, DType::I64},
    {DType::U32, DType::I64},       {DType::U32, DType::U64},       {DType::I64, DType::WeakFloat},
    {DType::U64, DType::WeakFloat}, {DType::WeakFloat, DType::F16}, {DType::WeakFloat, DType::BF16},
    {DType::F16, DType::F32},       {DType::BF16, DType::F32},      {DType::F32, DType::F64},
    // f8e5m2 is not below bf16: both floats of 8 bits would have two least upper bounds.
    {DType::WeakFloat, DType::F8E4M3FN},
    {DType::WeakFloat, DType::F8E5M2},
    {DType::F8E4M3FN, DType::F16},
    {DType::F8E4M3FN, DType::BF16},
    {DType::F8E5M2, DType::F16},
};

using Matrix = std::array<std::array<bool, kDTypeCount>, kDTypeCount>;

// above[a][b]: b can be reached from a by going up; reflexive.
constexpr Matrix reachability() {
  Matrix above{};
  for (int i = 0; i < kDTypeCount; ++i) above[i][i] = true;
  for (const Edge& e : kEdges) above[int(e.below)][int(e.above)] = true;
  for (int k = 0; k < kDTypeCount; ++k)
    for (int i = 0; i < kDTypeCount; ++i)
      for (int j = 0; j < kDTypeCount; ++j)
        above[i][j] = above[i][j] || (above[i][k] && above[k][j]);
  return above;
}

constexpr DType least_upper_bound(const Matrix& above, int a, int b) {
  for (int c = 0; c < kDTypeCount; ++c) {
    if (!above[a][c] || !above[b][c]) continue;
    bool least = true;
    for (int d = 0; d < kDTypeCount; ++d)
      if (above[a][d] && above[b][d] && !above[c][d]) least = false;
    if (least) return DType(c);
  }
  throw "the edges above are no lattice";  // ends constant evaluation: a compile error
}

using Joins = std::array<std::array<DType, kDTypeCount>, kDTypeCount>;
constexpr Joins all_joins() {
  const Matrix above = reachability();
  Joins joins{};
  for (int a = 0; a < kDTypeCount; ++a)
    for (int b = 0; b < kDTypeCount; ++b) joins[a][b] = least_upper_bound(above, a, b);
  return joins;
}
constexpr Joins kJoins = all_joins();

}  // namespace

double largest_value(DType t) {
  const int bias = (1 << (row(t).exponent_bits - 1)) - 1, m = row(t).mantissa_bits;
  // Without infinities the highest exponent is one of numbers, but for the last significand, NaN.
  return has_infinity(t) ? std::ldexp(2 - std::ldexp(1.0, -m), bias)
                         : std::ldexp(2 - std::ldexp(1.0, 1 - m), bias + 1);
}
double smallest_normal(DType t) {
  return std::ldexp(1.0, 2 - (1 << (row(t).exponent_bits - 1)));
}

DType parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (text == kDTypeRows[i].name || text == kDTypeRows[i].short_name) return DType(i);
  for (const Alias& alias : kAliases)
    if (text == alias.text) return alias.dtype;
  std::string known;
  for (const DTypeRow& r : kDTypeRows) known += fmt::format(" {}", r.name);
  fail<InvalidArgument>("'{}' is no dtype; known:{}", text, known);
}

DType promote(DType a, DType b) {
  TUFF_CHECK(int(a) < kDTypeCount && int(b) < kDTypeCount, "promote({}, {})", int(a), int(b));
  return kJoins[int(a)][int(b)];
}

DType strengthen(DType t) {
  if (t == DType::WeakInt) return DType::I32;
  if (t == DType::WeakFloat) return DType::F32;
  return t;
}

DType accumulator(DType t) {
  t = strengthen(t);
  if (t == DType::Void || row(t).storage_bits >= 32) return t;
  switch (row(t).kind) {
    case DTypeClass::Unsigned: return DType::U32;
    case DTypeClass::Float: return DType::F32;
    default: return DType::I32;
  }
}

}  // namespace tuff

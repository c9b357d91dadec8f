#include "ir/derive.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/arith.h"
#include "ir/op_table.h"

namespace tuff::ir {
namespace {

using Wide = __int128;
using Bounds = std::pair<int64_t, int64_t>;
constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
constexpr Bounds kUnknown{kLow, kHigh};

Bounds dtype_bounds(DType t) {
  if (t == DType::Bool) return {0, 1};
  if (t == DType::Index || t == DType::I64 || t == DType::WeakInt || !is_int(t)) return kUnknown;
  if (t == DType::U64) return {0, kHigh};
  const int bits = row(t).storage_bits;
  if (is_unsigned(t)) return {0, (int64_t(1) << bits) - 1};
  return {-(int64_t(1) << (bits - 1)), (int64_t(1) << (bits - 1)) - 1};
}

// A result that may wrap in its dtype says nothing; an Index never wraps, so it saturates.
Bounds fit(DType t, Wide lo, Wide hi) {
  const Bounds full = dtype_bounds(t);
  if (t == DType::Index || t == DType::WeakInt) {
    return {int64_t(std::clamp<Wide>(lo, kLow, kHigh)), int64_t(std::clamp<Wide>(hi, kLow, kHigh))};
  }
  if (lo < full.first || hi > full.second || t == DType::U64) return full;
  return {int64_t(lo), int64_t(hi)};
}


Bounds unknown(DType t, const Node&, const Node&) { return dtype_bounds(t); }

Bounds cast_bounds(DType t, const Node& a, const Node&) {
  const Bounds full = dtype_bounds(t);
  if (is_float(a.dtype) || is_float(t)) return full;
  if (t == DType::Bool)
    return a.min > 0 || a.max < 0 ? Bounds{1, 1} : a.min == 0 && a.max == 0 ? Bounds{0, 0} : full;
  if (a.min < full.first || a.max > full.second || a.dtype == DType::U64) return full;
  return {a.min, a.max};
}
Bounds neg_bounds(DType t, const Node& a, const Node&) {
  return fit(t, -Wide(a.max), -Wide(a.min));
}
Bounds or_bounds(DType t, const Node& a, const Node& b) {
  if (t == DType::Bool) return {a.min | b.min, a.max | b.max};
  if (a.min < 0 || b.min < 0) return dtype_bounds(t);
  const uint64_t bits = std::bit_width(uint64_t(std::max(a.max, b.max)));
  return {std::max(a.min, b.min), int64_t((uint64_t(1) << bits) - 1)};
}
Bounds add_bounds(DType t, const Node& a, const Node& b) {
  return t == DType::Bool ? or_bounds(t, a, b) : fit(t, Wide(a.min) + b.min, Wide(a.max) + b.max);
}
Bounds sub_bounds(DType t, const Node& a, const Node& b) {
  return t == DType::Bool ? Bounds{0, 1} : fit(t, Wide(a.min) - b.max, Wide(a.max) - b.min);
}
Bounds max_bounds(DType, const Node& a, const Node& b) {
  return {std::max(a.min, b.min), std::max(a.max, b.max)};
}
Bounds where_bounds(DType, const Node& a, const Node& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}
Bounds mul_bounds(DType t, const Node& a, const Node& b) {
  const Wide c[] = {Wide(a.min) * b.min, Wide(a.min) * b.max, Wide(a.max) * b.min,
                    Wide(a.max) * b.max};
  return fit(t, *std::min_element(c, c + 4), *std::max_element(c, c + 4));
}

Bounds floordiv_bounds(DType, const Node& a, const Node& b) {
  if (b.min <= 0) return kUnknown;
  const int64_t c[] = {floor_div(a.min, b.min), floor_div(a.min, b.max), floor_div(a.max, b.min),
                       floor_div(a.max, b.max)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

Bounds floormod_bounds(DType, const Node& a, const Node& b) {
  if (b.min <= 0) return kUnknown;
  if (a.min >= 0 && a.max < b.min) return {a.min, a.max};
  if (b.is_const() && a.min != kLow && a.max != kHigh) {
    const int64_t m = b.min;
    if (floor_div(a.min, m) == floor_div(a.max, m)) {
      return {a.min - floor_div(a.min, m) * m, a.max - floor_div(a.max, m) * m};
    }
  }
  return {0, a.min >= 0 ? std::min(a.max, b.max - 1) : b.max - 1};
}

template <Op op>
Bounds truncated_bounds(DType t, const Node& a, const Node& b) {
  if (a.min < 0 || b.min <= 0) return dtype_bounds(t);
  if (op == Op::IDiv) return {a.min / b.max, a.max / b.min};
  return a.max < b.min ? Bounds{a.min, a.max} : Bounds{0, std::min(a.max, b.max - 1)};
}

template <Op op>
Bounds compare_bounds(DType, const Node& a, const Node& b) {
  if (is_float(a.dtype)) return {0, 1};
  const bool apart = a.max < b.min || b.max < a.min;
  const bool same = a.min == a.max && b.min == b.max && a.min == b.min;
  const bool holds = op == Op::CmpLt ? a.max < b.min : op == Op::CmpNe ? apart : same;
  const bool fails = op == Op::CmpLt ? a.min >= b.max : op == Op::CmpNe ? same : apart;
  return {holds, !fails};
}

Bounds and_bounds(DType t, const Node& a, const Node& b) {
  if (t == DType::Bool) return {a.min & b.min, a.max & b.max};
  if (b.min >= 0 && b.is_const()) return {0, b.max};
  if (a.min >= 0 && b.min >= 0) return {0, std::min(a.max, b.max)};
  return dtype_bounds(t);
}

template <Op op>
Bounds shift_bounds(DType t, const Node& a, const Node& b) {
  if (b.min < 0 || b.max > 62 || (a.min < 0 && !b.is_const())) return dtype_bounds(t);
  if (op == Op::Shr) return {a.min >> b.max, a.max >> b.min};
  return fit(t, Wide(a.min) << b.min, Wide(a.max) << b.max);
}

// The bounds that follow from the last two sources, or from the only one.
using Rule = Bounds (*)(DType t, const Node& a, const Node& b);
constexpr OpTable<Rule> kRules{{
    {Op::Cast, cast_bounds},                {Op::Bitcast, unknown},
    {Op::Neg, neg_bounds},                  {Op::Add, add_bounds},
    {Op::Sub, sub_bounds},                  {Op::Mul, mul_bounds},
    {Op::IDiv, truncated_bounds<Op::IDiv>}, {Op::IMod, truncated_bounds<Op::IMod>},
    {Op::FloorDiv, floordiv_bounds},        {Op::FloorMod, floormod_bounds},
    {Op::Max, max_bounds},                  {Op::CmpLt, compare_bounds<Op::CmpLt>},
    {Op::CmpNe, compare_bounds<Op::CmpNe>}, {Op::CmpEq, compare_bounds<Op::CmpEq>},
    {Op::And, and_bounds},                  {Op::Or, or_bounds},
    {Op::Xor, unknown},                     {Op::Shl, shift_bounds<Op::Shl>},
    {Op::Shr, shift_bounds<Op::Shr>},       {Op::Where, where_bounds},
    {Op::MulAdd, unknown},                  {Op::Threefry, unknown},
}};
static_assert(kRules.covers(takes_integers), "ir/bounds.cpp: kRules lacks an op of integers");

}  // namespace

Bounds derive_bounds(Op op, DType t, std::span<const UOp> src, const Arg& arg) {
  if (is_float(t) || t == DType::Void) return kUnknown;
  switch (op) {
    case Op::Const: {
      const Scalar& v = std::get<Scalar>(arg);
      if (t == DType::U64 && int64_t(v.bits) < 0) return kUnknown;
      return {v.as_int(), v.as_int()};
    }
    case Op::Variable: return {std::get<VariableArg>(arg).min, std::get<VariableArg>(arg).max};
    // The counter of a loop that may make no iteration is no constant, even if 0 is all it can be:
    // what depends on it has to stay inside.
    case Op::Range: return {0, std::max<int64_t>(src[0]->max - 1, src[0]->is_const() ? 0 : 1)};
    case Op::Special: return {0, std::max<int64_t>(src[0]->max - 1, 0)};
    case Op::Reshape:
    case Op::Permute:
    case Op::Expand:
    case Op::Shrink:
    case Op::Flip:
    case Op::After:
    case Op::Contiguous:
    case Op::Mark:
    case Op::Checkpoint:
    case Op::Again:
    case Op::Ruled:
    case Op::Detach: return {src[0]->min, src[0]->max};
    default: break;
  }
  const Rule* rule = kRules.find(op);
  if (!rule) return dtype_bounds(t);
  return (*rule)(t, *src[std::max<size_t>(src.size(), 2) - 2], *src.back());
}

}  // namespace tuff::ir

// Comparisons, selections and predicates. Source: PTX ISA 7.8, 9.3.1 (comparisons), 9.7.5, 9.7.6,
// 9.7.7.
#include <cmath>

#include "base/narrow_float.h"
#include "emu/ptx/known_bits.h"
#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/rounding.h"

namespace tuff::emu::ptx {
namespace {

// In the order of the table in find_comparison().
enum class Comparison : uint8_t {
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Number,
  Nan
};
constexpr uint8_t kOrNan = 16;     // holds as well where an operand is NaN
constexpr uint8_t kCombined = 32;  // with a predicate, by the operation above
constexpr int kOperationShift = 6;
enum class Operation : uint8_t { And, Or, Xor };

uint8_t find_comparison(const Form& f) {
  struct Name {
    const char* name;
    Comparison comparison;
    bool or_nan;
  };
  using enum Comparison;
  static constexpr Name kNames[] = {
      {"eq", Equal, false},        {"ne", NotEqual, false},  {"lt", Less, false},
      {"le", LessEqual, false},    {"gt", Greater, false},   {"ge", GreaterEqual, false},
      {"lo", Less, false},         {"ls", LessEqual, false}, {"hi", Greater, false},
      {"hs", GreaterEqual, false}, {"equ", Equal, true},     {"neu", NotEqual, true},
      {"ltu", Less, true},         {"leu", LessEqual, true}, {"gtu", Greater, true},
      {"geu", GreaterEqual, true}, {"num", Number, false},   {"nan", Nan, false},
  };
  for (const Name& n : kNames) {
    if (!f.modifiers.empty() && f.modifiers[0] == n.name)
      return uint8_t(uint8_t(n.comparison) | (n.or_nan ? kOrNan : 0));
  }
  return 0;
}

template <class T>
bool is_nan_value(T a) {
  if constexpr (std::is_floating_point_v<T>) return a != a;
  return false;
}

template <class T>
bool compares(uint8_t how, T a, T b) {
  const bool nan = is_nan_value(a) || is_nan_value(b);
  const auto comparison = Comparison(how & 7);
  if (comparison == Comparison::Number) return !nan;
  if (comparison == Comparison::Nan) return nan;
  if (nan) return how & kOrNan;
  switch (comparison) {
    case Comparison::Equal: return a == b;
    case Comparison::NotEqual: return a != b;
    case Comparison::Less: return a < b;
    case Comparison::LessEqual: return a <= b;
    case Comparison::Greater: return a > b;
    default: return a >= b;
  }
}

template <class T, class Read>
uint32_t compared(Warp& w, const Instruction& i, uint32_t lanes, Read read) {
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1));
  uint32_t out = 0;
  const auto one = [&](uint32_t k) {
    out |= uint32_t(compares<T>(i.variant, read(a[k]), read(b[k]))) << k;
  };
  for_lanes(lanes, one);
  return out;
}

template <class T>
uint32_t compared_plainly(Warp& w, const Instruction& i, uint32_t lanes) {
  return compared<T>(w, i, lanes, [&](uint64_t bits) {
    const T value = from_bits<T>(bits);
    if constexpr (std::is_floating_point_v<T>) return i.flushes ? flushed(value) : value;
    return value;
  });
}

float half_value(const Instruction& i, bool brain, uint64_t bits) {
  const float value =
      brain ? narrow::bf16_to_f32(uint16_t(bits)) : narrow::f16_to_f32(uint16_t(bits));
  return i.flushes && std::fabs(value) < 0x1p-14f ? std::copysign(0.0f, value) : value;
}

template <bool brain, uint32_t at>
uint32_t compared_halves(Warp& w, const Instruction& i, uint32_t lanes) {
  return compared<float>(w, i, lanes,
                         [&](uint64_t bits) { return half_value(i, brain, bits >> at); });
}

using Compare = uint32_t (*)(Warp&, const Instruction&, uint32_t);

// What `how` combines with, and the second destination, which has the comparison's opposite.
void set_results(Warp& w, const Instruction& i, uint32_t lanes, uint32_t holds) {
  uint32_t opposite = ~holds;
  if (i.variant & kCombined) {
    const uint32_t c = w.predicate(i);
    const auto operation = Operation(i.variant >> kOperationShift);
    const auto combine = [&](uint32_t p) {
      return operation == Operation::And ? p & c : operation == Operation::Or ? p | c : p ^ c;
    };
    holds = combine(holds);
    opposite = combine(opposite);
  }
  w.set_predicate(i.predicate_destinations[0], lanes, holds);
  if (i.predicate_destinations[1] != kNone)
    w.set_predicate(i.predicate_destinations[1], lanes, opposite);
}

template <Compare compare>
void setp_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  set_results(w, i, lanes, compare(w, i, lanes));
}

// Both halves, each into a predicate (9.7.6.2).
template <bool brain>
void setp_pair_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const uint32_t low = compared_halves<brain, 0>(w, i, lanes);
  const uint32_t high = compared_halves<brain, 16>(w, i, lanes);
  w.set_predicate(i.predicate_destinations[0], lanes, low);
  if (i.predicate_destinations[1] != kNone)
    w.set_predicate(i.predicate_destinations[1], lanes, high);
}

template <Compare compare>
void set_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const uint32_t holds = compare(w, i, lanes);
  Lanes& d = w.value(i.d());
  const uint64_t yes = i.saturates ? 0x3F800000 : 0xFFFFFFFF;  // 1.0, or all ones
  for_each_set(lanes, [&](uint32_t k) { d[k] = holds >> k & 1 ? yes : 0; });
}

// Calls f<compare>() with the comparison of the type's values.
template <class F>
Execute with_comparison(Type type, F f) {
  switch (type) {
    case Type::B16:
    case Type::U16: return f.template operator()<compared_plainly<uint16_t>>();
    case Type::B32:
    case Type::U32: return f.template operator()<compared_plainly<uint32_t>>();
    case Type::B64:
    case Type::U64: return f.template operator()<compared_plainly<uint64_t>>();
    case Type::S16: return f.template operator()<compared_plainly<int16_t>>();
    case Type::S32: return f.template operator()<compared_plainly<int32_t>>();
    case Type::S64: return f.template operator()<compared_plainly<int64_t>>();
    case Type::F16: return f.template operator()<compared_halves<false, 0>>();
    case Type::BF16: return f.template operator()<compared_halves<true, 0>>();
    case Type::F32: return f.template operator()<compared_plainly<float>>();
    case Type::F64: return f.template operator()<compared_plainly<double>>();
    default: return nullptr;
  }
}

// ---- selections: what is not chosen may be undefined

void choose(Warp& w, const Instruction& i, uint32_t lanes, uint32_t first, uint32_t known) {
  const uint32_t da = w.frame->defined[i.s(0)], db = w.frame->defined[i.s(1)];
  Lanes& d = w.value(i.d());
  const Lanes &a = w.value(i.s(0)), &b = w.value(i.s(1));
  for_lanes(lanes, [&](uint32_t k) { d[k] = first >> k & 1 ? a[k] : b[k]; });
  const uint32_t chosen = (first & da) | (~first & db), part = lanes & known & ~chosen;
  Lanes bits;  // of what is chosen, before the destination is changed, which may be a source
  for_each_set(part, [&](uint32_t k) {
    bits[k] = known_bits(*w.frame, i.s(first >> k & 1 ? 0 : 1), k);
  });
  w.define(i.d(), lanes, known & chosen);
  for_each_set(part, [&](uint32_t k) { set_known_bits(*w.frame, i.d(), k, bits[k]); });
}

void select_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  choose(w, i, lanes, w.predicate(i), w.frame->predicates_defined[i.predicate_sources[0]]);
}

template <class C>
void select_by_sign(Warp& w, const Instruction& i, uint32_t lanes) {
  const Lanes& c = w.value(i.s(2));
  uint32_t first = 0;
  for_each_set(lanes, [&](uint32_t k) { first |= uint32_t(from_bits<C>(c[k]) >= 0) << k; });
  choose(w, i, lanes, first, w.frame->defined[i.s(2)]);
}

template <class F>
Execute predicate_rows(F) {
  return [](Warp& w, const Instruction& i, uint32_t lanes) {
    const uint32_t b = i.predicate_sources[1] == kNone ? 0 : w.predicate(i, 1);
    w.set_predicate(i.predicate_destinations[0], lanes, F{}(w.predicate(i, 0), b));
  };
}

}  // namespace

void make_setp(const Form& f, Instruction& i) {
  i.variant = find_comparison(f);
  const Type type = f.types.back();
  if (type == Type::F16x2 || type == Type::BF16x2) {
    i.execute = type == Type::F16x2 ? setp_pair_rows<false> : setp_pair_rows<true>;
    return;
  }
  if (f.has("and") || f.has("or") || f.has("xor")) {
    const Operation operation = f.has("and")  ? Operation::And
                                : f.has("or") ? Operation::Or
                                              : Operation::Xor;
    i.variant |= uint8_t(kCombined | uint8_t(operation) << kOperationShift);
  }
  i.execute =
      with_comparison(type, [&]<Compare compare>() -> Execute { return setp_rows<compare>; });
}

void make_set(const Form& f, Instruction& i) {
  i.variant = find_comparison(f);
  i.saturates = f.type(0) == Type::F32;
  i.execute =
      with_comparison(f.type(1), [&]<Compare compare>() -> Execute { return set_rows<compare>; });
}

void make_select(const Form& f, Instruction& i) {
  i.own_definedness = true;
  if (f.base == "selp")
    i.execute = select_rows;
  else
    i.execute = f.type(1) == Type::S32 ? select_by_sign<int32_t> : select_by_sign<float>;
}

void make_predicate(const Form& f, Instruction& i) {
  using P = uint32_t;
  if (f.base == "and") i.execute = predicate_rows([](P a, P b) { return a & b; });
  if (f.base == "or") i.execute = predicate_rows([](P a, P b) { return a | b; });
  if (f.base == "xor") i.execute = predicate_rows([](P a, P b) { return a ^ b; });
  if (f.base == "not") i.execute = predicate_rows([](P a, P) { return ~a; });
  if (f.base == "mov") i.execute = predicate_rows([](P a, P) { return a; });
}

}  // namespace tuff::emu::ptx

#include "hcq/slot_program.h"

#include <algorithm>
#include <optional>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::hcq {
namespace {

using ir::Op;

void require_divisor(int64_t a, int64_t b) {
  if (b < 1) fail<InvalidArgument>("a size {} is divided by {}", a, b);
}

// Nothing for an op that is not computed.
std::optional<int64_t> compute(Op op, int64_t a, int64_t b, int64_t c) {
  int64_t r = 0;
  bool overflows = false;
  switch (op) {
    case Op::Add: overflows = __builtin_add_overflow(a, b, &r); break;
    case Op::Sub: overflows = __builtin_sub_overflow(a, b, &r); break;
    case Op::Mul: overflows = __builtin_mul_overflow(a, b, &r); break;
    case Op::FloorDiv: require_divisor(a, b); return floor_div(a, b);
    case Op::FloorMod: require_divisor(a, b); return a - floor_div(a, b) * b;
    case Op::Max: return std::max(a, b);
    case Op::CmpLt: return a < b;
    case Op::CmpEq: return a == b;
    case Op::CmpNe: return a != b;
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Where: return a ? b : c;
    default: return {};
  }
  if (overflows) fail<InvalidArgument>("sizes {} and {} make one beyond 64 bits", a, b);
  return r;
}

}  // namespace

uint32_t SlotProgram::constant(int64_t value) {
  auto [it, fresh] = constants_.try_emplace(value, slot_count_);
  if (fresh) ++slot_count_;
  return it->second;
}

bool SlotProgram::computes(Op op) { return compute(op, 1, 1, 1).has_value(); }

uint32_t SlotProgram::append(Op op, uint32_t a, uint32_t b, uint32_t c) {
  TUFF_CHECK(computes(op) && a < slot_count_ && b < slot_count_ && c < std::max(slot_count_, 1u),
             "slots {}, {} and {} of {}", a, b, c, slot_count_);
  if (ir::is_commutative(op) && a > b) std::swap(a, b);
  auto [it, fresh] = known_.try_emplace({op, a, b, c}, slot_count_);
  if (fresh) entries_.push_back({op, slot_count_++, a, b, c});
  return it->second;
}

void SlotProgram::load_constants(std::span<uint64_t> slots) const {
  TUFF_CHECK(slots.size() == slot_count_, "{} slots given, {} used", slots.size(), slot_count_);
  for (const auto& [value, slot] : constants_) slots[slot] = static_cast<uint64_t>(value);
}

void SlotProgram::run(std::span<uint64_t> slots) const {
  const auto value = [&](uint32_t slot) { return static_cast<int64_t>(slots[slot]); };
  for (const Entry& e : entries_)
    slots[e.dst] = static_cast<uint64_t>(*compute(e.op, value(e.a), value(e.b), value(e.c)));
}

}  // namespace tuff::hcq

#include "hcq/slot_program.h"

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"

namespace tuff::hcq {
namespace {

bool is_commutative(SlotOp op) {
  switch (op) {
    case SlotOp::Add:
    case SlotOp::Mul:
    case SlotOp::Max:
    case SlotOp::Equal:
    case SlotOp::NotEqual:
    case SlotOp::And:
    case SlotOp::Or: return true;
    default: return false;
  }
}

void require_divisor(int64_t a, int64_t b) {
  if (b < 1) fail<InvalidArgument>("a size {} is divided by {}", a, b);
}

// Rounded toward -inf; b >= 1.

int64_t compute(SlotOp op, int64_t a, int64_t b, int64_t c) {
  int64_t r = 0;
  bool overflows = false;
  switch (op) {
    case SlotOp::Add: overflows = __builtin_add_overflow(a, b, &r); break;
    case SlotOp::Sub: overflows = __builtin_sub_overflow(a, b, &r); break;
    case SlotOp::Mul: overflows = __builtin_mul_overflow(a, b, &r); break;
    case SlotOp::FloorDiv: require_divisor(a, b); return floor_div(a, b);
    case SlotOp::FloorMod: require_divisor(a, b); return a - floor_div(a, b) * b;
    case SlotOp::Max: return std::max(a, b);
    case SlotOp::Less: return a < b;
    case SlotOp::Equal: return a == b;
    case SlotOp::NotEqual: return a != b;
    case SlotOp::And: return a & b;
    case SlotOp::Or: return a | b;
    case SlotOp::Select: return a ? b : c;
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

uint32_t SlotProgram::append(SlotOp op, uint32_t a, uint32_t b, uint32_t c) {
  TUFF_CHECK(a < slot_count_ && b < slot_count_ && c < std::max(slot_count_, 1u),
             "slots {}, {} and {} of {}", a, b, c, slot_count_);
  if (is_commutative(op) && a > b) std::swap(a, b);
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
    slots[e.dst] = static_cast<uint64_t>(compute(e.op, value(e.a), value(e.b), value(e.c)));
}

}  // namespace tuff::hcq

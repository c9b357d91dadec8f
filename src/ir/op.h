// Op: the enum of every operation, with names, groups and properties, all derived from ops.def.
// Read by every room right of base. Nothing about an op is stated twice.
#ifndef TUFF_IR_OP_H
#define TUFF_IR_OP_H

#include <array>
#include <cstdint>
#include <span>

namespace tuff::ir {

enum class Op : uint8_t {
#define TUFF_OP(name, text, arity, rule, flags, floors, prose) name,
#include "ir/ops.def"
};

enum class DTypeRule : uint8_t { Same, Bool, Index, Given, Void, Where };

enum OpFlag : uint16_t {
  kCommutative = 1,
  kAssociative = 2,
  kIdempotent = 4,
  kUnary = 8,
  kBinary = 16,
  kTernary = 32,
  kMovement = 64,
  kReducible = 128,
  kDecomposed = 256,
};
enum Floor : uint8_t { kFloorTensor = 1, kFloorKernel = 2, kFloorLinear = 4 };

// Columns of ALU rows; ops.def says what they mean.
enum class OpDTypes : uint8_t { None, All, Numbers, Floats, Integers, Bits, Words, Counters };
enum class OpConstants : uint8_t { None, All, Choices, Quotient, Compared };

struct OpRow {
  const char* name;  // C++ name, "Add"
  const char* text;  // text IR name, "add"
  int8_t arity;
  DTypeRule rule;
  uint16_t flags;
  uint8_t floors;
  const char* prose;
  OpDTypes dtypes = OpDTypes::None;
  uint8_t cost = 1;
  OpConstants constants = OpConstants::None;
  float ulps = 0;
};

inline constexpr auto kOpRows = [] {
  constexpr uint16_t C = kCommutative, A = kAssociative, I = kIdempotent, U = kUnary, B = kBinary,
                     T = kTernary, M = kMovement, R = kReducible, D = kDecomposed;
  constexpr uint8_t FT = kFloorTensor, FK = kFloorKernel, FL = kFloorLinear;
  return std::to_array<OpRow>({
#define TUFF_OP(name, text, arity, rule, flags, floors, prose) \
  {#name, text, arity, DTypeRule::rule, uint16_t(flags), uint8_t(floors), prose},
#define TUFF_ALU(name, text, arity, rule, flags, floors, dtypes, first, second, cost, constants, \
                 ulps, error, prose)                                                             \
  {#name, text, arity, DTypeRule::rule, uint16_t(flags), uint8_t(floors), prose,                 \
   OpDTypes::dtypes, cost, OpConstants::constants, float(ulps)},
#include "ir/ops.def"
  });
}();

constexpr std::span<const OpRow> op_rows() { return kOpRows; }
constexpr const OpRow& row(Op op) { return kOpRows[size_t(op)]; }
constexpr const char* name(Op op) { return row(op).text; }
constexpr bool has_flag(Op op, uint16_t flags) { return (row(op).flags & flags) != 0; }
constexpr bool is_alu(Op op) { return has_flag(op, kUnary | kBinary | kTernary); }
constexpr bool is_movement(Op op) { return has_flag(op, kMovement); }
constexpr bool is_commutative(Op op) { return has_flag(op, kCommutative); }

static_assert([] {
  for (const OpRow& r : kOpRows)
    if (((r.flags & (kUnary | kBinary | kTernary)) != 0) != (r.dtypes != OpDTypes::None)) return false;
  return true;
}(), "ir/ops.def: the rows of ALU ops are TUFF_ALU, all others are TUFF_OP");

// ALU ops by what they take, and those that renderers see.
constexpr bool takes_floats(Op op) {
  const OpDTypes d = row(op).dtypes;
  return d == OpDTypes::All || d == OpDTypes::Numbers || d == OpDTypes::Floats;
}
constexpr bool takes_bools(Op op) {
  return row(op).dtypes == OpDTypes::All || row(op).dtypes == OpDTypes::Bits;
}
constexpr bool takes_integers(Op op) { return is_alu(op) && row(op).dtypes != OpDTypes::Floats; }
constexpr bool is_rendered(Op op) { return is_alu(op) && !has_flag(op, kDecomposed); }

}  // namespace tuff::ir

#endif  // TUFF_IR_OP_H

// Op: the enum of every operation, with names, groups and properties, all derived from ops.def.
// Read by every room right of base. Nothing about an op is stated twice.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tuff::ir {

enum class Op : uint8_t {
#define TUFF_OP(name, text, arity, rule, flags, floors, prose) name,
#include "ir/ops.def"
#undef TUFF_OP
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
};
enum Floor : uint8_t { kFloorTensor = 1, kFloorKernel = 2, kFloorLinear = 4 };

struct OpRow {
  const char* name;  // C++ name, "Add"
  const char* text;  // text IR name, "add"
  int8_t arity;
  DTypeRule rule;
  uint16_t flags;
  uint8_t floors;
  const char* prose;
};

std::span<const OpRow> op_rows();
const OpRow& row(Op op);
inline const char* name(Op op) { return row(op).text; }
inline bool has_flag(Op op, uint16_t flags) { return (row(op).flags & flags) != 0; }
inline bool is_alu(Op op) { return has_flag(op, kUnary | kBinary | kTernary); }
inline bool is_movement(Op op) { return has_flag(op, kMovement); }
inline bool is_commutative(Op op) { return has_flag(op, kCommutative); }

}  // namespace tuff::ir

#include "ir/op.h"

#include "ir/uop.h"

namespace tuff::ir {
namespace {

constexpr uint16_t C = kCommutative, A = kAssociative, I = kIdempotent, U = kUnary, B = kBinary,
                   T = kTernary, M = kMovement, R = kReducible;
constexpr uint8_t FT = kFloorTensor, FK = kFloorKernel, FL = kFloorLinear;

constexpr OpRow kRows[] = {
#define TUFF_OP(name, text, arity, rule, flags, floors, prose) \
  {                                                            \
      #name,                                                   \
      text,                                                    \
      arity,                                                   \
      DTypeRule::rule,                                         \
      static_cast<uint16_t>(flags),                            \
      static_cast<uint8_t>(floors),                            \
      prose},
#include "ir/ops.def"
#undef TUFF_OP
};

}  // namespace

std::span<const OpRow> op_rows() { return kRows; }
const OpRow& row(Op op) { return kRows[static_cast<size_t>(op)]; }

const char* name(AxisKind k) {
  static constexpr const char* kNames[] = {"loop",     "group",  "local",      "lane",
                                           "vector",   "reduce", "reducelane", "groupreduce",
                                           "subgroup", "matrix"};
  return kNames[static_cast<size_t>(k)];
}

const char* name(MatrixUse use) {
  return use == MatrixUse::A ? "a" : use == MatrixUse::B ? "b" : "sum";
}

}  // namespace tuff::ir

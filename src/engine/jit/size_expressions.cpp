#include "engine/jit/size_expressions.h"

#include "base/check.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "ir/walk.h"

namespace tuff::engine {
namespace {

using ir::Op;
using ir::UOp;
using hcq::SlotOp;

constexpr ir::OpTable<SlotOp> kSlotOps{{
    {Op::Add, SlotOp::Add},           {Op::Sub, SlotOp::Sub},
    {Op::Mul, SlotOp::Mul},           {Op::FloorDiv, SlotOp::FloorDiv},
    {Op::FloorMod, SlotOp::FloorMod}, {Op::Max, SlotOp::Max},
    {Op::CmpLt, SlotOp::Less},        {Op::CmpEq, SlotOp::Equal},
    {Op::CmpNe, SlotOp::NotEqual},    {Op::And, SlotOp::And},
    {Op::Or, SlotOp::Or},             {Op::Where, SlotOp::Select},
}};

SlotOp slot_op(const ir::Node& n) {
  if (n.dtype == DType::Bool && n.op == Op::Add) return SlotOp::Or;
  if (n.dtype == DType::Bool && n.op == Op::Mul) return SlotOp::And;
  if (const SlotOp* op = kSlotOps.find(n.op)) return *op;
  fail<Unsupported>("a replay computes no {} of sizes: {}", name(n.op), ir::expression(UOp(&n)));
}

}  // namespace

SizeExpressions::SizeExpressions(std::span<const UOp> variables)
    : program_(static_cast<uint32_t>(variables.size())) {
  for (const UOp& v : variables) {
    given_.push_back(uint32_t(variables_.size()));
    variables_.push_back(v->get<ir::VariableArg>());
  }
}

const uint32_t* SizeExpressions::given(const ir::Node& variable) const {
  for (size_t i = 0; i < variables_.size(); i++) {
    if (variables_[i] == variable.get<ir::VariableArg>()) return &given_[i];
  }
  return nullptr;
}

bool SizeExpressions::covers(const UOp& x) const {
  for (const ir::Node* n : ir::toposort(x)) {
    if (n->op == Op::Variable && !given(*n)) return false;
  }
  return true;
}

uint32_t SizeExpressions::slot(const UOp& x) {
  for (const ir::Node* n : ir::toposort(x)) {
    const UOp u(n);
    if (slots_.count(u)) continue;
    if (n->op == Op::Variable) {
      const uint32_t* value = given(*n);
      TUFF_CHECK(value, "variable {} is not given", n->get<ir::VariableArg>().name);
      slots_.emplace(u, *value);
      continue;
    }
    if (n->is_const()) {
      slots_.emplace(u, program_.constant(n->const_int()));
      continue;
    }
    if (n->op == Op::Neg) {
      slots_.emplace(u, program_.append(SlotOp::Sub, program_.constant(0), slots_.at(n->src(0))));
      continue;
    }
    const SlotOp op = slot_op(*n);
    const uint32_t third = n->src_count > 2 ? slots_.at(n->src(2)) : 0;
    slots_.emplace(u, program_.append(op, slots_.at(n->src(0)), slots_.at(n->src(1)), third));
  }
  return slots_.at(x);
}

}  // namespace tuff::engine

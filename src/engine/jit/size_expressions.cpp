#include "engine/jit/size_expressions.h"

#include <algorithm>

#include "base/check.h"
#include "ir/text.h"
#include "ir/walk.h"

namespace tuff::engine {
namespace {

using ir::Op;
using ir::UOp;

Op slot_op(const ir::Node& n) {
  if (n.dtype == DType::Bool && n.op == Op::Add) return Op::Or;
  if (n.dtype == DType::Bool && n.op == Op::Mul) return Op::And;
  if (hcq::SlotProgram::computes(n.op)) return n.op;
  fail<Unsupported>("a replay computes no {} of sizes: {}", name(n.op), ir::expression(UOp(&n)));
}

}  // namespace

SizeExpressions::SizeExpressions(std::span<const UOp> variables)
    : program_(static_cast<uint32_t>(variables.size())) {
  for (const UOp& v : variables) variables_.push_back(v->get<ir::VariableArg>());
}

std::optional<uint32_t> SizeExpressions::given(const ir::Node& variable) const {
  const auto it = std::ranges::find(variables_, variable.get<ir::VariableArg>());
  if (it == variables_.end()) return {};
  return uint32_t(it - variables_.begin());
}

bool SizeExpressions::covers(const UOp& x) const {
  for (const ir::Node* n : ir::toposort(x)) {
    if (n->op == Op::Variable && !given(*n)) return false;
  }
  return true;
}

uint32_t SizeExpressions::made(const ir::Node& n) {
  if (n.op == Op::Variable) {
    const std::optional<uint32_t> value = given(n);
    TUFF_CHECK(value.has_value(), "variable {} is not given", n.get<ir::VariableArg>().name);
    return *value;
  }
  if (n.is_const()) return program_.constant(n.const_int());
  const auto source = [&](uint32_t i) { return slots_.at(n.src(i)); };
  if (n.op == Op::Neg) return program_.append(Op::Sub, program_.constant(0), source(0));
  const Op op = slot_op(n);
  return program_.append(op, source(0), source(1), n.src_count > 2 ? source(2) : 0);
}

uint32_t SizeExpressions::slot(const UOp& x) {
  for (const ir::Node* n : ir::toposort(x))
    if (const UOp u(n); !slots_.contains(u)) slots_.emplace(u, made(*n));
  return slots_.at(x);
}

}  // namespace tuff::engine

// Lookups: what a vector computes from numbers of 4 bits has 16 values. They are computed once, as a
// register, and each lane takes its own by one instruction, which reads no more of the number than
// those bits.
#include <algorithm>

#include "ir/kernel_floor.h"
#include "render/c_kernel.h"

namespace tuff::render {

using ir::Node;
using ir::Op;

namespace {

constexpr int kTable = 16;  // values, of 32 bits: a register of 64 bytes

bool keeps_four_bits(const Node& u, const std::vector<CValue>& x) {
  return u.op == Op::And && is_int(u.dtype) && size_bytes(u.dtype) == 4 && x[0].vector &&
         x[0].table.empty() && x[1].is_number() && x[1].constant == kTable - 1;
}

}  // namespace

bool CKernel::has_lookups() const { return wide_registers_ && width_ == kTable; }

// Addresses, gates and what is stored are vectors.
bool CKernel::feeds_arithmetic_alone(size_t i) const {
  return std::ranges::all_of(users(i), [&](size_t at) {
    return ir::is_alu(k_.ops[at]->op) || k_.ops[at]->op == Op::Dot;
  });
}

// Of a number of 4 bits, or of what is looked up by one already and scalars. A number that is part
// of a longer one would be looked up at once, where masks of both parts are one instruction.
bool CKernel::looked_up(const Node& u, const std::vector<CValue>& x, CValue& out) {
  if (!has_lookups()) return false;
  const auto is_used_alone = [&](size_t at) {
    return std::ranges::all_of(k_.ops[at]->src(), [&](const ir::UOp& s) {
      const Node* n = without_after(s.get());
      return n == &u || !(lanes_of(n) & vector_mask_);
    });
  };
  if (keeps_four_bits(u, x)) {
    if (!std::ranges::all_of(users(current_), is_used_alone)) return false;
    std::string numbers;
    for (int n = 0; n < kTable; ++n) numbers += fmt::format("{}{}", n ? ", " : "", n);
    const std::string type = type_of(u.dtype, kTable);
    out = {.base = x[0].base, .vector = true,
           .table = define(type, fmt::format("({}){{{}}}", type, numbers))};
    return true;
  }
  const auto table = std::ranges::find_if(x, [](const CValue& v) { return !v.table.empty(); });
  if (table == x.end() || size_bytes(u.dtype) > 4) return false;
  for (const CValue& v : x)
    if (v.varies() && (v.table.empty() || v.base != table->base)) return false;
  std::vector<COperand> operands;
  for (size_t s = 0; s < x.size(); ++s) {
    const DType t = u.src(s)->dtype;
    const bool scalar_condition = u.op == Op::Where && s == 0 && !x[0].varies();
    if (scalar_condition)
      operands.push_back({scalar(x[s], t), 1});
    else
      operands.push_back({x[s].table.empty() ? vector(x[s], t) : x[s].table, kTable});
  }
  const DType from = u.src(u.op == Op::Where ? 1 : 0)->dtype;
  out = {.base = table->base, .vector = true,
         .table = define(type_of(u.dtype, kTable),
                         c_alu(dialect_, u.op, u.dtype, from, operands, kTable))};
  return true;
}

std::string CKernel::look_up(const CValue& v, DType t) {
  const std::string type = type_of(t, kTable);
  if (size_bytes(t) == 4 || t == DType::Bool)
    return define(type, fmt::format("({})lookup_u32x16((u32x16)({}), (u32x16)({}))", type, v.table,
                                    v.base));
  std::string text = fmt::format("({}){{", type);
  for (int l = 0; l < kTable; ++l) text += fmt::format("{}{}", l ? ", " : "", lane(v, t, l));
  return define(type, text + "}");
}

}  // namespace tuff::render

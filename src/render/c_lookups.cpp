#include "render/c_lookups.h"

#include <algorithm>

#include "ir/kernel_floor.h"
#include "ir/walk.h"
#include "render/c_ops.h"

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

bool feeds_arithmetic_alone(const CBody& b, size_t i) {
  return std::ranges::all_of(b.users(i), [&](size_t at) {
    return ir::is_alu(b.kernel.ops[at]->op) || b.kernel.ops[at]->op == Op::Dot;
  });
}

// A number that is part of a longer one would be looked up at once, where masks of both parts are
// one instruction.
std::optional<CValue> looked_up(CBody& b, const Node& u, const std::vector<CValue>& x) {
  if (!(b.has_wide_registers && b.width == kTable)) return std::nullopt;
  const auto is_used_alone = [&](size_t at) {
    return std::ranges::all_of(b.kernel.ops[at]->src(), [&](const ir::UOp& s) {
      const Node* n = without_after(s.get());
      return n == &u || !(b.lanes_of(n) & b.vector_mask);
    });
  };
  if (keeps_four_bits(u, x)) {
    if (!std::ranges::all_of(b.users(b.current), is_used_alone)) return std::nullopt;
    std::string numbers;
    for (int n = 0; n < kTable; ++n) numbers += fmt::format("{}{}", n ? ", " : "", n);
    const std::string type = b.type_of(u.dtype, kTable);
    return CValue{.base = x[0].base,
                  .vector = true,
                  .table = b.define(type, fmt::format("({}){{{}}}", type, numbers))};
  }
  const auto table = std::ranges::find_if(x, [](const CValue& v) { return !v.table.empty(); });
  if (table == x.end() || size_bytes(u.dtype) > 4) return std::nullopt;
  for (const CValue& v : x)
    if (v.varies() && (v.table.empty() || v.base != table->base)) return std::nullopt;
  std::vector<COperand> operands;
  for (size_t s = 0; s < x.size(); ++s) {
    const DType t = u.src(s)->dtype;
    const bool scalar_condition = u.op == Op::Where && s == 0 && !x[0].varies();
    if (scalar_condition)
      operands.push_back({b.scalar(x[s], t), 1});
    else
      operands.push_back({x[s].table.empty() ? b.vector(x[s], t) : x[s].table, kTable});
  }
  const DType from = u.src(u.op == Op::Where ? 1 : 0)->dtype;
  return CValue{.base = table->base,
                .vector = true,
                .table = b.define(b.type_of(u.dtype, kTable),
                                  c_alu(b.dialect, u.op, u.dtype, from, operands, kTable))};
}

std::string look_up(CBody& b, const CValue& v, DType t) {
  const std::string type = b.type_of(t, kTable);
  if (size_bytes(t) == 4 || t == DType::Bool)
    return b.define(
        type, fmt::format("({})lookup_u32x16((u32x16)({}), (u32x16)({}))", type, v.table, v.base));
  std::string text = fmt::format("({}){{", type);
  for (int l = 0; l < kTable; ++l) text += fmt::format("{}{}", l ? ", " : "", b.lane(v, t, l));
  return b.define(type, text + "}");
}

}  // namespace tuff::render

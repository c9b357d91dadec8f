// The linear list as text, for goldens and TUFF_DEBUG=6.
#include "ir/text.h"

#include "kernel/analysis/ranges.h"
#include "kernel/lowered.h"

namespace tuff::kernel {

using namespace ir;

namespace {

std::string matrix_text(const MatrixArg& m) {
  std::string out = fmt::format("{} {}x{}", ir::name(m.use), m.rows, m.columns);
  if (m.stride) out += fmt::format(" {} of {}", m.by_columns ? "columns" : "rows", m.stride);
  if (m.interleaved > 1) out += fmt::format(" interleaved by {}", m.interleaved);
  return out;
}

std::string arg_text(const Node& n) {
  switch (n.op) {
    case Op::Const: {
      const Scalar& v = n.get<Scalar>();
      return is_float(v.dtype) ? fmt::format("{}", v.as_double()) : fmt::format("{}", v.as_int());
    }
    case Op::Param: return fmt::format("{} x{}", n.get<ParamArg>().slot, n.get<ParamArg>().count);
    case Op::Variable: return n.get<VariableArg>().name;
    case Op::Range: return ir::name(n.get<RangeArg>().kind);
    case Op::Special:
      return fmt::format("{}{}", n.get<SpecialArg>().space, int(n.get<SpecialArg>().axis));
    case Op::Shared:
      return fmt::format("{} x{}", n.get<SharedArg>().number, n.get<SharedArg>().count);
    case Op::Register: {
      const auto* matrix = std::get_if<MatrixArg>(&n.arg);
      return matrix ? fmt::format("{} {}", matrix->number, matrix_text(*matrix))
                    : fmt::format("{}", n.get<int64_t>());
    }
    case Op::MatrixFill:
    case Op::MatrixLoad:
    case Op::MatrixMulAdd:
    case Op::MatrixStore: return matrix_text(n.get<MatrixArg>());
    case Op::Reduce: return ir::name(n.get<ReduceArg>().op);
    default: return {};
  }
}

}  // namespace

std::string to_text(const LinearKernel& k) {
  std::string out = fmt::format("kernel {} groups ({}, {}, {}) local ({}, {}, {}) opts [{}]\n",
                                k.name, k.groups[0].max(), k.groups[1].max(), k.groups[2].max(),
                                k.local[0], k.local[1], k.local[2], k.opts);
  std::unordered_map<const Node*, size_t> number;
  size_t depth = 0;
  for (size_t i = 0; i < k.ops.size(); i++) {
    const Node& n = *k.ops[i];
    number[&n] = i;
    if (n.op == Op::End) depth--;
    out += fmt::format("{:{}}%{} = {}", "", 2 + 2 * depth, i, ir::name(n.op));
    if (n.dtype != DType::Void) out += fmt::format(" {}", short_name(n.dtype));
    if (const std::string a = arg_text(n); !a.empty()) out += " {" + a + "}";
    for (const UOp& s : n.src()) out += fmt::format(" %{}", number.at(s.get()));
    if (k.lanes[i]) out += fmt::format(" lanes {:#x}", k.lanes[i]);
    out += '\n';
    if (n.op == Op::Range && is_loop(kind_of(&n))) depth++;
  }
  return out;
}

}  // namespace tuff::kernel

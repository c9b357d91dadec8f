// Every ALU op of the tensor floor on every dtype that it is defined on.
#include "base/check.h"
#include "check/suite.h"
#include "check/values.h"

namespace tuff::check {
namespace {

using ir::HostArray;
using ir::IntVec;
using ir::Op;
using ir::OpDTypes;
using ir::Shape;
using ir::UOp;

constexpr Domains kDomains[] = {
#define TUFF_OP(...) {},
#define TUFF_ALU(name, text, arity, rule, flags, floors, dtypes, first, second, cost, constants, \
                 ulps, error, prose)                                                             \
  {Domain::first, Domain::second},
#include "ir/ops.def"
};

bool is_defined(Op op, DType t) {
  switch (ir::row(op).dtypes) {
    case OpDTypes::All: return true;
    case OpDTypes::Numbers: return t != DType::Bool;
    case OpDTypes::Floats: return is_float(t);
    case OpDTypes::Integers: return is_int(t);
    case OpDTypes::Bits: return !is_float(t);
    case OpDTypes::Words: return t == DType::U32;
    case OpDTypes::Counters:
    case OpDTypes::None: return false;
  }
  return false;
}
// Conversions stand in cast_cases.cpp, Threefry below.
bool has_cases(Op op) {
  return ir::is_alu(op) && (ir::row(op).floors & ir::kFloorTensor) &&
         ir::row(op).rule != ir::DTypeRule::Given && op != Op::Threefry;
}

struct Operand {
  DType dtype;
  Domain domain;
};

std::vector<Operand> operands_of(Op op, DType t) {
  const Domains d = domains_of(op);
  if (op == Op::Where) return {{DType::Bool, Domain::Any}, {t, d.first}, {t, d.second}};
  if (ir::has_flag(op, ir::kUnary)) return {{t, d.first}};
  return {{t, d.first}, {t, d.second}};
}

UOp applied(Op op, const Roots& x) {
  const bool compares = ir::row(op).rule == ir::DTypeRule::Bool;
  const DType result = compares ? DType::Bool : x.back()->dtype;
  return ir::make(op, result, x);
}

using View = UOp (*)(const UOp& x, size_t which);

// A shape of the operands in memory and what the op sees of it.
struct ShapeRow {
  const char* name;
  IntVec shapes[3];  // of the first, second and third operand
  View view;
};

UOp whole(const UOp& x, size_t) { return x; }

// (4, 1, 3), (5, 1) and (1) as (4, 5, 3).
UOp broadcast(const UOp& x, size_t) {
  Shape shape = x->shape;
  while (shape.size() < 3) shape.insert(shape.begin(), 1);
  return ir::expand(ir::reshape(x, shape), {4, 5, 3});
}

// Columns 3 to 7 of every row, as rows from the last to the first: neighbours lie 1031 elements
// apart. The second operand is read the other way round.
UOp strided(const UOp& x, size_t which) {
  const UOp part = ir::shrink(x, {{0, 17}, {3, 8}});
  return ir::flip(ir::permute(part, {1, 0}), {which == 0 ? 1 : 0});
}

const std::vector<ShapeRow>& shapes() {
  static const std::vector<ShapeRow> rows = {
      {"scalar", {{}, {}, {}}, whole},
      {"odd", {{7, 15}, {7, 15}, {7, 15}}, whole},
      {"empty", {{3, 0, 2}, {3, 0, 2}, {3, 0, 2}}, whole},
      {"broadcast", {{4, 1, 3}, {5, 1}, {1}}, broadcast},
      {"strided", {{17, 1031}, {17, 1031}, {17, 1031}}, strided},
  };
  return rows;
}

Case new_case(Op op, DType t, const char* shape) {
  Case c;
  c.op = ir::name(op);
  c.dtype = t;
  for (const Operand& o : operands_of(op, t)) c.dtypes.push_back(o.dtype);
  c.name = fmt::format("{}/{}/{}", c.op, short_name(t), shape);
  c.budget = budget_of(op, t);
  return c;
}

Case shaped_case(Op op, DType t, const ShapeRow& s) {
  Case c = new_case(op, t, s.name);
  const auto operands = operands_of(op, t);
  c.inputs = [operands, &s, name = c.name](uint64_t seed) {
    Draw draw(seed, name);
    Arrays out;
    for (size_t i = 0; i < operands.size(); i++)
      out.push_back(draw_array(draw, operands[i].dtype, s.shapes[i], operands[i].domain));
    return out;
  };
  c.build = [op, view = s.view](const Roots& inputs, const std::string&) -> Roots {
    Roots x;
    for (size_t i = 0; i < inputs.size(); i++) x.push_back(view(inputs[i], i));
    return {applied(op, x)};
  };
  return c;
}

// Every combination of the operands' special values.
Arrays combinations(const std::vector<Operand>& operands) {
  std::vector<std::vector<Scalar>> values, columns(operands.size());
  size_t count = 1;
  for (const Operand& o : operands) {
    values.push_back(special_values(o.dtype, o.domain));
    count *= values.back().size();
  }
  for (size_t i = 0; i < count; i++) {
    size_t rest = i;
    for (size_t o = 0; o < operands.size(); o++) {
      columns[o].push_back(values[o][rest % values[o].size()]);
      rest /= values[o].size();
    }
  }
  Arrays out;
  for (size_t o = 0; o < operands.size(); o++)
    out.push_back(array_of(operands[o].dtype, {int64_t(count)}, columns[o]));
  return out;
}

Case special_case(Op op, DType t) {
  Case c = new_case(op, t, "special");
  c.inputs = [operands = operands_of(op, t)](uint64_t) { return combinations(operands); };
  c.build = [op](const Roots& inputs, const std::string&) -> Roots {
    return {applied(op, inputs)};
  };
  return c;
}

// Counter-based random words: all four operands u32, both words.
Case threefry_case(const char* shape, IntVec extents) {
  Case c = new_case(Op::Threefry, DType::U32, shape);
  c.inputs = [extents, name = c.name](uint64_t seed) {
    Draw draw(seed, name);
    Arrays out;
    for (int i = 0; i < 4; i++) out.push_back(draw_array(draw, DType::U32, extents, Domain::Any));
    return out;
  };
  c.build = [](const Roots& x, const std::string&) -> Roots {
    return {ir::make(Op::Threefry, DType::U32, x, int64_t{0}),
            ir::make(Op::Threefry, DType::U32, x, int64_t{1})};
  };
  return c;
}

}  // namespace

Domains domains_of(Op op) { return kDomains[size_t(op)]; }

void append_elementwise_cases(std::vector<Case>& out) {
  for (size_t i = 0; i < ir::op_rows().size(); i++) {
    const Op op = Op(i);
    for (const DType t : memory_dtypes()) {
      if (!has_cases(op) || !is_defined(op, t)) continue;
      for (const ShapeRow& s : shapes()) out.push_back(shaped_case(op, t, s));
      out.push_back(special_case(op, t));
    }
  }
  for (const DType t : float8_dtypes()) {
    for (const Op op : {Op::Add, Op::Mul, Op::Max, Op::CmpLt, Op::Where, Op::Sqrt, Op::Exp2})
      out.push_back(special_case(op, t));
    for (const ShapeRow& s : shapes())
      if (s.name == std::string_view("strided")) out.push_back(shaped_case(Op::Add, t, s));
  }
  out.push_back(threefry_case("scalar", {}));
  out.push_back(threefry_case("odd", {7, 15}));
  out.push_back(threefry_case("empty", {0}));
}

}  // namespace tuff::check

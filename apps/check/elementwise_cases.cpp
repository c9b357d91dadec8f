// Every ALU op of the tensor floor on every dtype that it is defined on.
#include "base/check.h"
#include "check/suite.h"
#include "check/values.h"

namespace tuff::check {
namespace {

using ir::HostArray;
using ir::IntVec;
using ir::Op;
using ir::Shape;
using ir::UOp;

enum class Defined : uint8_t { All, Numbers, Floats, Integers, Bits };

// Which dtypes an op takes, and which operands it gets.
struct OpRow {
  Op op;
  Defined defined;
  Domain first = Domain::Any, second = Domain::Any;
};
constexpr OpRow kOps[] = {
    {Op::Neg, Defined::Numbers},
    {Op::Recip, Defined::Floats, Domain::Divisor},
    {Op::Sqrt, Defined::Floats, Domain::Positive},
    {Op::Exp2, Defined::Floats, Domain::Exponent},
    {Op::Log2, Defined::Floats, Domain::Positive},
    {Op::Sin, Defined::Floats, Domain::Angle},
    {Op::Trunc, Defined::Floats},
    {Op::Add, Defined::All},
    {Op::Sub, Defined::All},
    {Op::Mul, Defined::All},
    {Op::Div, Defined::Floats, Domain::Any, Domain::Divisor},
    {Op::IDiv, Defined::Integers, Domain::Any, Domain::Divisor},
    {Op::IMod, Defined::Integers, Domain::Any, Domain::Divisor},
    {Op::Max, Defined::All},
    {Op::CmpLt, Defined::All},
    {Op::CmpNe, Defined::All},
    {Op::CmpEq, Defined::All},
    {Op::And, Defined::Bits},
    {Op::Or, Defined::Bits},
    {Op::Xor, Defined::Bits},
    {Op::Shl, Defined::Integers, Domain::Any, Domain::Shift},
    {Op::Shr, Defined::Integers, Domain::Any, Domain::Shift},
    {Op::Where, Defined::All},
};

bool is_defined(Defined d, DType t) {
  switch (d) {
    case Defined::All: return true;
    case Defined::Numbers: return t != DType::Bool;
    case Defined::Floats: return is_float(t);
    case Defined::Integers: return is_int(t);
    case Defined::Bits: return !is_float(t);
  }
  return false;
}

struct Operand {
  DType dtype;
  Domain domain;
};

std::vector<Operand> operands_of(const OpRow& r, DType t) {
  if (r.op == Op::Where) return {{DType::Bool, Domain::Any}, {t, r.first}, {t, r.second}};
  if (ir::has_flag(r.op, ir::kUnary)) return {{t, r.first}};
  return {{t, r.first}, {t, r.second}};
}

UOp applied(Op op, const Roots& x) {
  const DType result =
      op == Op::CmpLt || op == Op::CmpNe || op == Op::CmpEq ? DType::Bool : x.back()->dtype;
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

Case new_case(const OpRow& r, DType t, const char* shape) {
  Case c;
  c.op = ir::name(r.op);
  c.dtype = t;
  for (const Operand& o : operands_of(r, t)) c.dtypes.push_back(o.dtype);
  c.name = fmt::format("{}/{}/{}", c.op, short_name(t), shape);
  c.budget = budget_of(r.op, t);
  return c;
}

Case shaped_case(const OpRow& r, DType t, const ShapeRow& s) {
  Case c = new_case(r, t, s.name);
  const auto operands = operands_of(r, t);
  c.inputs = [operands, &s, name = c.name](uint64_t seed) {
    Draw draw(seed, name);
    Arrays out;
    for (size_t i = 0; i < operands.size(); i++)
      out.push_back(draw_array(draw, operands[i].dtype, s.shapes[i], operands[i].domain));
    return out;
  };
  c.build = [op = r.op, view = s.view](const Roots& inputs, const std::string&) -> Roots {
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

Case special_case(const OpRow& r, DType t) {
  Case c = new_case(r, t, "special");
  c.inputs = [operands = operands_of(r, t)](uint64_t) { return combinations(operands); };
  c.build = [op = r.op](const Roots& inputs, const std::string&) -> Roots {
    return {applied(op, inputs)};
  };
  return c;
}

// Counter-based random words: all four operands u32, both words.
Case threefry_case(const char* shape, IntVec extents) {
  Case c = new_case({Op::Threefry, Defined::Integers}, DType::U32, shape);
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

void append_elementwise_cases(std::vector<Case>& out) {
  for (const OpRow& r : kOps) {
    for (const DType t : memory_dtypes()) {
      if (!is_defined(r.defined, t)) continue;
      for (const ShapeRow& s : shapes()) out.push_back(shaped_case(r, t, s));
      out.push_back(special_case(r, t));
    }
  }
  out.push_back(threefry_case("scalar", {}));
  out.push_back(threefry_case("odd", {7, 15}));
  out.push_back(threefry_case("empty", {0}));
}

}  // namespace tuff::check

// The table of the exporter: a row per op of the tensor floor, what it becomes or why it cannot be
// exported and what to do.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "ir/op_table.h"
#include "ir/scalar_eval.h"
#include "ir/variants.h"
#include "onnx/exporter.h"
#include "tensor/impl.h"

namespace tuff::onnx {
namespace {

using ir::Dim;
using ir::IntVec;
using ir::Op;
using ir::OpTable;
using ir::Shape;
using ir::UOp;
using Given = std::span<const Exported>;
using RowFunction = Exported(Exporter& e, const UOp& u, Given from);

// ---- numbers of other widths: runtimes add, multiply and compare integers of 32 and 64 bits

// Of 64 bits without sign sums and choices are those of numbers with one.
bool has_same_bits(Op op) {
  return op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::Neg || op == Op::CmpEq ||
         op == Op::CmpNe || op == Op::Where;
}

DType computed_in(DType t, Op op) {
  switch (t) {
    case DType::I8:
    case DType::U8:
    case DType::I16:
    case DType::U16: return DType::I32;
    case DType::U32:
    case DType::Index: return DType::I64;
    case DType::U64: return has_same_bits(op) ? DType::I64 : t;
    default: return t;
  }
}

DType stored_in(DType t) { return t == DType::Index ? DType::I64 : t; }

std::vector<Exported> widened(Exporter& e, const UOp& u, Given from) {
  std::vector<Exported> out;
  for (size_t i = 0; i < from.size(); i++) {
    const DType own = stored_in(u->src(i)->dtype), wide = computed_in(own, u->op);
    out.push_back(own == wide ? from[i] : e.cast(from[i], wide));
  }
  return out;
}

Exported narrowed(Exporter& e, const UOp& u, const Exported& made) {
  const DType own = stored_in(u->dtype);
  return computed_in(own, u->op) == own ? made : e.cast(made, own);
}

template <size_t N>
struct Word {
  constexpr Word(const char (&text)[N]) { std::copy_n(text, N, this->text); }
  char text[N];
};

// An operator of numbers, and one of bools.
template <Word numbers>
Exported arithmetic(Exporter& e, const UOp& u, Given from) {
  return narrowed(e, u, e.elementwise(numbers.text, widened(e, u, from)));
}
template <Word numbers, Word bools>
Exported of_bools_too(Exporter& e, const UOp& u, Given from) {
  if (u->dtype == DType::Bool) return e.elementwise(bools.text, from);
  return arithmetic<numbers>(e, u, from);
}
template <Word name>
Exported plain(Exporter& e, const UOp&, Given from) {
  return e.elementwise(name.text, from);
}

Exported like(Exporter& e, DType t, double v) { return e.number(Scalar::of_double(t, v)); }
Exported whole(Exporter& e, DType t, int64_t v) { return e.number(Scalar::of_int(t, v)); }

Exported negated(Exporter& e, const UOp& u, Given from) {
  if (is_unsigned(u->dtype)) {
    const std::vector<Exported> x = widened(e, u, from);
    return narrowed(e, u, e.elementwise("Sub", {whole(e, computed_in(u->dtype, u->op), 0), x[0]}));
  }
  return u->dtype == DType::Bool ? from[0] : arithmetic<"Neg">(e, u, from);
}

// There is no power of two and no logarithm to that base.
Exported power_of_two(Exporter& e, const UOp& u, Given from) {
  if (ir::word_of(u->arg) == ir::kNaturalBase) return e.elementwise("Exp", from);
  return e.elementwise("Pow", {like(e, u->dtype, 2), from[0]});
}
Exported logarithm(Exporter& e, const UOp& u, Given from) {
  const Exported natural = e.elementwise("Log", from);
  return e.elementwise("Mul", {natural, like(e, u->dtype, 1.4426950408889634074)});
}
Exported sine(Exporter& e, const UOp& u, Given from) {
  const int64_t quarters = ir::word_of(u->arg);
  const Exported y = e.elementwise(quarters % 2 ? "Cos" : "Sin", from);
  return quarters >= 2 ? e.elementwise("Neg", {y}) : y;
}
Exported truncated(Exporter& e, const UOp& u, Given from) {
  const Exported below = e.elementwise("Less", {from[0], like(e, u->dtype, 0)});
  return e.elementwise("Where",
                       {below, e.elementwise("Ceil", from), e.elementwise("Floor", from)});
}

// By zero it is 0 here, and anything elsewhere.
template <bool remainder>
Exported whole_quotient(Exporter& e, const UOp& u, Given from) {
  const DType wide = computed_in(u->dtype, u->op);
  const std::vector<Exported> x = widened(e, u, from);
  const auto quotient = [&](const Exported& divisor) {
    const Exported pair[2] = {x[0], divisor};
    AttributeList attributes;
    if (remainder) attributes.push_back(attribute("fmod", int64_t{1}));
    return e.elementwise(remainder ? "Mod" : "Div", pair, std::move(attributes));
  };
  const Scalar* known = constant_of(u->src(1).get());
  if (known && known->as_int() != 0) return narrowed(e, u, quotient(x[1]));
  const Exported zero = whole(e, wide, 0), by_zero = e.elementwise("Equal", {x[1], zero});
  const Exported safe = e.elementwise("Where", {by_zero, whole(e, wide, 1), x[1]});
  return narrowed(e, u, e.elementwise("Where", {by_zero, zero, quotient(safe)}));
}

Exported less(Exporter& e, const UOp& u, Given from) {
  if (u->src(0)->dtype == DType::Bool)
    return e.elementwise("And", {e.elementwise("Not", {from[0]}), from[1]});
  return e.elementwise("Less", widened(e, u, from));
}
Exported equal(Exporter& e, const UOp& u, Given from) {
  return e.elementwise("Equal", widened(e, u, from));
}
Exported different(Exporter& e, const UOp& u, Given from) {
  if (u->src(0)->dtype == DType::Bool) {
    const Scalar* known = constant_of(u->src(1).get());
    if (known && known->as_bool()) return e.elementwise("Not", {from[0]});
    return e.elementwise("Xor", from);
  }
  return e.elementwise("Not", {equal(e, u, from)});
}

// Shifts are of unsigned numbers: of a negative one its complement's bits go right.
template <bool left>
Exported shifted(Exporter& e, const UOp& u, Given from) {
  const DType wide = computed_in(u->dtype, u->op);
  const DType bits = size_bytes(wide) == 4 ? DType::U32 : DType::U64;
  const std::vector<Exported> x = widened(e, u, from);
  const auto shift = [&](const Exported& v) {
    const Exported pair[2] = {e.cast(v, bits), e.cast(x[1], bits)};
    return e.cast(e.elementwise("BitShift", pair,
                                {attribute("direction", std::string(left ? "LEFT" : "RIGHT"))}),
                  wide);
  };
  if (left) return narrowed(e, u, shift(x[0]));
  const Exported below = e.elementwise("Less", {x[0], whole(e, wide, 0)});
  const Exported turned =
      e.elementwise("Where", {below, e.elementwise("BitwiseNot", {x[0]}), x[0]});
  const Exported y = shift(turned);
  return narrowed(e, u, e.elementwise("Where", {below, e.elementwise("BitwiseNot", {y}), y}));
}

// A choice between bools is made of them.
Exported choice(Exporter& e, const UOp& u, Given from) {
  if (u->dtype == DType::Bool) {
    const Exported yes = e.elementwise("And", {from[0], from[1]});
    const Exported no = e.elementwise("And", {e.elementwise("Not", {from[0]}), from[2]});
    return e.elementwise("Or", {yes, no});
  }
  return narrowed(e, u, e.elementwise("Where", widened(e, u, from)));
}

Exported converted(Exporter& e, const UOp& u, Given from) {
  return stored_in(u->dtype) == stored_in(u->src(0)->dtype) ? from[0]
                                                            : e.cast(from[0], stored_in(u->dtype));
}

// ---- leaves

Exported constant(Exporter& e, const UOp& u, Given) { return e.number(u->get<Scalar>()); }

Exported buffer(Exporter& e, const UOp& u, Given) { return e.memory(*u, u->shape); }

Exported counter(Exporter& e, const UOp& u, Given) {
  const DType t = stored_in(u->dtype);
  const bool known = t == DType::F32 || t == DType::F64 || t == DType::I32 || t == DType::I64;
  const DType counted = known ? t : DType::I64;
  const Dim& n = u->shape[0];
  Exported end;
  if (n.is_const()) {
    end = whole(e, counted, n.value());
  } else {
    end = {e.node("Squeeze", {e.extent(n), e.integers({0})}), {}, {}};
    if (counted != DType::I64) end = e.cast(end, counted);
  }
  const Exported out{e.node("Range", {whole(e, counted, 0).name, end.name,
                                      whole(e, counted, 1).name}),
                     u->shape, u->shape};
  return known ? out : e.cast(out, t);
}

// A runtime's own, instead of the generator's: F64 holds all numbers of 32 bits.
Exported random_word(Exporter& e, const UOp& u, Given) {
  return e.cast(random_uniform(e, u, DType::F64, 0x1p32), DType::U32);
}

// ---- movement

Exported reshape(Exporter& e, const UOp& u, Given from) {
  if (from[0].shape.empty()) {
    const bool scalar = u->src(0)->shape.empty() ||
                        std::ranges::all_of(u->shape, [](const Dim& d) { return d == 1; });
    if (scalar && !u->shape.empty()) return {from[0].name, {}, Shape(u->shape.size(), Dim(1))};
    return from[0];
  }
  if (const auto map = unit_map(u->src(0)->shape, u->shape)) {
    Exported out = from[0];
    out.shape.clear();
    for (const int axis : *map)
      out.shape.push_back(axis < 0 ? Dim(1) : from[0].shape[size_t(axis)]);
    return out;
  }
  const std::string whole_one = e.exact(from[0], u->src(0)->shape);
  const Shape& stored = from[0].shape == u->src(0)->shape ? from[0].stored : u->src(0)->shape;
  const std::string& name = from[0].shape == u->src(0)->shape ? from[0].name : whole_one;
  return {e.reshaped(name, stored, u->shape), u->shape, u->shape};
}

Exported permute(Exporter& e, const UOp& u, Given from) {
  return permuted(e, from[0], u->get<IntVec>());
}

Exported same(Exporter&, const UOp&, Given from) { return from[0]; }

Exported pad(Exporter& e, const UOp& u, Given from) {
  const auto& pairs = u->get<ir::Pairs>();
  Shape both;
  for (const ir::DimPair& p : pairs) both.push_back(p.a);
  for (const ir::DimPair& p : pairs) both.push_back(p.b);
  const std::string x = e.exact(from[0], u->src(0)->shape);
  return {e.node("Pad", {x, e.extents(both)}), u->shape, u->shape};
}

// Axes that are repeated stay as they are.
Exported shrink(Exporter& e, const UOp& u, Given from) {
  if (from[0].shape.empty()) return from[0];
  const auto& pairs = u->get<ir::Pairs>();
  const Shape& own = u->src(0)->shape;
  Shape begin, end, shape = from[0].shape;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < pairs.size(); i++) {
    if (pairs[i].a == 0 && pairs[i].b == own[i]) continue;
    if (shape[i] == 1 && !(own[i] == 1)) continue;
    axes.push_back(int64_t(i));
    begin.push_back(pairs[i].a), end.push_back(pairs[i].b);
    shape[i] = u->shape[i];
  }
  if (axes.empty()) return from[0];
  return {e.node("Slice", {viewed(e, from[0]), e.extents(begin), e.extents(end), e.integers(axes)}),
          shape, shape};
}

Exported flip(Exporter& e, const UOp& u, Given from) {
  std::vector<int64_t> axes;
  for (const int64_t a : u->get<IntVec>())
    if (!from[0].shape.empty() && !(from[0].shape[size_t(a)] == 1)) axes.push_back(a);
  if (axes.empty()) return from[0];
  const std::vector<int64_t> back(axes.size(), -1),
      first(axes.size(), std::numeric_limits<int64_t>::min());
  return {e.node("Slice", {viewed(e, from[0]), e.integers(back), e.integers(first),
                           e.integers(axes), e.integers(back)}),
          from[0].shape, from[0].shape};
}

// ---- reductions and stores

Exported reduce(Exporter& e, const UOp& u, Given from) {
  const auto& arg = u->get<ir::ReduceArg>();
  const DType own = u->dtype;
  const bool is_bool = own == DType::Bool;
  const DType wide = is_bool ? DType::I32 : computed_in(own, arg.op);
  Exported x = from[0];
  if (stored_in(own) != wide) x = e.cast(x, wide);
  const char* op = arg.op == Op::Max ? "ReduceMax" : arg.op == Op::Add ? "ReduceSum" : "ReduceProd";
  if (is_bool) op = arg.op == Op::Mul ? "ReduceMin" : "ReduceMax";
  const Exported y{e.node(op, {e.exact(x, u->src(0)->shape), e.integers(arg.axes)}), u->shape,
                   u->shape};
  return stored_in(own) == wide ? y : e.cast(y, own);
}

// An index outside of the target goes to one more place along the axis, which is cut off again.
Exported scatter(Exporter& e, const UOp& u, Given from) {
  const auto& arg = u->get<ir::ScatterArg>();
  const auto axis = size_t(arg.axis);
  const UOp& target = u->src(0);
  const UOp& index = u->src(2);
  const DType counted = computed_in(index->dtype, Op::CmpLt);
  Exported at = stored_in(index->dtype) == counted ? from[2] : e.cast(from[2], counted);
  const std::string length = e.node("Squeeze", {e.extent(target->shape[axis]), e.integers({0})});
  const Exported n = e.cast({length, {}, {}}, counted);
  const Exported below = e.elementwise("Less", {at, whole(e, counted, 0)});
  const Exported beyond = e.elementwise("Not", {e.elementwise("Less", {at, n})});
  at = e.elementwise("Where", {e.elementwise("Or", {below, beyond}), n, at});
  std::vector<int64_t> pads(2 * target->shape.size(), 0);
  pads[target->shape.size() + axis] = 1;
  const std::string longer = e.node("Pad", {e.exact(from[0], target->shape), e.integers(pads)});
  const char* how = arg.op == Op::Add ? "add" : arg.op == Op::Mul ? "mul" : "max";
  AttributeList attributes{attribute("axis", arg.axis)};
  if (arg.op != Op::Assign) attributes.push_back(attribute("reduction", std::string(how)));
  const std::string stored =
      e.node("ScatterElements", {longer, e.exact(at, index->shape), e.exact(from[1], index->shape)},
             std::move(attributes));
  return {e.node("Slice", {stored, e.integers({0}), e.extent(target->shape[axis]),
                           e.integers({arg.axis})}),
          u->shape, u->shape};
}

enum class Sources { All, First, None };  // that are needed

struct Row {
  ir::OptionalFunction<RowFunction> make;
  const char* why = nullptr;  // none can be made, and what to do
  Sources sources = Sources::All;
};

constexpr const char* kOfGradients = "it is a part of gradients, which are no values";

constexpr OpTable<Row> kRows{{
    {Op::Const, {constant}},
    {Op::Buffer, {buffer}},
    {Op::Param, {nullptr, "it stands for a value of another function: call vmap(), scan() and "
                          "gradients inside of the function that is exported"}},
    {Op::Variable, {nullptr, "it is a number that varies, and no extent of an input"}},
    {Op::Iota, {counter}},
    {Op::Reshape, {reshape}},
    {Op::Permute, {permute}},
    {Op::Expand, {same}},
    {Op::Pad, {pad}},
    {Op::Shrink, {shrink}},
    {Op::Flip, {flip}},
    {Op::Reduce, {reduce}},
    {Op::Contiguous, {same}},
    {Op::Detach, {same, nullptr, Sources::First}},
    {Op::Copy, {same}},
    {Op::Assign, {nullptr, "the function changes a tensor, which an ONNX model cannot: use "
                           "evaluation mode, or return the new value"}},
    {Op::Mark, {same}},
    {Op::Checkpoint, {same, nullptr, Sources::First}},
    {Op::Again, {same, nullptr, Sources::First}},
    {Op::Ruled, {same, nullptr, Sources::First}},
    {Op::Rule, {nullptr, kOfGradients}},
    {Op::Sink, {nullptr, kOfGradients}},
    {Op::Cast, {converted}},
    {Op::Bitcast, {nullptr, "ONNX has no operator that takes a number's bits for another type's: "
                            "compute with values"}},
    {Op::Neg, {negated}},
    {Op::Recip, {plain<"Reciprocal">}},
    {Op::Sqrt, {plain<"Sqrt">}},
    {Op::Exp2, {power_of_two}},
    {Op::Log2, {logarithm}},
    {Op::Sin, {sine}},
    {Op::Trunc, {truncated}},
    {Op::Add, {of_bools_too<"Add", "Or">}},
    {Op::Sub, {of_bools_too<"Sub", "Xor">}},
    {Op::Mul, {of_bools_too<"Mul", "And">}},
    {Op::Div, {plain<"Div">}},
    {Op::IDiv, {whole_quotient<false>}},
    {Op::IMod, {whole_quotient<true>}},
    {Op::Max, {of_bools_too<"Max", "Or">}},
    {Op::CmpLt, {less}},
    {Op::CmpNe, {different}},
    {Op::CmpEq, {equal}},
    {Op::And, {of_bools_too<"BitwiseAnd", "And">}},
    {Op::Or, {of_bools_too<"BitwiseOr", "Or">}},
    {Op::Xor, {of_bools_too<"BitwiseXor", "Xor">}},
    {Op::Shl, {shifted<true>}},
    {Op::Shr, {shifted<false>}},
    {Op::Where, {choice}},
    {Op::Threefry, {random_word, nullptr, Sources::None}},
    {Op::Scatter, {scatter}},
    {Op::Loop, {nullptr, "of a loop more is read than its states after steps and the first ones: "
                         "export the function of one step"}},
    {Op::CustomKernel, {nullptr, "it is a kernel that a user wrote, which an ONNX model cannot "
                                 "hold: export the same of functions of tensors"}},
    {Op::Shards, {nullptr, "it lies on several devices: move the parameters to one by to()"}},
}};
static_assert(kRows.covers([](Op op) {
  return (ir::row(op).floors & ir::kFloorTensor) != 0;
}), "onnx/export_ops.cpp: kRows lacks an op of the tensor floor");

}  // namespace

Exporter::Plan row_plan(Exporter& e, const UOp& u) {
  const Row* row = kRows.find(u->op);
  TUFF_CHECK(row, "{} is not of the tensor floor", ir::name(u->op));
  if (!row->make) refuse(*u, row->why);
  Exporter::Plan plan;
  const auto src = row->sources == Sources::All ? u->src()
                                                : u->src().first(row->sources == Sources::First);
  plan.from.assign(src.begin(), src.end());
  plan.make = [&e, u, make = row->make](Given from) { return make(e, u, from); };
  return plan;
}

}  // namespace tuff::onnx

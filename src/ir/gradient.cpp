// The row of each op.
#include <cmath>

#include "ir/custom_kernel.h"
#include "ir/gradient.h"
#include "ir/gradient_rows.h"
#include "ir/loop.h"
#include "ir/op_table.h"
#include "ir/scalar_eval.h"
#include "ir/variants.h"

namespace tuff::ir {
namespace {

constexpr double kLn2 = 0.693147180559945309417232121458;

UOp like(const UOp& x, double v) { return constant(x->dtype, v); }
UOp mul(const UOp& a, const UOp& b) { return alu(Op::Mul, {a, b}); }
UOp neg(const UOp& a) { return alu(Op::Neg, {a}); }
UOp zero(const UOp& x) { return like(x, 0); }

// Brings a gradient to the shape of a source: elementwise ops broadcast sources of shape ().
UOp unbroadcast(const UOp& g, const UOp& src) {
  if (g->shape == src->shape) return g;
  if (g->shape.empty()) return expand(reshape(g, Shape(src->shape.size(), Dim(1))), src->shape);
  TUFF_CHECK(src->shape.empty(), "gradient of shape {} for a source of {}", to_string(g->shape),
             to_string(src->shape));
  IntVec axes;
  for (size_t i = 0; i < g->shape.size(); i++) axes.push_back(int64_t(i));
  return reshape(reduce(Op::Add, g, axes), {});
}

using Grads = std::vector<UOp>;  // per source; empty: none
using Row = Grads (*)(const UOp& u, const UOp& g);

Grads none(const UOp& u, const UOp&) { return Grads(u->src_count); }
Grads same(const UOp&, const UOp& g) { return {g}; }
Grads to_value(const UOp&, const UOp& g) { return {g, UOp()}; }
Grads neg_row(const UOp&, const UOp& g) { return {neg(g)}; }

Grads cast_row(const UOp& u, const UOp& g) {
  return {is_float(u->dtype) && is_float(u->src(0)->dtype) ? cast(g, u->src(0)->dtype) : UOp()};
}
Grads recip_row(const UOp& u, const UOp& g) { return {neg(mul(g, mul(u, u)))}; }
Grads sqrt_row(const UOp& u, const UOp& g) {
  return {mul(g, mul(like(u, 0.5), alu(Op::Recip, {u})))};
}
Grads exp2_row(const UOp& u, const UOp& g) {
  return {mul(g, std::holds_alternative<int64_t>(u->arg) ? u : mul(u, like(u, kLn2)))};
}
Grads log2_row(const UOp& u, const UOp& g) {
  return {mul(g, alu(Op::Recip, {mul(u->src(0), like(u, kLn2))}))};
}
Grads sin_row(const UOp& u, const UOp& g) {
  return {mul(g, sine(u->src(0), word_of(u->arg) + 1))};
}
Grads add_row(const UOp&, const UOp& g) { return {g, g}; }
Grads sub_row(const UOp&, const UOp& g) { return {g, neg(g)}; }
Grads mul_row(const UOp& u, const UOp& g) {
  if (is_finite_product(*u) && g->shape == u->shape)
    return {finite_product(g, u->src(1)), finite_product(g, u->src(0))};
  return {mul(g, u->src(1)), mul(g, u->src(0))};
}
Grads div_row(const UOp& u, const UOp& g) {
  const UOp over = alu(Op::Div, {g, u->src(1)});
  return {over, neg(mul(over, u))};
}
// Equal sources share the gradient, so that max over ties is symmetric.
Grads max_row(const UOp& u, const UOp& g) {
  const UOp &x = u->src(0), &y = u->src(1);
  const UOp tie = where(alu(Op::CmpEq, {x, y}), mul(g, like(u, 0.5)), zero(u));
  const UOp to_x = where(alu(Op::CmpLt, {y, x}), g, tie),
            to_y = where(alu(Op::CmpLt, {x, y}), g, tie);
  return {to_x, to_y};
}
Grads where_row(const UOp& u, const UOp& g) {
  return {UOp(), where(u->src(0), g, zero(u)), where(u->src(0), zero(u), g)};
}

Grads reshape_row(const UOp& u, const UOp& g) { return {reshape(g, u->src(0)->shape)}; }
Grads permute_row(const UOp& u, const UOp& g) {
  const IntVec& axes = u->get<IntVec>();
  IntVec inverse(axes.size());
  for (size_t i = 0; i < axes.size(); i++) inverse[size_t(axes[i])] = int64_t(i);
  return {permute(g, inverse)};
}
Grads expand_row(const UOp& u, const UOp& g) {
  IntVec axes;
  for (size_t i = 0; i < u->shape.size(); i++) {
    if (!(u->shape[i] == u->src(0)->shape[i])) axes.push_back(int64_t(i));
  }
  return {reduce(Op::Add, g, axes)};
}
Grads pad_row(const UOp& u, const UOp& g) {
  Pairs parts;
  const Pairs& p = u->get<Pairs>();
  for (size_t i = 0; i < p.size(); i++) parts.push_back({p[i].a, p[i].a + u->src(0)->shape[i]});
  return {shrink(g, parts)};
}
Grads shrink_row(const UOp& u, const UOp& g) {
  Pairs pads;
  const Pairs& p = u->get<Pairs>();
  for (size_t i = 0; i < p.size(); i++) pads.push_back({p[i].a, u->src(0)->shape[i] - p[i].b});
  return {pad(g, pads)};
}
Grads flip_row(const UOp& u, const UOp& g) { return {flip(g, u->get<IntVec>())}; }
// Where several devices hold what parts of does not matter to a gradient.
Grads copy_row(const UOp& u, const UOp& g) {
  if (u->src(0)->device == u->device) return {g};
  return {make(Op::Copy, g->dtype, {g}, Placement{{device_of(u->src(0))}})};
}
// Copies are the first one's.
Grads shards_row(const UOp& u, const UOp& g) {
  const auto* axis = std::get_if<int64_t>(&u->arg);
  const auto on = [](const UOp& x, const UOp& part) {
    return make(Op::Copy, x->dtype, {x}, Placement{{device_of(part)}});
  };
  if (!axis) return {on(g, u->src(0))};
  Grads out;
  Dim begin = 0;
  for (const UOp& part : u->src()) {
    Pairs of;
    for (const Dim& d : u->shape) of.push_back({Dim(0), d});
    const Dim end = begin + part->shape[size_t(*axis)];
    of[size_t(*axis)] = {begin, end};
    out.push_back(on(shrink(g, of), part));
    begin = end;
  }
  return out;
}
// Assign passes its value through; what the buffer held before matters only around a part.
Grads assign_row(const UOp& u, const UOp& g) {
  const Pairs* part = assigned_part(*u);
  if (!part) return {UOp(), g};
  const UOp& value = u->src(1);
  const UOp nothing = expand(reshape(zero(u), Shape(part->size(), Dim(1))), value->shape);
  return {put(g, *part, nothing), shrink(g, *part)};
}

// For each factor of a product over axes the product of the others. Division by the factor gives it
// unless there are zeros: with one, only the zero itself gets the product of the rest; with more,
// none does.
UOp product_of_others(const UOp& u) {
  const UOp& x = u->src(0);
  const IntVec& axes = u->get<ReduceArg>().axes;
  auto over_axes = [&](Op op, const UOp& v) { return expand(reduce(op, v, axes), x->shape); };
  const UOp is_zero = alu(Op::CmpEq, {x, zero(x)});
  const UOp safe = where(is_zero, like(x, 1), x);
  const UOp rest = over_axes(Op::Mul, safe), zeros = over_axes(Op::Add, cast(is_zero, x->dtype));
  const UOp of_zero = where(alu(Op::CmpEq, {zeros, like(x, 1)}), rest, zero(x));
  const UOp of_other = where(alu(Op::CmpEq, {zeros, zero(x)}), alu(Op::Div, {rest, safe}), zero(x));
  return where(is_zero, of_zero, of_other);
}

Grads reduce_row(const UOp& u, const UOp& g) {
  const UOp& x = u->src(0);
  const Op op = u->get<ReduceArg>().op;
  const UOp wide = expand(g, x->shape);
  if (op == Op::Add) return {wide};
  if (op == Op::Mul) return {mul(wide, product_of_others(u))};
  const UOp is_max = cast(alu(Op::CmpEq, {x, expand(u, x->shape)}), x->dtype);
  const UOp ties = expand(reduce(Op::Add, is_max, u->get<ReduceArg>().axes), x->shape);
  return {mul(wide, alu(Op::Div, {is_max, ties}))};
}

// The elements of x that index names along an axis; 0 where that is outside. As gather spells it,
// so that it is one load.
UOp gathered(const UOp& x, const UOp& index, int64_t axis) {
  const auto a = size_t(axis);
  const Dim n = x->shape[a];
  const DType t = size_bytes(index->dtype) > 4 || n.max() > INT32_MAX ? DType::I64 : DType::I32;
  Shape all = index->shape, own = index->shape, counter(all.size() + 1, Dim(1));
  IntVec last;
  for (size_t d = 0; d < own.size(); d++) {
    if (d != a) last.push_back(int64_t(d));
  }
  last.push_back(axis);
  all.push_back(n);
  counter.back() = n;
  own.push_back(Dim(1));
  const UOp at = expand(reshape(cast(index, t), own), all);
  const UOp hit = alu(Op::CmpEq, {at, expand(reshape(iota(n, t), counter), all)});
  own[a] = Dim(1);
  own.back() = n;
  const UOp elements = expand(reshape(permute(x, last), own), all);
  return reshape(reduce(Op::Add, where(hit, elements, zero(x)), {int64_t(all.size()) - 1}),
                 index->shape);
}

UOp filled(const UOp& v, const Shape& shape) {
  return expand(reshape(v, Shape(shape.size(), Dim(1))), shape);
}

// Which elements of a Scatter's value are left in its result: of those to one place the last.
UOp is_left(const UOp& u) {
  const UOp& index = u->src(2);
  const auto& arg = u->get<ScatterArg>();
  const Dim& n = index->shape[size_t(arg.axis)];
  Shape along(index->shape.size(), Dim(1));
  along[size_t(arg.axis)] = n;
  const UOp number = expand(reshape(iota(n, DType::I32), along), index->shape);
  const UOp none = filled(constant(DType::I32, -1), u->shape);
  return alu(Op::CmpEq, {gathered(scatter(none, number, index, arg), index, arg.axis), number});
}

// Elements that are replaced have no gradient.
Grads replaced(const UOp& u, const UOp& g) {
  const UOp& index = u->src(2);
  const auto& arg = u->get<ScatterArg>();
  const UOp of_value = gathered(g, index, arg.axis);
  if (arg.named == Named::All) return {UOp(), of_value};
  const UOp of_target = scatter(g, filled(zero(u), index->shape), index, arg);
  if (arg.named == Named::Once) return {of_target, of_value};
  return {of_target, where(is_left(u), of_value, zero(u))};
}

// The largest of what comes together; equal ones share the gradient.
Grads of_largest(const UOp& u, const UOp& g) {
  const UOp &target = u->src(0), &value = u->src(1), &index = u->src(2);
  const auto& arg = u->get<ScatterArg>();
  const auto at = [&](const UOp& x) { return gathered(x, index, arg.axis); };
  const UOp from_target = alu(Op::CmpEq, {target, u}), from_value = alu(Op::CmpEq, {value, at(u)});
  const UOp ties = scatter(cast(from_target, u->dtype), cast(from_value, u->dtype), index,
                           {Op::Add, arg.axis, arg.named});
  const UOp share = alu(Op::Div, {g, ties});
  return {where(from_target, share, zero(u)), where(from_value, at(share), zero(u))};
}

// As product_of_others(), of what comes together.
Grads of_products(const UOp& u, const UOp& g) {
  const UOp &target = u->src(0), &value = u->src(1), &index = u->src(2);
  const auto& arg = u->get<ScatterArg>();
  const auto at = [&](const UOp& x) { return gathered(x, index, arg.axis); };
  const auto is_zero = [&](const UOp& x) { return alu(Op::CmpEq, {x, zero(x)}); };
  const auto safe = [&](const UOp& x) { return where(is_zero(x), like(x, 1), x); };
  const UOp rest = scatter(safe(target), safe(value), index, arg);
  const UOp zeros = scatter(cast(is_zero(target), u->dtype), cast(is_zero(value), u->dtype), index,
                            {Op::Add, arg.axis, arg.named});
  const auto others = [&](const UOp& x, const UOp& all, const UOp& count) {
    const UOp of_zero = where(alu(Op::CmpEq, {count, like(x, 1)}), all, zero(x));
    const UOp of_other = where(is_zero(count), alu(Op::Div, {all, safe(x)}), zero(x));
    return where(is_zero(x), of_zero, of_other);
  };
  return {mul(g, others(target, rest, zeros)), mul(at(g), others(value, at(rest), at(zeros)))};
}

Grads detach_row(const UOp& u, const UOp& g) {
  const auto* rule = std::get_if<const GradientRule*>(&u->arg);
  return rule ? (*rule)->row(u, g) : Grads();
}

Grads custom_kernel_row(const UOp& u, const UOp&) {
  fail<Unsupported>("kernel {} has no gradient: give it one, or detach() what it reads",
                    u->get<CustomKernelArg>().kernel->name);
}

Grads scatter_row(const UOp& u, const UOp& g) {
  const auto& arg = u->get<ScatterArg>();
  Grads out = arg.op == Op::Assign ? replaced(u, g)
              : arg.op == Op::Add  ? Grads{g, gathered(g, u->src(2), arg.axis)}
              : arg.op == Op::Mul  ? of_products(u, g)
                                   : of_largest(u, g);
  out.push_back(UOp());
  return out;
}

// An op without a row has no gradient and says so.
constexpr OpTable<Row> kRows{{
    {Op::Cast, cast_row},     {Op::Neg, neg_row},         {Op::Recip, recip_row},
    {Op::Sqrt, sqrt_row},     {Op::Exp2, exp2_row},       {Op::Log2, log2_row},
    {Op::Sin, sin_row},       {Op::Add, add_row},         {Op::Sub, sub_row},
    {Op::Mul, mul_row},       {Op::Div, div_row},         {Op::Max, max_row},
    {Op::Where, where_row},   {Op::Reshape, reshape_row}, {Op::Permute, permute_row},
    {Op::Expand, expand_row}, {Op::Pad, pad_row},         {Op::Shrink, shrink_row},
    {Op::Flip, flip_row},     {Op::Reduce, reduce_row},   {Op::Contiguous, same},
    {Op::Copy, copy_row},     {Op::Assign, assign_row},   {Op::Trunc, none},
    {Op::Scatter, scatter_row}, {Op::Mark, same},         {Op::Checkpoint, to_value},
    {Op::Again, to_value},    {Op::Loop, loop_gradients},
    {Op::CustomKernel, custom_kernel_row},
    {Op::Shards, shards_row},
    {Op::Detach, detach_row}, {Op::Bitcast, none},        {Op::CmpLt, none},
    {Op::CmpNe, none},        {Op::CmpEq, none},          {Op::Threefry, none},
}};
static_assert(kRows.covers([](Op op) { return takes_floats(op) && row(op).floors & kFloorTensor; }),
              "ir/gradient.cpp: kRows lacks an op of floats");

}  // namespace

UOp gradient_like(const UOp& g, const UOp& x) { return unbroadcast(g, x); }

std::vector<UOp> gradients_of_sources(const UOp& u, const UOp& g) {
  const Row* row = kRows.find(u->op);
  if (!row) fail<Unsupported>("{} has no gradient", name(u->op));
  Grads of_src = (*row)(u, g);
  for (size_t s = 0; s < of_src.size(); s++)
    if (of_src[s] && is_alu(u->op)) of_src[s] = unbroadcast(of_src[s], u->src(s));
  return of_src;
}

}  // namespace tuff::ir

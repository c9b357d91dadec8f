// Builders of uop.h: constants, ALU with folding, movement with trivial merges.
#include <algorithm>
#include <numeric>

#include "ir/derive.h"
#include "ir/scalar_eval.h"
#include "ir/symbolic.h"
#include "ir/uop.h"

namespace tuff::ir {

UOp constant(const Scalar& v) { return make(Op::Const, v.dtype, {}, v); }
UOp constant(DType t, double v) { return constant(Scalar::of_double(t, v)); }
UOp index_const(int64_t v) { return constant(Scalar{DType::Index, uint64_t(v)}); }
UOp bool_const(bool v) { return constant(Scalar{DType::Bool, v}); }
UOp iota(const Dim& n, DType t) { return make(Op::Iota, t, {}, Shape{n}); }
UOp buffer(Ref<Storage> s) {
  const DType t = s->dtype;
  return make(Op::Buffer, t, {}, std::move(s));
}
UOp param(int32_t slot, DType t, int64_t count, std::string device) {
  return make(Op::Param, t, {}, ParamArg{slot, count, std::move(device)});
}
UOp variable(std::string name, int64_t min, int64_t max) {
  if (min > max)
    fail<InvalidArgument>("variable {}: lower bound {} is above upper bound {}", name, min, max);
  return make(Op::Variable, DType::Index, {}, VariableArg{std::move(name), min, max});
}
UOp range(const UOp& size, int32_t id, AxisKind kind) {
  return make(Op::Range, DType::Index, {size}, RangeArg{id, kind});
}
UOp cast(const UOp& x, DType to) {
  return x->dtype == to  ? x
         : x->is_const() ? constant(x->get<Scalar>().cast(to))
                         : make(Op::Cast, to, {x});
}
UOp bitcast(const UOp& x, DType to) { return x->dtype == to ? x : make(Op::Bitcast, to, {x}); }

namespace {

bool all_const(std::span<const UOp> src) {
  return std::all_of(src.begin(), src.end(), [](const UOp& u) { return u->is_const(); });
}

UOp fold_constants(Op op, std::span<const UOp> src, const Arg& arg) {
  Scalar values[4];
  for (size_t i = 0; i < src.size(); i++) values[i] = src[i]->get<Scalar>();
  return constant(eval_scalar(op, DType::Void, {values, src.size()}, word_of(arg)));
}

// Identities of integers that every index builder wants at once; the rest is symbolic_rules()'.
UOp fold_integer_binary(Op op, const UOp& a, const UOp& b) {
  const bool b_const = b->is_const();
  const int64_t c = b_const ? b->const_int() : 0;
  switch (op) {
    case Op::Add:
      if (b_const && c == 0) return a;
      if (b_const && a->op == Op::Add && a->src(1)->is_const())
        return a->src(0) + alu(Op::Add, {a->src(1), b});
      break;
    case Op::Sub:
      if (a == b) return constant(Scalar{a->dtype, 0});
      if (b_const) return alu(Op::Add, {a, constant(Scalar::of_int(a->dtype, -c))});
      break;
    case Op::Mul:
      if (b_const && c == 1) return a;
      if (b_const && c == 0) return b;
      if (b_const && a->op == Op::Mul && a->src(1)->is_const())
        return a->src(0) * alu(Op::Mul, {a->src(1), b});
      break;
    case Op::FloorDiv:
      if (b_const && c == 1) return a;
      if (b_const && c > 1 && a->min >= 0 && a->max < c) return index_const(0);
      break;
    case Op::FloorMod:
      if (b_const && c == 1) return index_const(0);
      if (b_const && a->min >= 0 && a->max < c) return a;
      break;
    case Op::Max:
      if (a == b || a->min >= b->max) return a;
      if (b->min >= a->max) return b;
      break;
    default: break;
  }
  return {};
}

UOp fold_bool_binary(Op op, const UOp& a, const UOp& b) {
  if (op != Op::And && op != Op::Or) return {};
  if (a == b || (b->is_const() && (b->min == 1) == (op == Op::And))) return a;
  return b->is_const() ? b : UOp();
}

UOp fold_compare(Op op, const UOp& a, const UOp& b) {
  const UOp u = make(op, DType::Bool, {a, b});
  if (!is_float(a->dtype)) {
    if (u->min == u->max) return bool_const(u->min != 0);
    if (a == b) return bool_const(op == Op::CmpEq);
  }
  return u;
}

}  // namespace

UOp alu(Op op, std::span<const UOp> src, Arg arg) {
  if (op == Op::Where) {
    if (src[0]->is_const() && src[1]->shape == src[2]->shape) return src[0]->min ? src[1] : src[2];
    if (src[1] == src[2] && src[0]->shape.empty()) return src[1];
    return make(op, DType::Void, src, std::move(arg));
  }
  if (all_const(src) && src.size() <= 4 && op != Op::Cast && op != Op::Bitcast)
    return fold_constants(op, src, arg);
  if (src.size() != 2) return make(op, DType::Void, src, std::move(arg));
  UOp a = src[0], b = src[1];
  if (is_commutative(op) && a->is_const() && !b->is_const()) std::swap(a, b);
  if (row(op).rule == DTypeRule::Bool) {
    if (a->shape.empty() && b->shape.empty()) return fold_compare(op, a, b);
    return make(op, DType::Bool, {a, b});
  }
  UOp folded;
  if (a->dtype == DType::Index || (is_int(a->dtype) && a->shape.empty()))
    folded = fold_integer_binary(op, a, b);
  if (a->dtype == DType::Bool && a->shape.empty()) folded = fold_bool_binary(op, a, b);
  if (is_float(a->dtype) && op == Op::Mul && b->is_const() && b->get<Scalar>().as_double() == 1.0)
    folded = a;
  return folded ? folded : make(op, DType::Void, {a, b}, std::move(arg));
}
UOp alu(Op op, std::initializer_list<UOp> src, Arg arg) {
  return alu(op, std::span<const UOp>(src.begin(), src.size()), std::move(arg));
}

UOp reduce(Op op, const UOp& x, IntVec axes) {
  std::sort(axes.begin(), axes.end());
  std::erase_if(
      axes, [&](int64_t a) { return a >= 0 && a < int64_t(x->shape.size()) && x->shape[a] == 1; });
  if (axes.empty()) return x;
  return make(Op::Reduce, x->dtype, {x}, ReduceArg{op, std::move(axes)});
}
UOp reshape(const UOp& x, const Shape& shape) {
  if (x->shape == shape) return x;
  if (x->op == Op::Reshape) return reshape(x->src(0), shape);
  return make(Op::Reshape, x->dtype, {x}, shape);
}
UOp permute(const UOp& x, const IntVec& axes) {
  IntVec identity(axes.size());
  std::iota(identity.begin(), identity.end(), 0);
  if (axes == identity && x->shape.size() == axes.size()) return x;
  if (x->op == Op::Permute && x->shape.size() == axes.size()) {
    UOp check = make(Op::Permute, x->dtype, {x}, axes);  // validates the axes
    IntVec merged;
    for (int64_t a : axes) merged.push_back(x->get<IntVec>()[a]);
    return permute(x->src(0), merged);
  }
  return make(Op::Permute, x->dtype, {x}, axes);
}
UOp expand(const UOp& x, const Shape& shape) {
  if (x->shape == shape) return x;
  if (x->op != Op::Expand) return make(Op::Expand, x->dtype, {x}, shape);
  derive_shape(Op::Expand, {&x, 1}, shape);  // refuses what only the source would allow
  return expand(x->src(0), shape);
}
UOp pad(const UOp& x, const Pairs& pairs) {
  const bool none = std::all_of(pairs.begin(), pairs.end(),
                                [](const DimPair& p) { return p.a == 0 && p.b == 0; });
  if (none && pairs.size() == x->shape.size()) return x;
  return make(Op::Pad, x->dtype, {x}, pairs);
}
UOp shrink(const UOp& x, const Pairs& pairs) {
  bool whole = pairs.size() == x->shape.size();
  for (size_t i = 0; whole && i < pairs.size(); i++)
    whole = pairs[i].a == 0 && pairs[i].b == x->shape[i];
  return whole ? x : make(Op::Shrink, x->dtype, {x}, pairs);
}
UOp flip(const UOp& x, const IntVec& axes) {
  for (int64_t a : axes) {
    if (a < 0 || a >= int64_t(x->shape.size()))
      fail<IndexError>("flip: axis {} is outside shape {}", a, to_string(x->shape));
  }
  return axes.empty() ? x : make(Op::Flip, x->dtype, {x}, axes);
}
UOp put(const UOp& x, const Pairs& part, const UOp& value) {
  if (value->shape == x->shape) return value;
  Pairs around;
  for (size_t i = 0; i < part.size(); i++)
    around.push_back({part[i].a, x->shape[i] - part[i].b});
  const UOp yes = expand(reshape(bool_const(true), Shape(part.size(), Dim(1))), value->shape);
  return where(pad(yes, around), pad(value, around), x);
}
UOp scatter(const UOp& target, const UOp& value, const UOp& index, const ScatterArg& arg) {
  return make(Op::Scatter, target->dtype, {target, value, index}, arg);
}
UOp sink(std::span<const UOp> roots) { return make(Op::Sink, DType::Void, roots); }

namespace {
UOp like_integer(const UOp& a, int64_t v) { return constant(Scalar::of_int(a->dtype, v)); }
}  // namespace

UOp operator+(const UOp& a, const UOp& b) { return alu(Op::Add, {a, b}); }
UOp operator-(const UOp& a, const UOp& b) { return alu(Op::Sub, {a, b}); }
UOp operator*(const UOp& a, const UOp& b) { return alu(Op::Mul, {a, b}); }
UOp operator+(const UOp& a, int64_t b) { return a + like_integer(a, b); }
UOp operator-(const UOp& a, int64_t b) { return a - like_integer(a, b); }
UOp operator*(const UOp& a, int64_t b) { return a * like_integer(a, b); }
UOp floordiv(const UOp& a, const UOp& b) { return alu(Op::FloorDiv, {a, b}); }
UOp floormod(const UOp& a, const UOp& b) { return alu(Op::FloorMod, {a, b}); }
UOp floordiv(const UOp& a, int64_t b) { return floordiv(a, like_integer(a, b)); }
UOp floormod(const UOp& a, int64_t b) { return floormod(a, like_integer(a, b)); }
UOp lt(const UOp& a, const UOp& b) { return alu(Op::CmpLt, {a, b}); }
UOp ge(const UOp& a, const UOp& b) { return logical_not(lt(a, b)); }
UOp logical_and(const UOp& a, const UOp& b) { return alu(Op::And, {a, b}); }
UOp logical_not(const UOp& a) { return alu(Op::CmpNe, {a, bool_const(true)}); }
UOp where(const UOp& c, const UOp& a, const UOp& b) { return alu(Op::Where, {c, a, b}); }

Dim operator+(const Dim& a, const Dim& b) {
  return a.is_const() && b.is_const() ? Dim(a.value() + b.value())
                                      : Dim(simplify(a.uop() + b.uop()));
}
Dim operator-(const Dim& a, const Dim& b) {
  return a.is_const() && b.is_const() ? Dim(a.value() - b.value())
                                      : Dim(simplify(a.uop() - b.uop()));
}
Dim operator*(const Dim& a, const Dim& b) {
  return a.is_const() && b.is_const() ? Dim(a.value() * b.value())
                                      : Dim(simplify(a.uop() * b.uop()));
}

std::string to_string(const Shape& s) {
  std::string out = "(";
  for (size_t i = 0; i < s.size(); i++) {
    if (i) out += ", ";
    out += s[i].is_const() ? std::to_string(s[i].value()) : fmt::format("<={}", s[i].max());
  }
  return out + (s.size() == 1 ? ",)" : ")");
}

}  // namespace tuff::ir

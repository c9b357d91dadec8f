// Sums of products, whatever led to them, as MatMul or Einsum, and sums that pick elements as
// Gather or GatherElements: op by op they would take memory for all that is multiplied or compared.
#include <algorithm>

#include "onnx/exporter.h"
#include "tensor/impl.h"
#include "tensor/indexed.h"

namespace tuff::onnx {
namespace {

using ir::Dim;
using ir::IntVec;
using ir::Op;
using ir::Shape;
using ir::UOp;
using Given = std::span<const Exported>;

bool is_one(const Dim& d) { return d == 1; }
bool contains(const IntVec& v, int64_t x) { return std::ranges::find(v, x) != v.end(); }

Shape picked(const Shape& s, const IntVec& axes) {
  Shape out;
  for (const int64_t a : axes) out.push_back(s[size_t(a)]);
  return out;
}

Dim count(const Shape& s, const IntVec& axes) {
  Dim n(1);
  for (const int64_t a : axes) n = n * s[size_t(a)];
  return n;
}

IntVec joined(std::initializer_list<IntVec> lists) {
  IntVec out;
  for (const IntVec& l : lists) out.insert(out.end(), l.begin(), l.end());
  return out;
}

// The axes of a node that is not 1 there alone, in this order. The others are 1.
UOp with_axes(const UOp& u, const IntVec& order) {
  IntVec sorted = order;
  std::ranges::sort(sorted);
  IntVec moved;
  for (const int64_t a : order)
    moved.push_back(std::ranges::find(sorted, a) - sorted.begin());
  return ir::permute(ir::reshape(u, picked(u->shape, sorted)), moved);
}

// A value whose axes are these of a node, in their order, as it stands in the node's shape: where
// all others are 1.
Exported placed(Exporter& e, const Exported& value, const Shape& whole, const IntVec& order) {
  IntVec sorted = order;
  std::ranges::sort(sorted);
  IntVec back;
  for (const int64_t a : sorted) back.push_back(std::ranges::find(order, a) - order.begin());
  const Exported out = permuted(e, value, back);
  Shape shape(whole.size(), Dim(1));
  for (const int64_t a : sorted) shape[size_t(a)] = whole[size_t(a)];
  return {out.name, out.stored, shape};
}
Exported placed(Exporter& e, const std::string& name, const Shape& whole, const IntVec& order) {
  const Shape stored = picked(whole, order);
  return placed(e, Exported{name, stored, stored}, whole, order);
}

// ---- products

// Axes by which operands have them: batch is in both and kept, rows in the first, columns in the
// second, and what is summed.
struct Product {
  UOp a, b;
  Shape shape;
  IntVec batch, rows, columns, summed;
};

bool is_multiplied(DType t) {
  return t == DType::F16 || t == DType::F32 || t == DType::F64 || t == DType::I32 ||
         t == DType::I64;
}

std::optional<Product> product_of(const UOp& u) {
  if (u->op != Op::Reduce || u->get<ir::ReduceArg>().op != Op::Add || !is_multiplied(u->dtype))
    return std::nullopt;
  const UOp& mul = u->src(0);
  if (mul->op != Op::Mul) return std::nullopt;
  Product p{narrow(mul->src(0)), narrow(mul->src(1)), mul->shape, {}, {}, {}, {}};
  if (p.a->shape.size() != p.shape.size() || p.b->shape.size() != p.shape.size())
    return std::nullopt;
  const IntVec& axes = u->get<ir::ReduceArg>().axes;
  for (size_t i = 0; i < p.shape.size(); i++) {
    const bool in_a = !is_one(p.a->shape[i]), in_b = !is_one(p.b->shape[i]);
    const bool away = contains(axes, int64_t(i));
    if (is_one(p.shape[i])) continue;
    if (away && !(in_a && in_b)) return std::nullopt;
    if (!in_a && !in_b) return std::nullopt;
    (away ? p.summed : !in_b ? p.rows : !in_a ? p.columns : p.batch).push_back(int64_t(i));
  }
  // Of operands that are as large as their product nothing is repeated.
  if (p.summed.empty() || (p.rows.empty() && p.columns.empty())) return std::nullopt;
  // The one with more axes of its own goes first: (..., k) x (k, n).
  if (p.columns.size() > 1 && p.rows.size() <= 1) {
    std::swap(p.a, p.b);
    std::swap(p.rows, p.columns);
  }
  return p;
}

// (batch..., rows, summed) x (batch..., summed, columns), each of one axis but the rows where there
// is no batch.
Exporter::Plan matrix_product(Exporter& e, const Product& p, const Shape& result) {
  const bool single = p.batch.empty();
  const Dim n = count(p.shape, p.columns), k = count(p.shape, p.summed), m = count(p.shape, p.rows);
  UOp a = with_axes(p.a, joined({p.batch, p.rows, p.summed}));
  UOp b = with_axes(p.b, joined({p.batch, p.summed, p.columns}));
  Shape of_a = picked(p.shape, p.batch), of_b = of_a;
  if (single && !p.rows.empty())
    of_a = picked(p.shape, p.rows);
  else
    of_a.push_back(m);
  Shape made = of_a;
  of_a.push_back(k), of_b.push_back(k), of_b.push_back(n), made.push_back(n);
  a = ir::reshape(a, of_a), b = ir::reshape(b, of_b);
  const IntVec order = joined({p.batch, p.rows, p.columns});
  return {{a, b}, [&e, of_a, of_b, made, order, result](Given from) {
            const std::string y =
                e.node("MatMul", {e.exact(from[0], of_a), e.exact(from[1], of_b)});
            const Shape apart = picked(result, order);
            if (unit_map(made, apart)) return placed(e, Exported{y, made, apart}, result, order);
            return placed(e, e.reshaped(y, made, apart), result, order);
          }};
}

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

Exporter::Plan einstein_sum(Exporter& e, const Product& p, const Shape& result) {
  const auto sorted = [](IntVec v) {
    std::ranges::sort(v);
    return v;
  };
  const IntVec of_a = sorted(joined({p.batch, p.rows, p.summed}));
  const IntVec of_b = sorted(joined({p.batch, p.summed, p.columns}));
  const IntVec kept = sorted(joined({p.batch, p.rows, p.columns}));
  std::string equation;
  const auto name = [&](const IntVec& axes) {
    for (const int64_t a : axes) equation += kLetters[size_t(a)];
  };
  name(of_a), equation += ',', name(of_b), equation += "->", name(kept);
  const UOp a = with_axes(p.a, of_a), b = with_axes(p.b, of_b);
  return {{a, b}, [&e, a, b, equation, kept, result](Given from) {
            const std::string y =
                e.node("Einsum", {e.exact(from[0], a->shape), e.exact(from[1], b->shape)},
                       {attribute("equation", equation)});
            return placed(e, y, result, kept);
          }};
}

}  // namespace

std::optional<Exporter::Plan> product_plan(Exporter& e, const UOp& u) {
  const std::optional<Product> p = product_of(u);
  if (!p || p->shape.size() > kLetters.size()) return std::nullopt;
  const bool single = p->batch.empty();
  const bool matrices = single ? p->columns.size() <= 1 || p->rows.size() <= 1
                               : p->rows.size() <= 1 && p->columns.size() <= 1 &&
                                     p->summed.size() == 1;
  return matrices ? matrix_product(e, *p, u->shape) : einstein_sum(e, *p, u->shape);
}

// ---- picks: a sum over one axis of where(index == 0, 1, 2 ..., x, 0)

namespace {

// What movement without Pad makes of each side of a comparison, narrow.
std::optional<std::pair<UOp, UOp>> compared(const UOp& hit) {
  std::vector<UOp> passed;
  UOp u = hit;
  while (u->op == Op::Expand || u->op == Op::Reshape || u->op == Op::Permute)
    passed.push_back(u), u = u->src(0);
  if (u->op != Op::CmpEq) return std::nullopt;
  const auto moved = [&](UOp x) {
    x = ir::expand(x->shape.empty() ? ir::reshape(x, Shape(u->shape.size(), Dim(1))) : x, u->shape);
    for (size_t i = passed.size(); i-- > 0;) {
      const UOp& m = passed[i];
      x = m->op == Op::Expand    ? ir::expand(x, m->shape)
          : m->op == Op::Permute ? ir::permute(x, m->get<IntVec>())
                                 : ir::reshape(x, m->shape);
    }
    return narrow(x);
  };
  return std::pair(moved(u->src(0)), moved(u->src(1)));
}

bool is_counter(const UOp& u, size_t axis, const Dim& n) {
  const UOp* x = &u;
  for (size_t i = 0; i < u->shape.size(); i++)
    if (is_one(u->shape[i]) == (i == axis)) return false;
  while (((*x)->op == Op::Reshape || (*x)->op == Op::Permute || (*x)->op == Op::Cast))
    x = &(*x)->src(0);
  return (*x)->op == Op::Iota && (*x)->shape[0] == n;
}

struct Pick {
  UOp x, index;
  size_t axis;
  Shape shape;
};

std::optional<Pick> pick_of(const UOp& u) {
  if (u->op != Op::Reduce || u->dtype == DType::Bool) return std::nullopt;
  const auto& arg = u->get<ir::ReduceArg>();
  const UOp& chosen = u->src(0);
  if (arg.op != Op::Add || arg.axes.size() != 1 || chosen->op != Op::Where) return std::nullopt;
  const Scalar* zero = constant_of(chosen->src(2).get());
  const auto sides = compared(chosen->src(0));
  if (!zero || zero->as_bool() || !sides) return std::nullopt;
  const auto axis = size_t(arg.axes[0]);
  const Shape& shape = chosen->shape;
  UOp x = narrow(chosen->src(1));
  if (x->shape.size() != shape.size() || is_one(x->shape[axis])) return std::nullopt;
  for (const auto& [index, counter] : {*sides, std::pair(sides->second, sides->first)}) {
    if (index->shape.size() != shape.size() || !is_one(index->shape[axis])) continue;
    if (is_counter(counter, axis, shape[axis])) return Pick{x, index, axis, shape};
  }
  return std::nullopt;
}

// An index from either end, of which from_start() made this; null: it is another.
UOp from_either_end(Exporter& e, const UOp& index, const Dim& n) {
  std::vector<UOp> passed;
  UOp u = index;
  while (u->op == Op::Reshape || u->op == Op::Permute || u->op == Op::Expand)
    passed.push_back(u), u = u->src(0);
  const UOp inner = u->op == Op::Cast ? u->src(0) : u;
  if (inner->op != Op::Where || inner->src(1)->op != Op::Where) return {};
  UOp at = inner->src(1)->src(2);
  const std::string device = ir::device_of(at);
  const Tensor again = detail::from_start(detail::wrap(at, device), detail::size_of(n));
  if (!e.is(again, u)) return {};
  for (size_t i = passed.size(); i-- > 0;) {
    const UOp& m = passed[i];
    at = m->op == Op::Expand    ? ir::expand(at, m->shape)
         : m->op == Op::Permute ? ir::permute(at, m->get<IntVec>())
                                : ir::reshape(at, m->shape);
  }
  return at;
}

// An input of the model, whatever its dtype.
bool is_input(const UOp& index) {
  const ir::Node* n = index.get();
  while (n->op == Op::Reshape || n->op == Op::Permute || n->op == Op::Expand ||
         n->op == Op::Shrink || n->op == Op::Cast)
    n = n->src(0).get();
  if (n->op != Op::Detach || n->src_count != 1) return false;
  n = n->src(0).get();
  while (ir::is_movement(n->op)) n = n->src(0).get();
  return n->op == Op::Param;
}

// Index and value of a Gather. Where the index may be outside the value is 0 there: a loss ignores
// elements by that. Of rows that an input names, as an embedding's, a runtime says so instead.
class Gathering {
 public:
  Gathering(Exporter& e, const Pick& p, bool of_rows) : e_(e), n_(p.shape[p.axis]) {
    const UOp given = from_either_end(e, p.index, n_);
    index_ = given ? given : p.index;
    guarded_ = !given && !(of_rows && is_input(p.index));
  }
  const UOp& index() const { return index_; }

  std::string inside(const std::string& index) const {
    const bool wide = index_->dtype == DType::I64, usable = wide || index_->dtype == DType::I32;
    std::string at = usable ? index : cast(index, DType::I64);
    if (!guarded_) return at;
    return e_.node("Clip", {at, zero(), last()});
  }
  // `value` where the index, of these axes, is inside.
  Exported chosen(const Exported& value, Exported index, DType t) const {
    if (!guarded_) return value;
    const DType own = index_->dtype == DType::I32 ? DType::I32 : DType::I64;
    if (index_->dtype != own) index = e_.cast(index, own);
    const Exported low{zero(), {}, {}}, high{last(), {}, {}};
    const Exported outside = e_.elementwise("Or", {e_.elementwise("Less", {index, low}),
                                                   e_.elementwise("Less", {high, index})});
    return e_.elementwise("Where", {outside, e_.number(Scalar::of_int(t, 0)), value});
  }

 private:
  DType counted() const { return index_->dtype == DType::I32 ? DType::I32 : DType::I64; }
  std::string cast(const std::string& name, DType t) const {
    return e_.cast({name, {}, {}}, t).name;
  }
  std::string zero() const { return e_.number(Scalar::of_int(counted(), 0)).name; }
  std::string last() const {
    if (n_.is_const()) return e_.number(Scalar::of_int(counted(), n_.value() - 1)).name;
    const std::string n = e_.node("Squeeze", {e_.extent(n_ - Dim(1)), e_.integers({0})});
    return counted() == DType::I64 ? n : cast(n, DType::I32);
  }

  Exporter& e_;
  Dim n_;
  UOp index_;
  bool guarded_;
};

// The index's axes take the place of the one that they stand for.
Exporter::Plan gather(Exporter& e, const Pick& p, const IntVec& of_index, const IntVec& before,
                      const IntVec& after, const UOp& u) {
  const Gathering g(e, p, true);
  const auto axis = int64_t(p.axis);
  const UOp x = with_axes(p.x, joined({before, {axis}, after}));
  const UOp index = with_axes(g.index(), of_index);
  const IntVec order = joined({before, of_index, after});
  return {{x, index, g.index()}, [&e, g, x, index, order, before, u](Given from) {
            const std::string at = g.inside(e.exact(from[1], index->shape));
            const std::string y = e.node("Gather", {e.exact(from[0], x->shape), at},
                                         {attribute("axis", int64_t(before.size()))});
            return g.chosen(placed(e, y, u->shape, order), from[2], u->dtype);
          }};
}

// Element by element: (batch..., n) by (batch..., some).
Exporter::Plan gather_elements(Exporter& e, const Pick& p, const IntVec& batch, const IntVec& more,
                               const UOp& u) {
  const Gathering g(e, p, false);
  const UOp x = with_axes(p.x, joined({batch, {int64_t(p.axis)}}));
  Shape places = picked(p.shape, batch);
  places.push_back(count(p.shape, more));
  const UOp index = ir::reshape(with_axes(g.index(), joined({batch, more})), places);
  const IntVec order = joined({batch, more});
  return {{x, index, g.index()}, [&e, g, x, places, order, u](Given from) {
            const std::string at = g.inside(e.exact(from[1], places));
            const std::string y = e.node("GatherElements", {e.exact(from[0], x->shape), at},
                                         {attribute("axis", int64_t(places.size()) - 1)});
            const Shape apart = picked(u->shape, order);
            return g.chosen(placed(e, e.reshaped(y, places, apart), u->shape, order), from[2],
                            u->dtype);
          }};
}

}  // namespace

std::optional<Exporter::Plan> pick_plan(Exporter& e, const UOp& u) {
  const std::optional<Pick> p = pick_of(u);
  if (!p) return std::nullopt;
  IntVec both, of_index, before, after;
  for (size_t i = 0; i < p->shape.size(); i++) {
    if (i == p->axis) continue;
    const bool in_x = !is_one(p->x->shape[i]), in_index = !is_one(p->index->shape[i]);
    if (in_x && in_index)
      both.push_back(int64_t(i));
    else if (in_index)
      of_index.push_back(int64_t(i));
    else if (in_x)
      (i < p->axis ? before : after).push_back(int64_t(i));
    else if (!is_one(p->shape[i]))
      return std::nullopt;
  }
  if (both.empty()) return gather(e, *p, of_index, before, after, u);
  if (before.empty() && after.empty()) return gather_elements(e, *p, both, of_index, u);
  return std::nullopt;
}

}  // namespace tuff::onnx

#include "kernel/opt/matrices.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/arith.h"
#include "base/check.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// How one factor walks memory. What is computed lies in copies of it alone: its lines are along the
// reduction.
struct Walk {
  UOp value;
  bool computed;
  int source;                  // of the product
  std::vector<int64_t> steps;  // by axis
  int64_t divisor = 0;         // of all steps of what is no axis, and of the constant
};

}  // namespace

UOp narrow_factor(const UOp& factor) {
  return factor->op == Op::Cast ? factor->src(0) : factor;
}
std::string factor_refusal(const UOp& factor, DType t) {
  const UOp value = narrow_factor(factor);
  if (value->dtype != t) return "a factor is not of the shape's dtype";
  for (const Node* n : toposort(value))
    if (n->op == Op::Reduce || n->op == Op::Shared) return "a factor is a sum, or kept";
  return {};
}

namespace {

// Whether it lies in a buffer, with steps along axes alone.
bool walks_axes(Walk& w, const UOp& index, const Tiling& tiling) {
  if (index->op != Op::Index || index->src_count > 2 || index->src(0)->op != Op::Param)
    return false;
  const LinearForm form = linear_form(index->src(1));
  w.divisor = form.constant;
  for (const auto& [term, step] : form.terms) {
    const int axis = term->op == Op::Range ? axis_of(tiling, term.get()) : -1;
    if (axis < 0) return false;
    w.steps[size_t(axis)] = step;
  }
  return true;
}

Walk walk_of(const UOp& product, size_t source, const Tiling& tiling) {
  constexpr int64_t kFar = 1 << 20;
  const size_t count = tiling.axes.size();
  Walk w{narrow_factor(product->src(source)), false, int(source),
         std::vector<int64_t>(count, 0), 0};
  if (w.value->op == Op::Load && walks_axes(w, w.value->src(0), tiling)) return w;
  w.computed = true;
  w.divisor = 0;
  for (size_t a = 0; a < count; a++) {
    const Axis& axis = tiling.axes[a];
    w.steps[a] = !depends_on(w.value, axis.range) ? 0 : axis.reduced ? 1 : kFar;
  }
  return w;
}

// Extent of a matrix along an axis of the Tiling, which has `all` elements.
struct Extent {
  int axis;
  int64_t size, all;
};
Extent extent(const Tiling& t, int axis, int64_t size) {
  return {axis, size, t.axes[size_t(axis)].main_size()};
}

// Rows of `rows`, columns of `columns`, if neighbours of one row or column lie side by side in
// memory. They lie as a matrix does where all of them, and the last ones, which end with their axis,
// are aligned as devices ask for it, to 16 bytes or to a whole row or column where that is less;
// else in copies alone.
std::optional<MatrixOperand> operand(const Walk& w, const Extent& rows, const Extent& columns) {
  constexpr int64_t kAlignment = 16;
  const auto step = [&](const Extent& e) { return w.steps[size_t(e.axis)]; };
  const int64_t bytes = int64_t(size_bytes(w.value->dtype));
  for (const bool by_columns : {false, true}) {
    const Extent& line = by_columns ? rows : columns;
    const Extent& across = by_columns ? columns : rows;
    if (step(line) != 1 || step(across) < 1) continue;
    const int64_t aligned = std::min(kAlignment, line.size * bytes) / bytes;
    bool whole = w.divisor % aligned == 0 && step(across) % aligned == 0 &&
                 (line.all - line.size) % aligned == 0;
    for (size_t a = 0; a < w.steps.size(); a++)
      whole = whole && (int(a) == line.axis || w.steps[a] % aligned == 0);
    return MatrixOperand{w.value, w.computed || !whole, {step(across), by_columns}, w.source};
  }
  return {};
}

// Rows of a right factor that a CPU's matrix instructions want interleaved, so that 32 bits of a
// register hold what is summed (Intel's manual, volume 2: TDPBF16PS).
int64_t interleaved_rows(const Target& target, const MatrixShape& s) {
  return target.has_local ? 1 : int64_t(sizeof(uint32_t) / size_bytes(s.b));
}

// Chooses the axes of a product: of several that would do, the innermost.
class Choice {
 public:
  Choice(const Tiling& t, const MatrixShape& s, const Walk& a, const Walk& b)
      : t_(t), shape_(s), a_(a), b_(b), interleaved_(interleaved_rows(t.target, s)) {}

  // pads: of axes that are as long as the shape, but need not be multiples of it.
  bool find(MatrixProduct& p, std::span<const UOp> reduced, bool pads) const {
    if (pads && !t_.target.has_local) return false;
    for (size_t r = reduced.size(); r-- > 0;) {
      const int k = axis_of(t_, reduced[r].get());
      for (int n = count(); n-- > 0;) {
        for (int m = count(); m-- > 0;) {
          if (interleaved_ > 1 ? fits_interleaved(p, m, n, k) : fits(p, m, n, k, pads)) return true;
        }
      }
    }
    return false;
  }

 private:
  int count() const { return int(t_.axes.size()); }
  bool divides(int axis, int64_t size) const {
    const Axis& x = t_.axes[size_t(axis)];
    return x.main_is_const() && x.main_size() % size == 0;
  }
  bool fits(MatrixProduct& p, int m, int n, int k, bool pads) const {
    if (t_.axes[size_t(m)].reduced || t_.axes[size_t(n)].reduced) return false;
    if (b_.steps[size_t(m)] || a_.steps[size_t(n)]) return false;
    const auto covers = [&](int axis, int64_t size) {
      const Axis& x = t_.axes[size_t(axis)];
      return divides(axis, size) || (pads && x.main_is_const() && x.main_size() > size);
    };
    if (!covers(m, shape_.m) || !covers(n, shape_.n) || !covers(k, shape_.k)) return false;
    const Extent rows = extent(t_, m, shape_.m), columns = extent(t_, n, shape_.n),
                 summed = extent(t_, k, shape_.k);
    const auto a = operand(a_, rows, summed), b = operand(b_, summed, columns);
    if (!a || !b) return false;
    p.m = m, p.n = n, p.k = k;
    p.a = *a, p.b = *b;
    // Steps that two matrices have in common are masked in the copies of the last one.
    if (!divides(k, shape_.k)) p.a.computed = p.b.computed = true;
    return true;
  }
  // What is summed has two axes: lines of a right factor, and the rows that are interleaved in one,
  // which the left factor has side by side.
  bool fits_interleaved(MatrixProduct& p, int m, int n, int k) const {
    if (t_.axes[size_t(m)].reduced || t_.axes[size_t(n)].reduced) return false;
    if (!divides(m, shape_.m) || !divides(n, shape_.n) || !divides(k, shape_.k / interleaved_))
      return false;
    const int64_t row = step_within(a_, m, shape_.m);
    const int64_t line = step_within(b_, k, shape_.k / interleaved_);
    if (row < int64_t(shape_.k) || line < int64_t(shape_.n) * interleaved_) return false;
    const auto steps = [&](int axis, int64_t size, int64_t left, int64_t right) {
      return step_within(a_, axis, size) == left && step_within(b_, axis, size) == right;
    };
    if (!steps(m, shape_.m, row, 0) || !steps(n, shape_.n, 0, interleaved_) ||
        !steps(k, shape_.k / interleaved_, interleaved_, line))
      return false;
    for (int pair = 0; pair < count(); pair++) {
      const Axis& x = t_.axes[size_t(pair)];
      if (!x.reduced || pair == k || !x.main_is_const() || x.main_size() != interleaved_ ||
          !steps(pair, interleaved_, 1, 1))
        continue;
      p.m = m, p.n = n, p.k = k, p.pair = pair;
      p.a = {a_.value, false, {row, false}, a_.source};
      p.b = {b_.value, false, {line, false, int32_t(interleaved_)}, b_.source};
      return true;
    }
    return false;
  }
  // Elements from one of `size` neighbours along an axis to the next, wherever these begin; -1: not
  // always as many, or it lies in no buffer.
  int64_t step_within(const Walk& w, int axis, int64_t size) const {
    if (w.value->op != Op::Load || w.value->src(0)->op != Op::Index) return -1;
    const UOp& index = w.value->src(0);
    if (index->src_count > 2 || index->src(0)->op != Op::Param) return -1;
    const UOp &r = t_.axes[size_t(axis)].range, &extent = r->src(0);
    if (!extent->is_const()) return -1;
    int32_t id = RangeDeps(index).free_id();
    const UOp first = range(index_const(extent->max / size), id, AxisKind::Loop);
    const UOp inside = range(index_const(size), id + 1, AxisKind::Loop);
    const UOp at = simplify(substitute(index->src(1), {{r, first * size + inside}}));
    int64_t step = 0;
    for (const auto& [term, times] : linear_form(at).terms) {
      if (term == inside)
        step = times;
      else if (depends_on(term, inside))
        return -1;
    }
    return step;
  }
  const Tiling& t_;
  const MatrixShape& shape_;
  const Walk &a_, &b_;
  const int64_t interleaved_;
};

}  // namespace

UOp sum_of(const UOp& ast, const UOp& product) {
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::Reduce && n->src(0) == product) return UOp(n);
  }
  return {};
}

namespace {

// How the sums lie where nothing but a conversion is between them and the kernel's only store.
std::optional<MatrixLines> stored_lines(const UOp& ast, const Tiling& tiling,
                                        const MatrixProduct& p) {
  if (ast->src_count != 1 || ast->src(0)->op != Op::End) return {};
  const UOp& store = ast->src(0)->src(0);
  if (store->op != Op::Store || store->src_count != 2) return {};
  const UOp& value = store->src(1);
  // To float16 alone: NVIDIA's driver truncates matrices that become bfloat16 (580.159.04).
  const bool halves = value->op == Op::Cast && value->dtype == DType::F16 && is_float(p.shape.sum);
  if (value != p.reduce && !(halves && value->src(0) == p.reduce)) return {};
  Walk w{value, false, 0, std::vector<int64_t>(tiling.axes.size(), 0)};
  if (!walks_axes(w, store->src(0), tiling)) return {};
  const Extent rows = extent(tiling, p.m, p.shape.m), columns = extent(tiling, p.n, p.shape.n);
  // Elements that two matrices have in common are stored once.
  if (rows.all % rows.size != 0 || columns.all % columns.size != 0) return {};
  const auto place = operand(w, rows, columns);
  return place && !place->computed ? std::optional(place->lines) : std::nullopt;
}

}  // namespace

std::string matrix_product(const UOp& ast, const Tiling& t, int number, const MatrixShape& shape,
                           MatrixProduct& out) {
  if (number < 0 || 2 * size_t(number) + 1 >= t.factors.size()) return "no such sum of products";
  const UOp& product = t.factors[2 * size_t(number)].product;
  MatrixProduct p;
  p.reduce = sum_of(ast, product);
  p.shape = shape;
  if (!p.reduce) return "the products are converted before they are summed";
  if (product->dtype != shape.sum) return "the sum has another dtype";
  // The columns are those of the output's inner axis: neighbours are then stored side by side.
  MatrixProduct best;
  for (const bool pads : {false, true}) {
    for (const size_t left : {size_t(0), size_t(1)}) {
      for (const auto& [source, type] : {std::pair(left, shape.a), {1 - left, shape.b}})
        if (std::string why = factor_refusal(product->src(source), type); !why.empty()) return why;
      const Walk a = walk_of(product, left, t), b = walk_of(product, 1 - left, t);
      MatrixProduct found = p;
      if (Choice(t, shape, a, b).find(found, p.reduce->src().subspan(1), pads) && found.n > best.n)
        best = found;
    }
    if (best.n >= 0) break;
  }
  if (best.n < 0)
    return t.target.has_local
               ? "an axis is shorter than the shape, or they do not lie as matrices do"
               : "the shape does not divide the axes, or they do not lie as matrices do";
  best.stored = stored_lines(ast, t, best);
  out = std::move(best);
  return {};
}

MatrixElements matrix_elements(const MatrixProduct& p, int64_t lanes, int32_t& next_id) {
  const MatrixShape& shape = p.shape;
  if (p.stored) {
    const UOp first = index_const(0);
    if (lanes == 1) return {{}, first, first, first};
    return {{range(index_const(lanes), next_id++, AxisKind::Subgroup)}, first, first, first};
  }
  const int64_t each = int64_t(shape.m) * shape.n / lanes;
  const int64_t together = std::min<int64_t>({4, each, shape.n & -shape.n, each & -each});
  MatrixElements e;
  const auto add = [&](int64_t size, AxisKind kind) {
    if (size == 1) return index_const(0);
    return e.ranges.emplace_back(range(index_const(size), next_id++, kind));
  };
  const UOp turn = add(each / together, AxisKind::Loop), lane = add(lanes, AxisKind::Subgroup);
  const UOp neighbour = add(together, AxisKind::Lane), run = turn * lanes + lane;
  const int64_t runs_of_row = int64_t(shape.n) / together;
  e.element = run * together + neighbour;
  e.row = floordiv(run, runs_of_row);
  e.column = floormod(run, runs_of_row) * together + neighbour;
  return e;
}

UOp matrix_sum(const MatrixProduct& p, std::span<const MatrixPlace> factors,
               std::span<const UOp> summed) {
  const auto load = [&](const MatrixOperand& f, MatrixArg arg) {
    const MatrixPlace& place = factors[size_t(f.source)];
    arg.stride = place.lines.stride;
    arg.by_columns = place.lines.by_columns;
    arg.interleaved = place.lines.interleaved;
    return make(Op::MatrixLoad, place.begin->dtype, {place.begin}, arg);
  };
  const auto m = int32_t(p.shape.m), n = int32_t(p.shape.n), k = int32_t(p.shape.k);
  const DType t = p.shape.sum;
  const MatrixArg arg{MatrixUse::Sum, m, n};
  std::vector<UOp> src{load(p.a, {MatrixUse::A, m, k}), load(p.b, {MatrixUse::B, k, n})};
  if (summed.empty())
    src.push_back(make(Op::MatrixFill, t, {constant(Scalar::of_int(t, 0))}, arg));
  const UOp sum = make(Op::MatrixMulAdd, t, src, arg);
  return summed.empty() ? sum : make(Op::Reduce, t, sources(sum, summed), ReduceArg{Op::Add, {}});
}

UOp matrix_element(const MatrixProduct& p, const UOp& sum, std::span<const UOp> ranges,
                   const MatrixElements& elements, int32_t number) {
  UOp fragment = index_const(0);
  int64_t fragments = 1;
  bool repeated = false;
  for (const UOp& r : ranges) {
    const AxisKind kind = kind_of(r.get());
    repeated = repeated || kind == AxisKind::Loop;
    if (kind != AxisKind::Local && kind != AxisKind::Lane) continue;
    fragment = fragment * r->src(0) + r;
    fragments *= r->src(0)->max;
  }
  const int64_t size = int64_t(p.shape.m) * p.shape.n;
  const UOp memory = make(Op::Shared, sum->dtype, {}, SharedArg{number, fragments * size});
  MatrixArg arg{MatrixUse::Sum, int32_t(p.shape.m), int32_t(p.shape.n)};
  arg.stride = p.shape.n;
  const UOp stored =
      make(Op::MatrixStore, DType::Void, {make_index(memory, fragment * size), sum}, arg);
  const UOp complete = make_after(memory, {make_barrier({stored})});
  const UOp value = make_load(make_index(complete, fragment * size + elements.element));
  // The next iteration of a loop around writes the memory again.
  return repeated ? make_after(value, {make_barrier({value})}) : value;
}

UOp matrix_store(const MatrixProduct& p, const UOp& place, const UOp& sum) {
  MatrixArg arg{MatrixUse::Sum, int32_t(p.shape.m), int32_t(p.shape.n)};
  arg.stride = p.stored->stride;
  arg.by_columns = p.stored->by_columns;
  return make(Op::MatrixStore, DType::Void, {place, sum}, arg);
}

// ---- the rule ---------------------------------------------------------------------------------

std::string matrix_refusal(const Tiling& t, const Opt& o) {
  const TargetFeatures& f = t.target.features;
  if (o.amount < 0 || o.amount >= int64_t(t.target.matrix_shapes.size()))
    return "the target lists no such shape";
  if (!t.applied.empty() && !keeps_rows(t)) return "other opts have been applied already";
  const MatrixShape& shape = t.target.matrix_shapes[size_t(o.amount)];
  const int64_t lanes = t.target.subgroup_size, size = int64_t(shape.m) * shape.n;
  const bool alone = !t.target.has_local;  // a thread multiplies
  const bool held = lanes >= 2 && lanes <= int64_t(t.target.max_local[0]) &&
                    lanes <= t.target.max_invocations;
  if (!alone && !held) return "a workgroup holds no subgroup";
  if (size % lanes != 0 || !std::has_single_bit(uint64_t(lanes)))
    return "the lanes of a subgroup do not share a matrix evenly";
  if (!f.storage8 || !f.storage16) return "the target does not load its elements as they are";
  if (keeps_rows(t)) return row_matrix_refusal(t, o);
  if (t.nests > 1 || t.reductions.size() != 1)
    return "the kernel computes more than one sum";
  MatrixProduct p;
  if (std::string why = matrix_product(t.ast, t, o.axis, shape, p); !why.empty()) return why;
  if (alone && !p.stored) return "the sums are not stored as they are";
  const int64_t sums = p.stored ? 0 : size * int64_t(size_bytes(shape.sum));
  if (sums > int64_t(t.target.shared_bytes)) return "workgroup memory holds no matrix";
  if (p.a.computed || p.b.computed) {
    constexpr int64_t kPadding = 16;
    const DType type = shape.a;
    const int64_t line = shape.k * int64_t(size_bytes(type)) + kPadding;
    if (t.target.held_bytes(type) != int64_t(size_bytes(type)))
      return "workgroup memory does not hold a computed factor as matrices have it";
    if (sums + (shape.m + shape.n) * line > int64_t(t.target.shared_bytes))
      return "workgroup memory holds no copy of a computed factor";
  }
  for (const Tiling::Stored& s : t.stored) {
    for (int a = 0; a < int(t.axes.size()); a++) {
      const bool walks = contains(s.axes, a), closed = !contains(s.around, a);
      const bool single = t.axes[size_t(a)].parts[0].size->is_const_int(1);
      if (!t.axes[size_t(a)].reduced && !single && !(walks && closed))
        return "an output does not depend on all axes";
    }
  }
  return {};
}

namespace {

// Matrix registers of a CPU: tmm0 to tmm7 (Intel's manual, volume 1, chapter 18).
constexpr int64_t kMatrixRegisters = 8;

// Matrices of sums and factors that a thread holds at once, after an Upcast of `next`.
int64_t held_matrices(const Tiling& t, const Opt& next) {
  int64_t rows = 1, columns = 1, sums = 1;
  const MatrixProduct& p = *t.matrices;
  for (int a = 0; a < int(t.axes.size()); a++) {
    const int64_t lanes = t.axes[size_t(a)].lanes() * (a == next.axis ? next.amount : 1);
    const auto walked_by = [&](const MatrixOperand& f) {
      return depends_on(f.value, t.axes[size_t(a)].range);
    };
    sums *= lanes;
    rows *= walked_by(p.a) ? lanes : 1;
    columns *= walked_by(p.b) ? lanes : 1;
  }
  return sums + rows + columns;
}

std::string refusal_of_a_thread(const Tiling& t, const Opt& o) {
  switch (o.kind) {
    case OptKind::Split:
    case OptKind::Group:
    case OptKind::Swap: return {};
    case OptKind::Upcast:
      if (held_matrices(t, o) > kMatrixRegisters) return "there are no registers for such a tile";
      return {};
    default: return "the kernel multiplies matrices";
  }
}

}  // namespace

// What may follow in a Tiling that has matrices: whole subgroups do everything.
std::string refusal_beside_matrices(const Tiling& t, const Opt& o) {
  if (!t.target.has_local) return refusal_of_a_thread(t, o);
  switch (o.kind) {
    case OptKind::Split:
    case OptKind::Group:
    case OptKind::Swap:
    case OptKind::Stage:
    case OptKind::Ahead:
    case OptKind::Upcast:
    case OptKind::Local: return {};
    default: return "the kernel is one of subgroups that multiply matrices";
  }
}

std::string matrix_copy_refusal(const Tiling& t, const Opt& o) {
  const Tiling::Operand& f = t.factors[size_t(o.axis)];
  if (f.product != t.matrices->reduce->src(0)) return "it is no factor of the matrices";
  const DType type = t.matrices->factor(f.source).value->dtype;
  if (t.target.held_bytes(type) != int64_t(size_bytes(type)))
    return "workgroup memory does not hold its elements as matrices have them";
  return {};
}

void take_matrix(Tiling& t, const Opt& o) {
  if (keeps_rows(t)) return take_row_matrices(t, o);
  const std::string none = matrix_product(
      t.ast, t, o.axis, t.target.matrix_shapes[size_t(o.amount)], t.matrices.emplace());
  TUFF_CHECK(none.empty(), "{}: {}", to_string(o), none);
  const MatrixShape& s = t.matrices->shape;
  const MatrixProduct& p = *t.matrices;
  const auto together = uint32_t(p.b.lines.interleaved);
  for (const auto& [axis, size] :
       {std::pair(p.m, s.m), {p.n, s.n}, {p.k, s.k / together}, {p.pair, together}}) {
    if (axis < 0) continue;
    Axis& x = t.axes[size_t(axis)];
    x.padded = x.main_size() % size != 0;
    x.parts[0].size = index_const(ceil_div(x.main_size(), int64_t(size)));
    x.parts.push_back({AxisKind::Matrix, index_const(size)});
  }
}

}  // namespace tuff::kernel

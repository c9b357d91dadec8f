#include "kernel/opt/build_row_matrices.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/kept_rows.h"
#include "kernel/analysis/ranges.h"
#include "kernel/opt/row_matrices.h"
#include "kernel/opt/stage_local.h"

namespace tuff::kernel {

using namespace ir;

namespace {

int32_t number_of(const Node* memory) { return memory->get<SharedArg>().number; }
int32_t row_number(const UOp& end) { return number_of(filled_memory(end.get())); }

}  // namespace

RowMatrixBuilder::RowMatrixBuilder(const Tiling& t, const std::vector<BuiltAxis>& built,
                                   std::vector<UOp> workgroup, int32_t& next_id,
                                   int32_t& next_memory)
    : t_(t),
      built_(built),
      workgroup_(std::move(workgroup)),
      next_id_(next_id),
      next_memory_(next_memory) {
  find_rows(row_of_subgroups(t));
  std::vector<Factor> once, each;
  for (const RowMatrices& m : t.row_matrices) {
    if (!m.kept) once.emplace_back(&m, true);
    each.emplace_back(&m, false);
  }
  copy(once, false);
  copy(each, true);
}

void RowMatrixBuilder::find_rows(int row) {
  UOpMap<UOp> of_workgroup;
  for (const UOp& r : built_[size_t(row)].ranges) {
    const AxisKind kind = kind_of(r.get());
    (kind == AxisKind::Group ? of_workgroup : group_rows_).emplace(r, index_const(0));
    if (kind == AxisKind::Lane) rows_.lanes.push_back(r);
  }
  const UOp& value = built_[size_t(row)].value;
  first_row_ = simplify(substitute(value, group_rows_));
  rows_.row = simplify(substitute(value, of_workgroup));
  rows_.count = rows_of_workgroup(t_, row);
  rows_.matrix_rows = int64_t(t_.row_matrices[0].product.shape.m);
  for (const UOp& r : workgroup_)
    if (kind_of(r.get()) == AxisKind::GroupReduce) rows_.shares = r;
  const int64_t own = rows_of_subgroup(t_, row), subgroups = rows_.count / own;
  const UOp subgroup = subgroups == 1 ? index_const(0)
                                      : make(Op::Special, DType::Index, {index_const(subgroups)},
                                             SpecialArg{'s', 1});
  rows_.first = subgroup * own;
  std::vector<UOp> lanes;
  rows_.fragment = lane(own / rows_.matrix_rows, lanes);
  TUFF_CHECK(rows_.shares, "invocations share rows");
  for (const BuiltAxis& b : built_)
    if (b.slab) slab_ = b.slab;
}

UOp RowMatrixBuilder::lane(int64_t size, std::vector<UOp>& lanes) {
  if (size == 1) return index_const(0);
  return lanes.emplace_back(range(index_const(size), next_id_++, AxisKind::Lane));
}

int64_t RowMatrixBuilder::size(int axis) const {
  const Axis& a = t_.axes[size_t(axis)];
  return a.slabs ? slab_elements(a) : a.range->src(0)->max;
}

// The element of an axis that stands so far inside of what a workgroup has of it at once.
UOp RowMatrixBuilder::inside(int axis, const UOp& within) const {
  const Axis& a = t_.axes[size_t(axis)];
  if (!a.slabs) return within;
  const UOp at = built_[size_t(axis)].slab * slab_elements(a) + within;
  const UOp& size = a.range->src(0);
  return a.padded ? where(lt(at, size), at, size - 1) : at;
}

// Of factors that are copied at one place, in lines along what is summed. `around`: in each slab.
void RowMatrixBuilder::copy(std::span<const Factor> factors, bool around) {
  if (factors.empty()) return;
  LocalTile tile;
  tile.together = [&target = t_.target](size_t bytes) { return target.elements_together(bytes); };
  if (around) tile.around = {slab_};
  tile.invocations = workgroup_;
  std::vector<UOp> values;
  std::vector<int64_t> ahead(factors.size(), 0);
  for (const auto& [m, left] : factors) {
    const MatrixProduct& p = m->product;
    const int across_axis = left ? p.m : p.n;
    const int64_t lines = left ? rows_.count : size(p.n);
    const UOp along = range(index_const(size(p.k)), next_id_++, AxisKind::ReduceLane),
              across = range(index_const(lines), next_id_++, AxisKind::Lane);
    UOpMap<UOp> at;
    for (size_t a = 0; a < built_.size(); a++) at.emplace(t_.axes[a].range, built_[a].value);
    at[t_.axes[size_t(p.k)].range] = inside(p.k, along);
    at[t_.axes[size_t(across_axis)].range] =
        left ? first_row_ + across : inside(across_axis, across);
    tile.inside.insert(tile.inside.end(), {across, along});
    tile.matrices.push_back({along, across, int64_t(left ? p.shape.m : p.shape.n)});
    const UOp& value = (left ? p.a : p.b).value;
    tile.element_bytes.push_back(t_.target.held_bytes(value->dtype));
    values.push_back(simplify(substitute(value, at)));
    copies_[{m, left}] = {{}, along, across};
  }
  const int32_t first = next_memory_;
  next_memory_ += int32_t(values.size());
  const std::vector<UOp> out = stage_local(values, ahead, tile, first, next_id_);
  for (size_t i = 0; i < out.size(); i++) copies_[factors[i]].load = out[i];
}

bool RowMatrixBuilder::keeps(const Node* memory) const {
  return std::ranges::any_of(t_.row_matrices, [&](const RowMatrices& m) {
    return (m.filled && row_number(m.filled) == number_of(memory)) ||
           (m.kept && row_number(m.kept) == number_of(memory));
  });
}
const RowMatrices* RowMatrixBuilder::filled(const Node* memory) const {
  for (const RowMatrices& m : t_.row_matrices)
    if (m.filled && row_number(m.filled) == number_of(memory)) return &m;
  return nullptr;
}

UOp RowMatrixBuilder::memory(const UOp& shared) const {
  const bool in_place = overwrites_scores(t_, t_.row_matrices);
  DType type = shared->dtype;
  int32_t number = number_of(shared.get());
  int64_t elements = 0;
  for (const RowMatrices& m : t_.row_matrices) {
    elements = size(m.filled ? m.product.n : m.product.k);
    if (m.filled && (in_place || filled(shared.get()) == &m)) {
      type = m.element->dtype;
      number = row_number(m.filled);
    } else if (m.kept && !in_place && row_number(m.kept) == number) {
      type = m.product.shape.a;
    }
  }
  const UOp row = make(Op::Shared, type, {}, SharedArg{number, elements});
  return make(Op::Shared, type, {}, SharedArg{number, rows_.count * row_pitch(row)});
}

namespace {

// From one row to the next, in memory of so many.
int64_t pitch_in(const UOp& memory, int64_t rows) { return memory->get<SharedArg>().count / rows; }

UOp memory_below(const UOp& x) { return UOp(without_after(x.get())); }

}  // namespace

UOp RowMatrixBuilder::element(const UOp& memory, const UOp& within) const {
  const UOp place =
      make_index(memory, rows_.row * pitch_in(memory_below(memory), rows_.count) + within);
  return place;
}

const RowMatrices* RowMatrixBuilder::of_reduce(const UOp& reduce) const {
  for (const RowMatrices& m : t_.row_matrices)
    if (m.product.reduce == reduce) return &m;
  return nullptr;
}

// The matrix of a copied factor that begins at that line, or row of lines, and that step.
UOp RowMatrixBuilder::load(const UOp& copy, const RowMatrices& m, bool left, const UOp& line,
                           const UOp& step) const {
  const Copy& c = copies_.at({&m, left});
  const UOp& index = copy->src(0);
  const UOp at = simplify(substitute(index->src(1), {{c.along, step}, {c.across, line}}));
  const MatrixShape& s = m.product.shape;
  MatrixArg arg{left ? MatrixUse::A : MatrixUse::B, int32_t(left ? s.m : s.k),
                int32_t(left ? s.k : s.n)};
  const auto place = [&](int64_t at) {
    return simplify(substitute(index->src(1),
                               {{c.along, index_const(0)}, {c.across, index_const(at)}}));
  };
  arg.stride = place(1)->const_int() - place(0)->const_int();
  arg.by_columns = !left;
  return make(Op::MatrixLoad, copy->dtype, {make_index(index->src(0), at)}, arg);
}

UOp RowMatrixBuilder::sums(const RowMatrices& m, const UOp& product) {
  const MatrixProduct& p = m.product;
  const MatrixShape& s = p.shape;
  Sum& sum = sums_[&m];
  const int64_t fragments = rows_.fragment->op == Op::Range ? rows_.fragment->src(0)->max : 1;
  if (m.filled) {
    sum.row = lane(fragments, sum.lanes);
  } else {
    sum.row = rows_.fragment;
    if (fragments > 1) sum.lanes.push_back(sum.row);
  }
  sum.column = lane(size(p.n) / int64_t(s.n), sum.lanes);
  const UOp step =
      range(index_const(size(p.k) / int64_t(s.k)), next_id_++, AxisKind::Reduce);
  const UOp row = rows_.first + sum.row * int64_t(s.m), column = sum.column * int64_t(s.n),
            at = step * int64_t(s.k);
  UOp left;
  if (m.kept) {
    const Node* element = through_casts(product->src(size_t(p.a.source)).get());
    const UOp& memory = element->src(0)->src(0);
    MatrixArg arg{MatrixUse::A, int32_t(s.m), int32_t(s.k)};
    arg.stride = pitch_in(memory_below(memory), rows_.count);
    left = make(Op::MatrixLoad, memory->dtype, {make_index(memory, row * arg.stride + at)}, arg);
  } else {
    left = load(copies_.at({&m, true}).load, m, true, row, at);
  }
  const UOp right = load(copies_.at({&m, false}).load, m, false, column, at);
  const MatrixArg arg{MatrixUse::Sum, int32_t(s.m), int32_t(s.n)};
  const UOp products = make(Op::MatrixMulAdd, s.sum, {left, right}, arg);
  std::vector<UOp> closed;
  if (m.kept) closed.push_back(slab_);
  closed.push_back(step);
  return sum.value =
             make(Op::Reduce, s.sum, sources(products, closed), ReduceArg{Op::Add, {}});
}

UOp RowMatrixBuilder::end(const UOp& old, const UOp& store, std::span<const UOp> ranges) {
  for (const RowMatrices& m : t_.row_matrices) {
    if (m.filled == old) return filled_with_sums(m);
    if (m.kept == old) return fill(old, store, ranges);
    if (!m.filled && old->src(0)->src(0)->src(0)->op == Op::Param) return stored(m, store, ranges);
  }
  return {};
}

// What a row holds of its sums, of the matrix of these.
UOp RowMatrixBuilder::held(const RowMatrices& m, const UOp& element, const UOp& sums) {
  if (element == m.product.reduce) return sums;
  if (element->op == Op::Cast) return cast(held(m, element->src(0), sums), element->dtype);
  const bool scaled_by_second = element->src(1)->is_const();
  const UOp &scale = element->src(scaled_by_second), &rest = element->src(!scaled_by_second);
  const MatrixShape& s = m.product.shape;
  const UOp all = make(Op::MatrixFill, s.sum, {scale},
                       MatrixArg{MatrixUse::Sum, int32_t(s.m), int32_t(s.n)});
  return make(Op::Mul, s.sum, {held(m, rest, sums), all});
}

UOp RowMatrixBuilder::filled_with_sums(const RowMatrices& m) {
  const MatrixShape& s = m.product.shape;
  const Sum& sum = sums_.at(&m);
  const UOp memory = this->memory(UOp(filled_memory(m.filled.get())));
  MatrixArg arg{MatrixUse::Sum, int32_t(s.m), int32_t(s.n)};
  arg.stride = pitch_in(memory, rows_.count);
  const UOp place = make_index(make_after(memory, {make_barrier({slab_})}),
                               (rows_.first + sum.row * int64_t(s.m)) * arg.stride +
                                   sum.column * int64_t(s.n));
  const UOp store =
      make(Op::MatrixStore, DType::Void, {place, held(m, m.element, sum.value)}, arg);
  return make_barrier({make_end(store, sum.lanes)});
}

// Past the end of the last slab there is nothing to multiply.
UOp RowMatrixBuilder::fill(const UOp& old, const UOp& store, std::span<const UOp> ranges) {
  const int axis = axis_of(t_, old->src(1).get());
  const BuiltAxis& b = built_[size_t(axis)];
  const UOp memory = this->memory(UOp(filled_memory(old.get())));
  UOp value = store->src(1)->op == Op::Cast ? store->src(1)->src(0) : store->src(1);
  value = cast(value, memory->dtype);
  if (b.valid) value = where(b.valid, value, constant(Scalar::of_int(value->dtype, 0)));
  const UOp place = element(make_after(memory, {make_barrier({slab_})}), b.within);
  return make_barrier({make_end(make_store(place, value), ranges, rows_.lanes)});
}

UOp RowMatrixBuilder::stored(const RowMatrices& m, const UOp& store,
                             std::span<const UOp> ranges) {
  const Sum& sum = sums_.at(&m);
  UOp sums = sum.value;
  if (!(m.scaled == m.product.reduce)) {
    const auto takes_sums = [&](const Node* n) { return contains(n->src(), sum.value); };
    const std::vector<const Node*> made = toposort(store);
    const Node* scaled = *std::ranges::find_if(made, takes_sums);
    const UOp& factor = scaled->src(scaled->src(0) == sum.value ? 1 : 0);
    const MatrixShape& s = m.product.shape;
    const MatrixArg arg{MatrixUse::Sum, int32_t(s.m), int32_t(s.n)};
    sums = make(Op::Mul, sums->dtype, {sums, rows_.matrix(factor, arg, next_memory_++, {})});
  }
  sums = cast(sums, m.element->dtype);
  std::vector<UOp> launch;
  for (const UOp& r : ranges)
    if (is_launch(kind_of(r.get()))) launch.push_back(r);
  return m.product.stored ? stored_as_matrices(m, sums, launch)
                          : stored_by_elements(m, sums, launch);
}

UOpMap<UOp> RowMatrixBuilder::places(const MatrixProduct& p, const UOp& row,
                                     const UOp& column) const {
  UOpMap<UOp> at;
  for (size_t a = 0; a < built_.size(); a++) at.emplace(t_.axes[a].range, built_[a].value);
  at[t_.axes[size_t(p.m)].range] = first_row_ + row;
  at[t_.axes[size_t(p.n)].range] = column;
  return at;
}

UOp RowMatrixBuilder::stored_as_matrices(const RowMatrices& m, const UOp& sums,
                                         std::span<const UOp> launch) const {
  const MatrixProduct& p = m.product;
  const Sum& sum = sums_.at(&m);
  const UOp& index = t_.ast->src(0)->src(0)->src(0);
  const UOpMap<UOp> at = places(p, rows_.first + sum.row * int64_t(p.shape.m),
                                sum.column * int64_t(p.shape.n));
  MatrixArg arg{MatrixUse::Sum, int32_t(p.shape.m), int32_t(p.shape.n)};
  arg.stride = p.stored->stride;
  const UOp place = make_index(index->src(0), simplify(substitute(index->src(1), at)));
  return make_end(make(Op::MatrixStore, DType::Void, {place, sums}, arg), launch, sum.lanes);
}

// By way of workgroup memory: runs of neighbours by neighbouring invocations. What the workgroup
// before has stored of rows that both have is left.
UOp RowMatrixBuilder::stored_by_elements(const RowMatrices& m, const UOp& sums,
                                         std::span<const UOp> launch) {
  const MatrixProduct& p = m.product;
  const Sum& sum = sums_.at(&m);
  const int64_t width = size(p.n);
  const int32_t number = next_memory_++;
  const UOp line = make(Op::Shared, sums->dtype, {}, SharedArg{number, width});
  const int64_t pitch = row_pitch(line);
  const UOp memory = make(Op::Shared, sums->dtype, {}, SharedArg{number, rows_.count * pitch});
  MatrixArg arg{MatrixUse::Sum, int32_t(p.shape.m), int32_t(p.shape.n)};
  arg.stride = pitch;
  const UOp place = make_index(memory, (rows_.first + sum.row * int64_t(p.shape.m)) * pitch +
                                           sum.column * int64_t(p.shape.n));
  const UOp store = make(Op::MatrixStore, DType::Void, {place, sums}, arg);
  const UOp complete = make_after(memory, {make_barrier({make_end(store, sum.lanes)})});

  const int64_t invocations = extent(workgroup_), each = rows_.count * width / invocations,
                together = std::gcd(std::gcd<int64_t>(width, 4), each);
  std::vector<UOp> elements;
  const UOp neighbour = lane(together, elements);
  UOp run = index_const(0);
  if (each > together) {
    run = range(index_const(each / together), next_id_++, AxisKind::Loop);
    elements.insert(elements.begin(), run);
  }
  for (const UOp& r : workgroup_) run = run * r->src(0) + r;
  const UOp row = floordiv(run, index_const(width / together)),
            column = floormod(run, index_const(width / together)) * together + neighbour;
  UOpMap<UOp> at = places(p, row, column);
  at.emplace(m.element, make_load(make_index(complete, row * pitch + column)));
  const UOp& whole = t_.ast->src(0)->src(0);
  UOp out = simplify(substitute(whole, at));
  if (const BuiltAxis& b = built_[size_t(p.m)]; b.first) {
    const UOp own = lt(substitute(b.first, group_rows_) - 1, first_row_ + row);
    out = make(Op::Store, DType::Void, {with_gate(out->src(0), simplify(own)), out->src(1)},
               out->arg);
  }
  std::vector<UOp> closed(launch.begin(), launch.end());
  for (const UOp& r : workgroup_) add_once(closed, r);
  return make_end(out, closed, elements);
}

}  // namespace tuff::kernel

// Sums of products of kernels that keep rows, by cooperative matrices (docs/design/attention.md):
// which of them can be, once rows are shared out. A subgroup holds whole rows, whose sums reach the
// invocations through the row that they fill, and stay in its registers where they are stored.
#include "kernel/opt/row_matrices.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/contains.h"
#include "ir/kept_rows.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/access.h"
#include "kernel/analysis/kept_rows.h"
#include "kernel/analysis/ranges.h"
#include "kernel/lowered.h"
#include "kernel/opt/matrices.h"

namespace tuff::kernel {

using namespace ir;

int row_of_subgroups(const Tiling& t) {
  int found = -1;
  for (int a = 0; a < int(t.axes.size()); a++) {
    const Axis& axis = t.axes[size_t(a)];
    if (axis.reduced || axis.column || axis.kept) continue;
    for (const AxisPart& p : axis.parts) {
      if (p.kind != AxisKind::Local && p.kind != AxisKind::Lane) continue;
      if (found >= 0 && found != a) return -1;
      found = a;
    }
  }
  return found;
}

int64_t rows_of_workgroup(const Tiling& t, int row) {
  int64_t n = 1;
  for (const AxisPart& p : t.axes[size_t(row)].parts)
    n *= p.kind == AxisKind::Local || p.kind == AxisKind::Lane ? p.size->max : 1;
  return n;
}

int64_t rows_of_subgroup(const Tiling& t, int row) {
  const int64_t shares = columns_together(t);
  return int64_t(t.target.subgroup_size) / shares * t.axes[size_t(row)].lanes();
}

int64_t slab_elements(const Axis& axis) {
  int64_t n = 1;
  for (const AxisPart& p : std::span(axis.parts).subspan(1)) n *= p.size->max;
  return n;
}

namespace {

// Ends and reductions that read elements of that memory, and not below others.
std::vector<const Node*> readers_of(const UOp& ast, const Node* memory) {
  const auto enters = [](const Node* n) { return n->op != Op::End && n->op != Op::Reduce; };
  std::vector<const Node*> out;
  for (const Node* n : toposort(ast)) {
    if (enters(n)) continue;
    const std::vector<UOp> value{n->op == Op::End ? n->src(0)->src(1) : n->src(0)};
    const auto reads = [&](const Node* x) { return accessed_memory(x) == memory; };
    if (std::ranges::any_of(toposort_gated(value, enters), reads)) out.push_back(n);
  }
  return out;
}

}  // namespace

// Each invocation reads, and then stores, the same elements: the maximum's are its own as well.
bool overwrites_scores(const Tiling& t, std::span<const RowMatrices> all) {
  const auto filled = std::ranges::find_if(all, [](auto& m) { return bool(m.filled); });
  const auto kept = std::ranges::find_if(all, [](auto& m) { return bool(m.kept); });
  if (filled == all.end() || kept == all.end() ||
      filled->element->dtype != kept->product.shape.a)
    return false;
  const auto parts = [&](const UOp& range) {
    return t.axes[size_t(axis_of(t, range.get()))].parts;
  };
  const std::vector<AxisPart> own = parts(kept->kept->src(1));
  const auto alike = [](const AxisPart& a, const AxisPart& b) {
    return a.size == b.size && is_lane(a.kind) == is_lane(b.kind) &&
           is_loop(a.kind) == is_loop(b.kind);
  };
  const auto takes_own = [&](const Node* n) {
    if (n == kept->kept.get()) return true;
    return n->op == Op::Reduce && n->get<ReduceArg>().op == Op::Max && n->src_count == 2 &&
           std::ranges::equal(parts(n->src(1)), own, alike);
  };
  return std::ranges::all_of(readers_of(t.ast, filled_memory(filled->filled.get())), takes_own);
}

namespace {

bool walks(const UOp& x, const Tiling& t, int axis) {
  return depends_on(x, t.axes[size_t(axis)].range);
}

bool all_lanes(const Axis& axis) {
  return std::ranges::all_of(axis.parts, [](const AxisPart& p) {
    return p.kind == AxisKind::Lane || p.size->is_const_int(1);
  });
}

// The kept row that a factor is, if it is filled with numbers of that dtype; empty: another factor.
UOp narrow_row(const UOp& factor, const UOp& column, DType type) {
  const Node* fill = fill_read_by(factor.get());
  if (!fill || !(factor->src(0)->src(1) == column)) return {};
  const UOp& value = fill->src(0)->src(1);
  const bool narrow = value->op == Op::Cast && value->src(0)->dtype == type;
  return narrow ? UOp(fill) : UOp();
}

// The fill of a row whose elements are each made of one of these sums.
UOp row_filled_with(const UOp& ast, const UOp& sum) {
  UOp found;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::End || !contains(nodes_of(n->src(0)->src(1)), sum.get())) continue;
    if (found || !fills_row(n)) return {};
    found = UOp(n);
  }
  return found;
}

// What is made of `x`, if that is one value; empty: several are.
UOp only_user(const UOp& value, const UOp& x) {
  UOp found;
  for (const Node* n : nodes_of(value)) {
    if (!contains(n->src(), x)) continue;
    if (found) return {};
    found = UOp(n);
  }
  return found;
}

// What `x` is rounded to, if nothing else is made of it; else `x`.
UOp rounded_of(const UOp& value, const UOp& x, DType narrow) {
  const UOp user = only_user(value, x);
  return user && user->op == Op::Cast && user->dtype == narrow ? user : x;
}

// What a row that is filled with these sums holds: what they are rounded to, scaled or at once, if
// that is all that its elements are made of.
UOp held_of(const UOp& fill, const UOp& sum, DType narrow) {
  const UOp& value = fill->src(0)->src(1);
  const UOp user = only_user(value, sum);
  const bool scaled = user && user->op == Op::Mul &&
                      (user->src(0)->is_const() || user->src(1)->is_const());
  const UOp held = rounded_of(value, scaled ? user : sum, narrow);
  return held->op == Op::Cast ? held : sum;
}

std::string scores_refusal(const Tiling& t, int row, RowMatrices& out) {
  MatrixProduct& p = out.product;
  const UOp& product = p.reduce->src(0);
  out.filled = row_filled_with(t.ast, p.reduce);
  if (!out.filled || out.filled->src_count != 2) return "the sums fill no row";
  out.element = held_of(out.filled, p.reduce, DType::F16);
  p.m = row, p.n = axis_of(t, out.filled->src(1).get());
  p.k = axis_of(t, p.reduce->src(1).get());
  if (t.axes[size_t(p.k)].parts.size() > 1 || !t.axes[size_t(p.k)].main_is_const())
    return "the axis of the sum is split";
  for (const int left : {0, 1}) {
    const UOp &x = product->src(size_t(left)), &y = product->src(size_t(1 - left));
    if (walks(x, t, p.n) || walks(y, t, row)) continue;
    p.a = {narrow_factor(x), true, {}, left};
    p.b = {narrow_factor(y), true, {}, 1 - left};
    if (t.axes[size_t(p.k)].main_size() % p.shape.k != 0 ||
        t.axes[size_t(p.k)].main_size() < 2 * int64_t(p.shape.k))
      return "the shape does not divide the sum";
    for (const UOp& f : {x, y})
      if (std::string why = factor_refusal(f, p.shape.a); !why.empty()) return why;
    return {};
  }
  return "both factors walk rows, or both columns";
}

// The sums, each times what its row has in common, where that is all that is made of them.
UOp scaled_by_row(const Tiling& t, const MatrixProduct& p, const UOp& value) {
  const UOp user = only_user(value, p.reduce);
  if (!user || user->op != Op::Mul) return p.reduce;
  const UOp& factor = user->src(user->src(0) == p.reduce ? 1 : 0);
  const bool of_row = !walks(factor, t, p.n) && !contains(toposort(factor), p.reduce.get());
  return of_row ? user : p.reduce;
}

// How what is stored lies, if as matrices do.
std::optional<MatrixLines> stored_lines(const Tiling& t, const MatrixProduct& p,
                                        const UOp& store) {
  if (store->src_count > 2 || store->src(0)->src_count > 2 || t.axes[size_t(p.m)].padded) return {};
  constexpr int64_t kAlignment = 8;  // elements: 16 bytes of the narrowest
  const LinearForm place = linear_form(store->src(0)->src(1));
  if (place.constant % kAlignment != 0) return {};
  for (const auto& [term, step] : place.terms) {
    const int axis = term->op == Op::Range ? axis_of(t, term.get()) : -1;
    const bool irregular = axis < 0 && (walks(term, t, p.n) || walks(term, t, p.m));
    if (irregular || (axis == p.n ? step != 1 : step % kAlignment != 0)) return {};
  }
  const auto line = coefficient(store->src(0)->src(1), t.axes[size_t(p.m)].range);
  return line && *line > 0 ? std::optional(MatrixLines{*line, false}) : std::nullopt;
}

// Sums are stored as matrices where nothing but a rounding follows them; else by elements.
std::string stored_refusal(const Tiling& t, RowMatrices& out) {
  MatrixProduct& p = out.product;
  if (t.ast->src_count != 1) return "the kernel stores something besides";
  const UOp &store = t.ast->src(0)->src(0), &value = store->src(1);
  out.scaled = scaled_by_row(t, p, value);
  out.element = rounded_of(value, out.scaled, DType::F16);
  const std::vector<UOp> stored{value, store->src(0)};
  for (const Node* n : toposort_gated(stored, [&](const Node* x) { return x != out.scaled.get(); }))
    if (n != out.scaled.get() && (n->op == Op::Reduce || n->op == Op::Shared))
      return "what is stored needs other sums besides";
  if (value == out.element) p.stored = stored_lines(t, p, store);
  return {};
}

std::string result_refusal(const Tiling& t, int row, RowMatrices& out) {
  MatrixProduct& p = out.product;
  const UOp& product = p.reduce->src(0);
  p.m = row, p.k = axis_of(t, p.reduce->src(1).get());
  for (const int left : {0, 1}) {
    const UOp &x = product->src(size_t(left)), &y = product->src(size_t(1 - left));
    out.kept = narrow_row(x, p.reduce->src(1), p.shape.a);
    if (!out.kept) continue;
    if (walks(y, t, row)) return "both factors walk rows";
    if (std::string why = factor_refusal(y, p.shape.b); !why.empty()) return why;
    for (int a = 0; a < int(t.axes.size()); a++) {
      if (!t.axes[size_t(a)].column || t.axes[size_t(a)].kept || !walks(y, t, a)) continue;
      if (p.n >= 0) return "the columns are of several axes";
      p.n = a;
    }
    if (p.n < 0 || !all_lanes(t.axes[size_t(p.n)])) return "not all columns are lanes";
    if (t.axes[size_t(p.n)].lanes() % int64_t(p.shape.n) != 0)
      return "the shape does not divide the columns";
    p.a = {x, true, {}, left};
    p.b = {narrow_factor(y), true, {}, 1 - left};
    return stored_refusal(t, out);
  }
  return "no factor is a row of the shape's dtype";
}

// Whether the rows of subgroups are whole matrices.
std::string rows_refusal(const Tiling& t, int row, const MatrixShape& s) {
  const int64_t lanes = t.target.subgroup_size, shares = columns_together(t);
  if (row < 0) return "no axis, or several, are shared out as rows";
  const Axis& rows = t.axes[size_t(row)];
  const auto begins_early = [&] {
    return rows.lanes() > 1 && rows_of_workgroup(t, row) <= rows.range->src(0)->min &&
           !reads_any(t.ast, stored_params(t.ast));
  };
  if (rows.padded && !begins_early()) return "the last tile of rows is not whole";
  for (int a = 0; a < int(t.axes.size()); a++) {
    const Axis& axis = t.axes[size_t(a)];
    const AxisKind main = axis.parts[size_t(axis.main)].kind;
    const bool around = !axis.reduced && !axis.column && !axis.kept;
    if (around && main != AxisKind::Group && !axis.parts[size_t(axis.main)].size->is_const_int(1))
      return "a loop is left around the rows";
    const auto holds_rows = [](const AxisPart& p) {
      return p.kind == AxisKind::Group || p.kind == AxisKind::Local || p.kind == AxisKind::Lane ||
             p.size->is_const_int(1);
    };
    if (a == row && !std::ranges::all_of(axis.parts, holds_rows))
      return "rows are a loop's, or a vector's";
  }
  if (shares < 2 || lanes % shares != 0 || local_size(t) % lanes != 0)
    return "a subgroup does not hold whole rows";
  if (rows_of_subgroup(t, row) % s.m != 0) return "a subgroup does not hold whole matrices of rows";
  return {};
}

int64_t kept_bytes(const Tiling& t, int64_t elements, int row, DType type) {
  const UOp memory = make(Op::Shared, type, {}, SharedArg{0, elements});
  return rows_of_workgroup(t, row) * row_pitch(memory) * int64_t(size_bytes(type));
}
int64_t kept_bytes(const Tiling& t, const UOp& fill, int row, DType type) {
  return kept_bytes(t, slab_elements(t.axes[size_t(axis_of(t, fill->src(1).get()))]), row, type);
}

// Of rows, of copied factors and of what is stored by elements, where these are all that are
// multiplied.
int64_t memory_bytes(const Tiling& t, std::span<const RowMatrices> all) {
  constexpr int64_t kPad = 16;  // of each line, and between those of two matrices
  int64_t bytes = 0;
  for (const RowMatrices& m : all) {
    const MatrixProduct& p = m.product;
    const int64_t rows = rows_of_workgroup(t, p.m), narrow = int64_t(size_bytes(p.shape.a));
    const auto size = [&](int a) {
      const Axis& axis = t.axes[size_t(a)];
      return axis.slabs ? slab_elements(axis) : axis.range->src(0)->max;
    };
    const int64_t lines = (m.kept ? 0 : rows) + size(p.n);
    bytes += lines * (size(p.k) * narrow + kPad) + kPad * (lines / int64_t(p.shape.n)) + 4 * rows +
             4 * kSharedAlignment;
    if (m.filled) bytes += kept_bytes(t, m.filled, p.m, m.element->dtype);
    if (m.kept && !overwrites_scores(t, all)) bytes += kept_bytes(t, m.kept, p.m, p.shape.a);
    if (m.kept && !p.stored)
      bytes += kept_bytes(t, size(p.n), p.m, m.element->dtype) + kSharedAlignment;
  }
  // Rows that are kept as in any other kernel.
  const size_t others = size_t(std::ranges::count_if(
      t.stored, [](const Tiling::Stored& s) { return s.kept_bytes > 0; }));
  const size_t own = size_t(std::ranges::count_if(all, [](auto& m) { return bool(m.filled); }) +
                            std::ranges::count_if(all, [](auto& m) { return bool(m.kept); }));
  return bytes + (others > own ? workgroup_bytes(t) : 0);
}

}  // namespace

std::string row_matrices(const Tiling& t, int number, const MatrixShape& shape, RowMatrices& out) {
  if (number < 0 || 2 * size_t(number) + 1 >= t.factors.size()) return "no such sum of products";
  const int row = row_of_subgroups(t);
  if (std::string why = rows_refusal(t, row, shape); !why.empty()) return why;
  const UOp& product = t.factors[2 * size_t(number)].product;
  RowMatrices m;
  m.product.shape = shape;
  m.product.reduce = sum_of(t.ast, product);
  if (!m.product.reduce) return "the products are converted before they are summed";
  if (product->dtype != shape.sum || m.product.reduce->src_count != 2)
    return "the sum has another dtype, or several axes";
  const int summed = axis_of(t, m.product.reduce->src(1).get());
  const bool result = contains(t.slab_axes, summed);
  if (std::string why = result ? result_refusal(t, row, m) : scores_refusal(t, row, m);
      !why.empty())
    return why;
  const Axis& slabs = t.axes[size_t(result ? m.product.k : m.product.n)];
  const int64_t elements = slabs.slabs ? slab_elements(slabs) : 0;
  if (elements < 2 * int64_t(shape.k) || elements % shape.k != 0 || elements % shape.n != 0)
    return "the shape does not divide a slab of the rows";
  out = std::move(m);
  return {};
}

std::string row_matrix_refusal(const Tiling& t, const Opt& o) {
  const MatrixShape& shape = t.target.matrix_shapes[size_t(o.amount)];
  if (t.target.held_bytes(shape.a) != int64_t(size_bytes(shape.a)))
    return "workgroup memory does not hold factors as matrices have them";
  if (!t.staged.empty()) return "what is staged has been copied for the loops as they are";
  RowMatrices m;
  if (std::string why = row_matrices(t, o.axis, shape, m); !why.empty()) return why;
  std::vector<RowMatrices> all = t.row_matrices;
  for (const RowMatrices& other : all) {
    if (other.product.reduce == m.product.reduce) return "the sum is one of matrices already";
    if (!(other.product.shape == shape)) return "another sum is one of another shape";
  }
  all.push_back(std::move(m));
  const int64_t bytes = memory_bytes(t, all);
  if (bytes > int64_t(t.target.shared_bytes)) return "workgroup memory does not hold the copies";
  return {};
}

void take_row_matrices(Tiling& t, const Opt& o) {
  RowMatrices m;
  const std::string none = row_matrices(t, o.axis, t.target.matrix_shapes[size_t(o.amount)], m);
  TUFF_CHECK(none.empty(), "{}: {}", to_string(o), none);
  t.row_matrices.push_back(std::move(m));
}

}  // namespace tuff::kernel

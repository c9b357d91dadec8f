#include "sched/kept_chain.h"

#include <algorithm>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/shown_columns.h"
#include "ir/symbolic.h"
#include "sched/call_graph.h"
#include "sched/loops.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace ir;

namespace {

bool is_product(const Node* reduce) {
  return reduce->get<ReduceArg>().op == Op::Add && reduce->src_count == 2 &&
         through_casts(reduce->src(0).get())->op == Op::Mul;
}

// Of rows of a symbolic length and vectors, none of which two of them share: as an attention's of a
// single query for each head. What it multiplies is read once, and so are rows.
bool is_symbolic_vectors(const Node* reduce) {
  if (!is_product(reduce)) return false;
  const Node* product = through_casts(reduce->src(0).get());
  std::vector<UOp> walked = ranges_below(UOp(product), AxisKind::Loop);
  const bool repeats = std::ranges::any_of(product->src(), [&](const UOp& factor) {
    return ranges_below(factor, AxisKind::Loop).size() < walked.size();
  });
  walked.push_back(closed_ranges(reduce)[0]);
  const auto is_symbolic = [](const UOp& r) { return !r->src(0)->is_const(); };
  return repeats && std::ranges::any_of(walked, is_symbolic);
}

std::vector<UOp> loops_of(const UOp& end) {
  const auto own = closed_ranges(end.get());
  return {own.begin(), own.end()};
}

// One End over all elements, the others over some of its loops; nothing gated.
bool find_ends(const UOp& ast, MatrixKernel& out) {
  for (const UOp& end : ast->src()) {
    if (!out.end || end->src_count > out.end->src_count) out.end = end;
  }
  out.loops = loops_of(out.end);
  for (const UOp& end : ast->src()) {
    if (end->src(0)->src(0)->src_count > 2) return false;
    if (end == out.end) continue;
    const std::vector<UOp> own = loops_of(end);
    const auto is_ours = [&](const UOp& r) { return contains(out.loops, r); };
    if (own.size() >= out.loops.size() || !std::all_of(own.begin(), own.end(), is_ours))
      return false;
    out.values.push_back(end);
  }
  return true;
}

}  // namespace

MatrixKernel with_loop_split(const MatrixKernel& p, const UOp& loop, int64_t n) {
  const std::vector<UOp> ends = sources(p.end, p.values);
  const int32_t id = free_range_id(ends);
  const UOp outer = range(index_const(loop->src(0)->const_int() / n), id, AxisKind::Loop),
            inner = range(index_const(n), id + 1, AxisKind::Loop);
  const std::vector<UOp> moved =
      with_loops(ends, {{loop, outer * n + inner}}, loop, std::vector<UOp>{outer, inner});
  MatrixKernel out = p;
  out.end = moved[0];
  out.values.assign(moved.begin() + 1, moved.end());
  out.loops = loops_of(out.end);
  return out;
}

MatrixKernel matrix_kernel_of(const Call& c) {
  MatrixKernel out;
  if (c.kind != CallKind::Kernel) return out;
  const UOp ast = slot_ast(c);
  if (!find_ends(ast, out)) return out;
  out.writes = slot_of(out.end->src(0)->src(0));
  size_t reductions = 0, streamed = 0;
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::Shared) return out;
    if (is_ordered(n) || (n->op == Op::Store && n->src(0)->src_count > 2)) return out;
    if (n->op != Op::Reduce) continue;
    reductions++;
    const bool vectors = is_symbolic_vectors(n);
    if (!vectors && is_streamed(n, ranges_below(UOp(n), AxisKind::Loop))) {
      streamed++;
    } else if (is_product(n)) {
      out.product = n;
    }
  }
  CallAccess a = access_of(c);
  for (uint32_t w : a.writes) {
    if (contains(a.reads, w)) return out;  // in place
  }
  out.reads = std::move(a.reads);
  out.rows = reductions > 0 && streamed == reductions;
  if (reductions != 1 || streamed != 0 || !out.values.empty()) out.product = nullptr;
  out.elements = reductions == 0;
  out.possible = out.rows || out.elements || out.product;
  return out;
}

UOp column_of(const MatrixKernel& rows) {
  std::set<const Node*> reduced;
  for (const Node* n : toposort(rows.end)) {
    if (n->op != Op::Reduce) continue;
    for (const UOp& r : ranges_below(UOp(n), AxisKind::Loop)) reduced.insert(r.get());
  }
  UOp column;
  for (const UOp& r : rows.loops) {
    if (reduced.count(r.get())) continue;
    if (column) return {};
    column = r;
  }
  return column;
}

MatrixKernel by_element(const MatrixKernel& rows) {
  UOpMap<UOp> read;
  for (const UOp& v : rows.values) {
    const UOp& index = v->src(0)->src(0);
    read.emplace(v->src(0)->src(1), make_load(index));
  }
  MatrixKernel out = rows;
  out.end = make_end(substitute(rows.end->src(0), read), rows.loops);
  out.values.clear();
  return out;
}

namespace {

bool is_load(const UOp& x) { return x->op == Op::Load && x->src(0)->src_count == 2; }

// What an element of a slot is made of, in the loops that its load is in; empty: not by these.
UOp stored_at(const UOp& load, const UOp& end) {
  const std::optional<UOpMap<UOp>> at = loops_at(end, load->src(0)->src(1));
  return at ? simplify(substitute(end->src(0)->src(1), *at)) : UOp();
}

// Where `max` is the maximum of the row that `score` is an element of: the loop along that row.
UOp row_of_maximum(const UOp& score, const UOp& max, std::span<const MatrixKernel* const> rows) {
  for (const MatrixKernel* k : rows) {
    for (const UOp& v : k->values) {
      if (slot_of(v->src(0)->src(0)) != slot_of(max->src(0))) continue;
      const UOp value = stored_at(max, v);
      if (!value || value->op != Op::Reduce || value->get<ReduceArg>().op != Op::Max) return {};
      const auto closed = closed_ranges(value.get());
      for (const UOp& c : ranges_below(score, AxisKind::Loop)) {
        if (closed.size() == 1 && simplify(substitute(value->src(0), {{closed[0], c}})) == score)
          return c;
      }
    }
  }
  return {};
}

// The score, where a mask hides it in some elements of each row but not in all; empty: another.
UOp masked_score(const Node* exponential, std::span<const MatrixKernel* const> products,
                 std::span<const MatrixKernel* const> rows) {
  UOp x = exponential->src(0);
  if (x->op == Op::Mul && x->src(1)->is_const()) {
    if (x->src(1)->get<Scalar>().as_double() <= 0) return {};
    x = x->src(0);
  }
  if (x->op != Op::Sub || !is_load(x->src(0)) || !is_load(x->src(1))) return {};
  const UOp &score = x->src(0), column = row_of_maximum(score, x->src(1), rows);
  const auto stores = [&](const MatrixKernel* p) { return p->writes == slot_of(score->src(0)); };
  const auto product = std::ranges::find_if(products, stores);
  if (!column || product == products.end()) return {};
  const UOp value = stored_at(score, (*product)->end);
  if (!value || value->op != Op::Where) return {};
  const ShownColumns shown = shown_scores(value, column);
  return shown.end && shown.end->min >= 1 ? value : UOp();
}

}  // namespace

MatrixKernel with_hidden_zero(const MatrixKernel& elements,
                              std::span<const MatrixKernel* const> products,
                              std::span<const MatrixKernel* const> rows) {
  UOpMap<UOp> shown;
  for (const Node* n : toposort(elements.end)) {
    const UOp masked = n->op == Op::Exp2 ? masked_score(n, products, rows) : UOp();
    if (!masked) continue;
    const UOp zero = constant(Scalar::of_int(n->dtype, 0)), value(n);
    const bool names_hidden = masked->src(1)->is_const();
    shown.emplace(value, names_hidden ? where(masked->src(0), zero, value)
                                      : where(masked->src(0), value, zero));
  }
  MatrixKernel out = elements;
  out.end = make_end(substitute(elements.end->src(0), shown), elements.loops);
  return out;
}

bool is_factor(const Node* product, uint32_t slot) {
  for (const UOp& f : through_casts(product->src(0).get())->src()) {
    const Node* x = through_casts(f.get());
    if (x->op == Op::Load && slot_of(x->src(0)) == slot) return true;
  }
  return false;
}

void put_rows_outermost(MatrixKernel& p, std::span<const uint32_t> matrices) {
  std::vector<UOp> walked;
  for (const Node* n : toposort(p.end)) {
    if (n->op != Op::Load || !contains(matrices, slot_of(n->src(0)))) continue;
    for (const UOp& r : ranges_below(n->src(0), AxisKind::Loop)) walked.push_back(r);
  }
  std::ranges::stable_partition(p.loops, [&](const UOp& r) { return contains(walked, r); });
  p.end = make_end(p.end->src(0), p.loops);
}

// What is read of a slot: all loads are of the same rows, each of them walks the columns by a range
// of its own.
struct Chain::RowRead {
  std::vector<std::pair<UOp, UOp>> loads;  // and the column they read
  UOpMap<UOp> rows;                        // of the producer's loops, in the reader's
  UOp column;                              // the producer's loop
};

Chain::Chain(std::span<const MatrixKernel* const> last, bool values) : loops_(last[0]->loops) {
  for (const MatrixKernel* s : last) next_ = std::max(next_, free_range_id({&s->end, 1}));
  UOpMap<UOp> own;
  for (const MatrixKernel* s : last) {
    // Values of one kernel have reductions in common.
    if (!values) own.clear();
    for (size_t i = 0; i < loops_.size(); i++) own.emplace(s->loops[i], loops_[i]);
    for (const UOp& r : ranges_below(s->end, AxisKind::Reduce))
      if (!own.contains(r)) own.emplace(r, range(r->src(0), next_++, AxisKind::Reduce));
    ends_.push_back(substitute(s->end, own));
  }
}

std::vector<UOp> Chain::loads_of(uint32_t slot) const {
  std::vector<UOp> out;
  for (const Node* n : toposort(ends_)) {
    const bool loads = n->op == Op::Load && n->src(0)->src(0)->op == Op::Param;
    if (loads && slot_of(n->src(0)) == slot) out.push_back(UOp(n));
  }
  return out;
}
bool Chain::reads(uint32_t slot) const { return !loads_of(slot).empty(); }

bool Chain::is_row(const UOp& x) const {
  const auto below = ranges_below(x, AxisKind::Loop);
  return ranges_below(x, AxisKind::Reduce).empty() &&
         std::all_of(below.begin(), below.end(), [&](const UOp& b) { return contains(loops_, b); });
}

// Nothing where something is read in another way.
std::optional<Chain::RowRead> Chain::row_read(const MatrixKernel& p) const {
  RowRead out;
  for (const UOp& load : loads_of(p.writes)) {
    if (load->src(0)->src_count > 2 || !(load->dtype == p.end->src(0)->src(1)->dtype)) return {};
    const std::optional<UOpMap<UOp>> at = loops_at(p.end, load->src(0)->src(1));
    if (!at) return {};
    UOp column, walked;
    for (const UOp& r : p.loops) {
      const UOp& x = at->at(r);
      if (is_row(x)) {
        const auto [it, fresh] = out.rows.emplace(r, x);
        if (!fresh && !(it->second == x)) return {};
        continue;
      }
      if (column || x->op != Op::Range) return {};
      column = r, walked = x;
    }
    if (!column || (out.column && !(out.column == column))) return {};
    out.column = column;
    out.loads.emplace_back(load, walked);
  }
  if (out.loads.empty()) return {};
  return out;
}

// Loops that are walked in part have that part as a loop of its own.
MatrixKernel Chain::aligned(const MatrixKernel& p) const {
  for (const UOp& load : loads_of(p.writes)) {
    const std::optional<UOpMap<UOp>> at = loops_at(p.end, load->src(0)->src(1));
    if (!at) return p;
    for (const UOp& r : p.loops) {
      const UOp& x = at->at(r);
      if (x->op == Op::Range || is_row(x)) continue;
      for (const auto& [term, step] : linear_form(x).terms) {
        const bool walks = step == 1 && term->op == Op::Range && !contains(loops_, term) &&
                           r->src(0)->is_const() && term->src(0)->is_const();
        if (walks && r->src(0)->const_int() % term->src(0)->const_int() == 0)
          return aligned(with_loop_split(p, r, term->src(0)->const_int()));
      }
    }
  }
  return p;
}

// All that is kept has the same rows.
bool Chain::agree(const RowRead& read) {
  std::vector<UOp> used;
  for (const auto& [r, x] : read.rows) {
    for (const UOp& b : ranges_below(x, AxisKind::Loop)) {
      add_once(used, b);
    }
  }
  std::ranges::sort(used, {}, [](const UOp& r) { return r->get<RangeArg>().id; });
  if (number_ > 0 && !(used == row_loops_)) return false;
  row_loops_ = std::move(used);
  return true;
}

namespace {

UOp element(const UOp& filled, const UOp& column) { return make_load(make_index(filled, column)); }

// Loads of the slot, and casts of them: floats that are kept wider are not narrowed to be widened.
UOpMap<UOp> row_loads(std::span<const UOp> below, std::span<const std::pair<UOp, UOp>> loads,
                      const UOp& filled, DType t) {
  UOpMap<UOp> out;
  for (const auto& [load, column] : loads) out.emplace(load, cast(element(filled, column), t));
  for (const Node* n : toposort(below)) {
    if (n->op != Op::Cast || !(n->dtype == filled->dtype)) continue;
    for (const auto& [load, column] : loads) {
      if (n->src(0) == load) out.emplace(UOp(n), element(filled, column));
    }
  }
  return out;
}

}  // namespace

UOp Chain::filled_row(const MatrixKernel& p, const RowRead& read) {
  const UOp own = range(read.column->src(0), next_++, AxisKind::Loop);
  UOpMap<UOp> at = read.rows;
  at.emplace(read.column, own);
  const UOp stored = p.end->src(0)->src(1);
  for (const UOp& r : ranges_below(stored, AxisKind::Reduce))
    at.emplace(r, range(r->src(0), next_++, AxisKind::Reduce));
  const DType t = stored->dtype, kept = survives_in_register(t) ? t : DType::F32;
  const UOp filling = simplify(substitute(stored, at));
  const UOp memory =
      make(Op::Shared, kept, {}, SharedArg{number_++, read.column->src(0)->max});
  const UOp store = make_store(make_index(memory, own), cast(filling, kept));
  columns_.push_back(own);
  if (p.product) full_.push_back(own);
  kept_[p.writes] = {p.values, std::move(at)};
  return make_after(memory, {make_end(store, std::span(&own, 1))});
}

bool Chain::keep(const MatrixKernel& given) {
  const MatrixKernel p = aligned(given);
  const std::optional<RowRead> read = row_read(p);
  if (!read || !agree(*read)) return false;
  column_ = read->column;
  const UOp filled = filled_row(p, *read);
  ends_ = substitute(ends_, row_loads(ends_, read->loads, filled, p.end->src(0)->src(1)->dtype));
  return true;
}

// A row takes one product in: the accumulators of two would not fit the registers.
bool Chain::compute_where_read(const MatrixKernel& given) {
  const MatrixKernel p = aligned(given);
  const std::optional<RowRead> read = row_read(p);
  if (!read || read->loads.size() != 1 || !p.product) return false;
  const auto& [load, walked] = read->loads[0];
  if (!contains(columns_, walked) || contains(full_, walked) || !agree(*read)) return false;
  full_.push_back(walked);
  UOpMap<UOp> at = read->rows;
  at.emplace(read->column, walked);
  const UOp stored = p.end->src(0)->src(1);
  for (const UOp& r : ranges_below(stored, AxisKind::Reduce))
    at.emplace(r, range(r->src(0), next_++, AxisKind::Reduce));
  ends_ = substitute(ends_, {{load, simplify(substitute(stored, at))}});
  return true;
}

bool Chain::take_in(const MatrixKernel& p) { return compute_where_read(p) || keep(p); }

void Chain::store_values(const MatrixKernel& rows, std::span<const uint32_t> slots) {
  const Kept& kept = kept_.at(rows.writes);
  for (const UOp& v : kept.values) {
    if (!contains(slots, slot_of(v->src(0)->src(0)))) continue;
    const UOp store = simplify(substitute(v->src(0), kept.at));
    ends_.push_back(make_end(store, ranges_below(store->src(0)->src(1), AxisKind::Loop)));
  }
}

namespace {

// Below a value, what fills rows left out.
std::set<const Node*> elements_below(const UOp& value, const Node* memory) {
  std::set<const Node*> out;
  for (const Node* n : toposort_gated({&value, 1}, [](const Node* x) { return x->op != Op::End; }))
    if (n->op == Op::Load && accessed_memory(n) == memory) out.insert(n);
  return out;
}

}  // namespace

// What else reads it is complete before: other rows, and what rows are reduced to.
bool Chain::may_overwrite(const Node* fill, const Node* memory,
                          std::span<const Node* const> all) const {
  if (elements_below(fill->src(0)->src(1), memory).empty()) return false;
  return std::all_of(all.begin(), all.end(), [&](const Node* n) {
    if (n->op != Op::End || n == fill || elements_below(n->src(0)->src(1), memory).empty())
      return true;
    const bool stored = n->src(0)->src(0)->src(0)->op != Op::Shared;
    for (const UOp& r : n->src().subspan(1))
      if (stored && !contains(row_loops_, r)) return false;
    return !contains(toposort(UOp(n)), fill);
  });
}

int32_t Chain::kept_at_once() const {
  const std::vector<const Node*> all = toposort(ends_);
  std::vector<const Node*> fills;
  for (const Node* n : all) {
    if (n->op == Op::End && n->src(0)->src(0)->src(0)->op == Op::Shared) fills.push_back(n);
  }
  const auto memory_of = [](const Node* fill) { return fill->src(0)->src(0)->src(0).get(); };
  std::set<const Node*> taken;
  for (const Node* fill : fills) {
    const Node* own = memory_of(fill);
    for (const Node* other : fills) {
      const Node* memory = memory_of(other);
      const bool free = other != fill && !taken.count(own) && !taken.count(memory);
      if (free && may_overwrite(fill, memory, all)) taken.insert({own, memory});
    }
  }
  return int32_t(fills.size() - taken.size() / 2);
}

std::vector<UOp> Chain::ends() const {
  std::vector<UOp> out;
  int32_t own = next_;
  for (const UOp& end : ends_) {
    std::vector<UOp> loops, others;
    for (const UOp& r : row_loops_) {
      if (contains(loops_of(end), r)) loops.push_back(r);
    }
    UOpMap<UOp> apart;  // what is stored besides is a nest of its own inside the rows
    for (const UOp& r : loops_of(end)) {
      if (contains(row_loops_, r)) continue;
      others.push_back(out.empty() ? r : range(r->src(0), own++, AxisKind::Loop));
      apart.emplace(r, others.back());
    }
    out.push_back(make_end(substitute(end->src(0), apart), loops, others));
  }
  UOpMap<UOp> fresh;
  int32_t next = 0;
  const auto give = [&](const UOp& r) {
    if (fresh.count(r)) return;
    fresh.emplace(r, range(r->src(0), next++, r->get<RangeArg>().kind));
  };
  for (const UOp& end : out) {
    for (const UOp& r : loops_of(end)) give(r);
  }
  for (const Node* n : toposort(out)) {
    if (n->op == Op::Range) give(UOp(n));
  }
  return substitute(out, fresh);
}

}  // namespace tuff::sched

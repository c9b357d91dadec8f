// Kept rows are the memory of one iteration of the loops around them: where lanes or invocations
// run several at once, each gets a row of its own. A row that is filled by a product has its rows
// in lanes, which share what the product reads; any other is filled row by row, in registers for
// one. What is stored of the same reductions, one value a row, is stored there too. Where
// invocations of a workgroup share rows, they fill them for all lanes at once, between two
// barriers.
#include "kernel/analysis/kept_rows.h"

#include <algorithm>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

bool is_row_axis(AxisKind k) { return is_lane(k) || k == AxisKind::Local; }

// What a workgroup fills together is no row of an invocation.
std::set<const Node*> filled_together(const UOp& ast) {
  std::set<const Node*> ends;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Barrier) continue;
    for (const UOp& s : n->src()) ends.insert(s.get());
  }
  return ends;
}

// What invocations that share rows are told apart by: the axis that all nests have in common, else
// one as long as the reductions that they share. Nothing where none share rows.
UOp shared_columns(const UOp& ast) {
  UOp reduced;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::End && n->op != Op::Reduce) continue;
    for (const UOp& r : closed_ranges(n)) {
      if (r->op != Op::Range || kind_of(r.get()) != AxisKind::GroupReduce) continue;
      if (n->op == Op::End) return r;
      reduced = r;
    }
  }
  if (!reduced) return {};
  return range(reduced->src(0), free_range_id({&ast, 1}), AxisKind::GroupReduce);
}

// What is `filled` is stored to the memory of `row` once what else reads that is complete, if
// each invocation stores the elements that it reads.
UOp with_overwritten(const UOp& ast, int32_t filled, int32_t row) {
  const UOp fill = fill_of(ast, filled), before = fill_of(ast, row);
  const UOp from(filled_memory(fill.get())), to(filled_memory(before.get()));
  const UOp& place = fill->src(0)->src(0);
  if (place->src_count > 2 || from->get<SharedArg>().count != to->get<SharedArg>().count)
    return ast;
  RangeDeps deps(ast);
  std::vector<UOp> complete{make_barrier({before})};
  for (const UOp& x : complete_before(ast, fill, to.get(), deps))
    complete.push_back(x->op == Op::End ? make_barrier({x}) : x);
  const UOp free = make_after(to, {make_barrier(complete)});
  return rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old == from) return to;
    if (!(old == fill)) return {};
    std::vector<UOp> end(src.begin(), src.end());
    end[0] = make_store(make_index(free, place->src(1)), src[0]->src(1));
    return with_src(old, end);
  });
}

class KeptRow {
 public:
  // `end` fills it. `columns`: see shared_columns.
  KeptRow(const UOp& ast, const UOp& end, const UOp& columns)
      : ast_(ast), end_(end), columns_(columns), deps_(ast) {
    rows_ = deps_.list(deps_.of(end) & deps_.kinds(is_row_axis));
  }

  // The AST with the row widened; empty where it is as it must be.
  UOp widened() {
    if (rows_.empty() && !columns_) return {};
    const UOp memory = end_->src(0)->src(0)->src(0);
    const SharedArg& arg = memory->get<SharedArg>();
    const UOp row = flat_index(rows_);
    const int64_t pitch = columns_ ? row_pitch(memory) : arg.count;
    const UOp wide =
        make(Op::Shared, memory->dtype, {}, SharedArg{arg.number, pitch * extent(rows_)});
    const bool by_row = !columns_ && all_lanes() && !holds_product() && !carries();
    if (by_row) find_values();
    return rebuild(ast_, [&](const UOp& old, std::span<const UOp> src) -> UOp {
      if (old == memory) return wide;
      if (old->op == Op::Index && without_after(old->src(0).get()) == memory.get()) {
        std::vector<UOp> moved(src.begin(), src.end());
        moved[1] = row * pitch + src[1];
        return with_src(old, moved);
      }
      if (contains(values_, old)) return row_by_row(old, src);
      if (!(old == end_)) return {};
      if (columns_) return by_workgroup(src);
      return by_row ? row_by_row(old, src) : together(src);
    });
  }

 private:
  // Before it, no invocation reads any more what the last iteration of the loops around has left.
  UOp by_workgroup(std::span<const UOp> src) {
    std::vector<UOp> out(src.begin(), src.end());
    UOp place = out[0]->src(0);
    if (const std::vector<UOp> around = deps_.list(deps_.of(end_) & deps_.kinds(is_loop));
        !around.empty()) {
      std::vector<UOp> index(place->src().begin(), place->src().end());
      index[0] = make_after(index[0], {make_barrier(around)});
      place = with_src(place, index);
    }
    for (const UOp& r : idle_invocations()) {
      place = with_gate(place, lt(r, index_const(1)));
      out.push_back(r);
    }
    out[0] = make_store(place, out[0]->src(1));
    return make_barrier({together(out)});
  }
  // Those that the fill does not depend on: one of them stores it.
  std::vector<UOp> idle_invocations() {
    const auto is_own = [&](const UOp& r) { return deps_.of(end_->src(0)) & deps_.bit(r); };
    std::vector<UOp> out;
    if (!is_own(columns_)) out.push_back(columns_);
    for (const UOp& r : deps_.list(deps_.kinds(AxisKind::Local))) {
      if (!is_own(r)) out.push_back(r);
    }
    return out;
  }
  bool all_lanes() const {
    return std::ranges::all_of(rows_, [](const UOp& r) { return is_lane(kind_of(r.get())); });
  }
  // Whether the fill contains a product one factor of which the rows share.
  bool holds_product() {
    RangeMask rows = 0;
    for (const UOp& r : rows_) rows |= deps_.bit(r);
    for (const Node* n : nodes_of(end_->src(0)->src(1))) {
      if (n->op != Op::Reduce || n->get<ReduceArg>().op != Op::Add) continue;
      const Node* product = through_casts(n->src(0).get());
      if (product->op != Op::Mul) continue;
      if (!(deps_.of(product->src(0)) & rows) != !(deps_.of(product->src(1)) & rows)) return true;
    }
    return false;
  }
  // Whether it reads what a loop over slabs carries for all lanes (one_sweep.cpp).
  bool carries() const {
    return std::ranges::any_of(nodes_of(end_->src(0)->src(1)),
                               [](const Node* n) { return n->op == Op::Register; });
  }
  UOp together(std::span<const UOp> src) const {
    std::vector<UOp> out(src.begin(), src.end());
    for (const UOp& r : rows_) {
      if (is_lane(kind_of(r.get()))) out.push_back(r);
    }
    return with_src(end_, out);
  }
  // Ends of the kernel that store what the row's own reductions give.
  void find_values() {
    std::set<const Node*> own;
    for (const Node* n : nodes_of(end_->src(0)->src(1))) {
      if (n->op == Op::Reduce) own.insert(n);
    }
    int32_t next = deps_.free_id();
    for (const UOp& r : rows_) moved_.emplace(r, range(r->src(0), next++, AxisKind::Loop));
    for (const UOp& end : ast_->src()) {
      const std::vector<const Node*> nodes = nodes_of(end->src(0)->src(1));
      if (std::ranges::any_of(nodes, [&](const Node* n) { return own.contains(n); }))
        values_.push_back(end);
    }
  }
  UOp row_by_row(const UOp& end, std::span<const UOp> src) const {
    UOpMap<UOp> moved = moved_;
    // Other rows have been filled for all lanes.
    for (const Node* n : toposort(src[0])) {
      if (n->op == Op::End) moved.emplace(UOp(n), UOp(n));
    }
    // Inside the loops around all rows, around those of one.
    const UOp store = substitute(src[0], moved);
    std::vector<UOp> rows;
    for (const UOp& r : rows_) rows.push_back(moved_.at(r));
    return end == end_ ? make_end(store, rows, src.subspan(1))
                       : make_end(store, src.subspan(1), rows);
  }

  const UOp ast_, end_, columns_;
  RangeDeps deps_;
  std::vector<UOp> rows_;
  UOpMap<UOp> moved_;        // rows in lanes to loops over them
  std::vector<UOp> values_;  // Ends
};

}  // namespace

void pass_kept_rows(Lowering& l) {
  std::set<int32_t> widened;
  UOp columns;
  const std::map<int32_t, int32_t> overwrites = overwritten_rows(l.ast);
  // Those that others are filled from come first.
  for (bool again = true; again;) {
    again = false;
    const std::set<const Node*> together = filled_together(l.ast);
    for (const Node* n : toposort(l.ast)) {
      if (!fills_row(n) || together.contains(n)) continue;
      if (widened.empty()) columns = shared_columns(l.ast);
      if (!widened.insert(filled_memory(n)->get<SharedArg>().number).second) continue;
      const UOp wide = KeptRow(l.ast, UOp(n), columns).widened();
      if (!wide) continue;
      l.ast = wide;
      l.shares_rows = bool(columns);
      again = true;
      break;
    }
  }
  // Rows of matrices lie where they are meant to.
  if (!l.shares_rows || l.subgroup_rows) return;
  for (const auto& [filled, row] : overwrites) l.ast = with_overwritten(l.ast, filled, row);
}

}  // namespace tuff::kernel

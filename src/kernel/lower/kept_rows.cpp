// Kept rows are the memory of one iteration of the loops around them: where lanes or invocations
// run several at once, each gets a row of its own. A row that is filled by a product has its rows
// in lanes, which share what the product reads; any other is filled row by row, in registers for
// one. What is stored of the same reductions, one value a row, is stored there too.
#include <algorithm>
#include <set>

#include "graph/walk.h"
#include "kernel/lower/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace graph;

namespace {

bool is_row_axis(AxisKind k) { return is_lane(k) || k == AxisKind::Local; }

bool fills_row(const Node* n) {
  if (n->op != Op::End || n->src(0)->src(0)->op != Op::Index) return false;
  return without_after(n->src(0)->src(0)->src(0).get())->op == Op::Shared;
}

// What a workgroup fills together is no row of an invocation.
std::set<const Node*> filled_together(const UOp& ast) {
  std::set<const Node*> ends;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Barrier) continue;
    for (const UOp& s : n->src()) ends.insert(s.get());
  }
  return ends;
}

// Nodes below a value, what fills rows left out.
std::vector<const Node*> nodes_of(const UOp& value) {
  std::vector<const Node*> out, stack{value.get()};
  std::set<const Node*> seen;
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (n->op == Op::End || !seen.insert(n).second) continue;
    out.push_back(n);
    for (const UOp& s : n->src()) stack.push_back(s.get());
  }
  return out;
}

class KeptRow {
 public:
  // `end` fills it.
  KeptRow(const UOp& ast, const UOp& end) : ast_(ast), end_(end), deps_(ast) {
    rows_ = deps_.list(deps_.of(end) & deps_.kinds(is_row_axis));
  }

  // The AST with the row widened; empty where it is as it must be.
  UOp widened() {
    if (rows_.empty()) return {};
    const UOp memory = end_->src(0)->src(0)->src(0);
    const SharedArg& arg = memory->get<SharedArg>();
    int64_t lanes = 1;
    UOp row = index_const(0);
    for (const UOp& r : rows_) {
      row = row * r->src(0) + r;
      lanes *= r->src(0)->max;
    }
    const UOp wide = make(Op::Shared, memory->dtype, {}, SharedArg{arg.number, arg.count * lanes});
    const bool by_row = all_lanes() && !holds_product();
    if (by_row) find_values();
    return rebuild(ast_, [&](const UOp& old, std::span<const UOp> src) -> UOp {
      if (old == memory) return wide;
      if (old->op == Op::Index && without_after(old->src(0).get()) == memory.get()) {
        std::vector<UOp> moved(src.begin(), src.end());
        moved[1] = row * arg.count + src[1];
        return with_src(old, moved);
      }
      if (std::ranges::find(values_, old) != values_.end()) return row_by_row(old, src);
      if (!(old == end_)) return {};
      return by_row ? row_by_row(old, src) : together(src);
    });
  }

 private:
  bool all_lanes() const {
    return std::ranges::all_of(rows_, [](const UOp& r) { return is_lane(kind_of(r.get())); });
  }
  // Of which the rows share a factor.
  bool holds_product() {
    RangeMask rows = 0;
    for (const UOp& r : rows_) rows |= deps_.bit(r);
    for (const Node* n : nodes_of(end_->src(0)->src(1))) {
      if (n->op != Op::Reduce || n->get<ReduceArg>().op != Op::Add) continue;
      const Node* product = n->src(0).get();
      while (product->op == Op::Cast) product = product->src(0).get();
      if (product->op != Op::Mul) continue;
      if (!(deps_.of(product->src(0)) & rows) != !(deps_.of(product->src(1)) & rows)) return true;
    }
    return false;
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
    int32_t next = 0;
    for (const UOp& r : deps_.ranges()) next = std::max(next, r->get<RangeArg>().id + 1);
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
    std::vector<UOp> out{substitute(src[0], moved)};
    if (!(end == end_)) out.insert(out.end(), src.begin() + 1, src.end());
    for (const UOp& r : rows_) out.push_back(moved_.at(r));
    if (end == end_) out.insert(out.end(), src.begin() + 1, src.end());
    return with_src(end, out);
  }

  const UOp ast_, end_;
  RangeDeps deps_;
  std::vector<UOp> rows_;
  UOpMap<UOp> moved_;        // rows in lanes to loops over them
  std::vector<UOp> values_;  // Ends
};

}  // namespace

void pass_kept_rows(Lowering& l) {
  std::set<int32_t> widened;
  // Those that others are filled from come first.
  for (bool again = true; again;) {
    again = false;
    const std::set<const Node*> together = filled_together(l.ast);
    for (const Node* n : toposort(l.ast)) {
      if (!fills_row(n) || together.contains(n)) continue;
      if (!widened.insert(without_after(n->src(0)->src(0)->src(0).get())->get<SharedArg>().number)
               .second)
        continue;
      const UOp wide = KeptRow(l.ast, UOp(n)).widened();
      if (!wide) continue;
      l.ast = wide;
      again = true;
      break;
    }
  }
}

}  // namespace tuff::kernel

#include "sched/keep.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "graph/symbolic.h"
#include "graph/walk.h"
#include "sched/call_graph.h"
#include "sched/loops.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace graph;

namespace {

constexpr int64_t kLeastLength = 8;    // of a product's sum, and of what it is spread over
constexpr int64_t kLeastColumns = 16;  // of a kept row
// Of workgroups that share rows.
constexpr uint32_t kDearLoad = 4;
constexpr int64_t kLeastRows = 4, kRowsPerCore = 16;
// What a score passes memory as often between three kernels, with what two launches cost; and how
// much dearer memory is than a cache.
constexpr int64_t kScorePasses = 6, kMemoryCost = 2;

// A kernel of one End, by what its reductions are.
struct Step {
  bool possible = false;
  UOp end;                        // Params carry slots
  std::vector<UOp> loops;         // outermost first
  const Node* product = nullptr;  // its sum of products of what is repeated; null: none
  bool rows = false;              // reductions that walk memory once, and none else
  std::vector<uint32_t> reads;
  uint32_t writes = 0;
};

const Node* through_casts(const Node* n) {
  while (n->op == Op::Cast) n = n->src(0).get();
  return n;
}

bool is_product(const Node* reduce) {
  return reduce->get<ReduceArg>().op == Op::Add && reduce->src_count == 2 &&
         through_casts(reduce->src(0).get())->op == Op::Mul;
}

Step step_of(const Call& c) {
  Step out;
  if (c.kind != CallKind::Kernel || c.ast->src_count != 1) return out;
  const UOp ast = slot_ast(c);
  out.end = ast->src(0);
  out.loops.assign(out.end->src().begin() + 1, out.end->src().end());
  out.writes = slot_of(out.end->src(0)->src(0));
  if (out.end->src(0)->src(0)->src_count > 2) return out;
  size_t reductions = 0, streamed = 0;
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::Shared || (n->op == Op::Range && !n->src(0)->is_const())) return out;
    if (n->op != Op::Reduce) continue;
    reductions++;
    if (is_streamed(n, ranges_below(UOp(n), AxisKind::Loop))) {
      streamed++;
    } else if (is_product(n)) {
      out.product = n;
    }
  }
  const CallAccess a = access_of(c);
  if (contains(a.reads, out.writes)) return out;  // in place
  out.reads = a.reads;
  out.rows = reductions > 0 && streamed == reductions;
  if (reductions != 1 || streamed != 0) out.product = nullptr;
  out.possible = out.rows || out.product;
  return out;
}

// What a reader reads of a slot: all loads are of the same rows, each of them walks the columns by
// a range of its own.
struct RowRead {
  std::vector<std::pair<UOp, UOp>> loads;  // and the column they read
  UOpMap<UOp> rows;                        // of the producer's loops, in the reader's
  UOp column;                              // the producer's loop
};

// `loops`: of the reader. Nothing where something is read in another way.
std::optional<RowRead> row_read(const Step& p, const UOp& value, const std::vector<UOp>& loops) {
  RowRead out;
  for (const Node* n : toposort(value)) {
    if (n->op != Op::Load || n->src(0)->src(0)->op != Op::Param) continue;
    if (slot_of(n->src(0)) != p.writes) continue;
    if (n->src(0)->src_count > 2 || !(n->dtype == p.end->src(0)->src(1)->dtype)) return {};
    const std::optional<UOpMap<UOp>> at = loops_at(p.end, n->src(0)->src(1));
    if (!at) return {};
    UOp column, walked;
    for (const UOp& r : p.loops) {
      const UOp& x = at->at(r);
      const auto below = ranges_below(x, AxisKind::Loop);
      const bool is_row =
          ranges_below(x, AxisKind::Reduce).empty() &&
          std::all_of(below.begin(), below.end(), [&](const UOp& b) { return contains(loops, b); });
      if (is_row) {
        const auto [it, fresh] = out.rows.emplace(r, x);
        if (!fresh && !(it->second == x)) return {};
        continue;
      }
      if (column || x->op != Op::Range) return {};
      column = r, walked = x;
    }
    if (!column || (out.column && !(out.column == column))) return {};
    out.column = column;
    out.loads.emplace_back(UOp(n), walked);
  }
  if (out.loads.empty()) return {};
  return out;
}

// A product that reads what a row kernel stores, which reads products: one kernel in the making.
class Chain {
 public:
  Chain(const Step& last) : end_(last.end), loops_(last.loops) {
    for (const Node* n : toposort(end_)) {
      if (n->op == Op::Range) next_ = std::max(next_, n->get<RangeArg>().id + 1);
    }
  }

  // What `p` stores is kept; false, and nothing done, where it is not read row by row.
  bool keep(const Step& p) {
    const UOp value = end_->src(0)->src(1);
    const std::optional<RowRead> read = row_read(p, value, loops_);
    if (!read) return false;
    const UOp own = range(read->column->src(0), next_++, AxisKind::Loop);
    UOpMap<UOp> at = read->rows;
    at.emplace(read->column, own);
    const UOp stored = p.end->src(0)->src(1);
    for (const UOp& r : ranges_below(stored, AxisKind::Reduce))
      at.emplace(r, range(r->src(0), next_++, AxisKind::Reduce));
    const DType t = stored->dtype, kept = survives_in_register(t) ? t : DType::F32;
    const UOp filling = simplify(substitute(stored, at));
    const UOp memory =
        make(Op::Shared, kept, {}, SharedArg{number_++, read->column->src(0)->const_int()});
    const UOp store =
        make(Op::Store, DType::Void, {make(Op::Index, kept, {memory, own}), cast(filling, kept)});
    const UOp filled = make(Op::After, kept, {memory, make(Op::End, DType::Void, {store, own})});
    end_ = substitute(end_, row_loads(end_, *read, filled, t));
    column_ = read->column;
    std::set<UOp, ById> used;
    for (const auto& [r, x] : read->rows) {
      for (const UOp& b : ranges_below(x, AxisKind::Loop)) used.insert(b);
    }
    row_loops_.assign(used.begin(), used.end());
    return true;
  }
  const std::vector<UOp>& rows() const { return row_loops_; }
  const UOp& column() const { return column_; }  // of what was kept last, in its own loops
  int64_t columns() const { return column_->src(0)->const_int(); }
  int32_t kept() const { return number_; }

  // Rows outermost, so that each is filled once.
  UOp end() const {
    std::vector<UOp> loops = row_loops_;
    for (const UOp& r : loops_) {
      if (!contains(loops, r)) loops.push_back(r);
    }
    return numbered(end_->src(0), loops);
  }

 private:
  struct ById {
    bool operator()(const UOp& a, const UOp& b) const {
      return a->get<RangeArg>().id < b->get<RangeArg>().id;
    }
  };
  static UOp element(const UOp& filled, const UOp& column) {
    return make(Op::Load, filled->dtype, {make(Op::Index, filled->dtype, {filled, column})});
  }
  // Loads of the slot, and casts of them: floats that are kept wider are not narrowed to be
  // widened.
  static UOpMap<UOp> row_loads(const UOp& below, const RowRead& read, const UOp& filled, DType t) {
    UOpMap<UOp> out;
    for (const auto& [load, column] : read.loads)
      out.emplace(load, cast(element(filled, column), t));
    for (const Node* n : toposort(below)) {
      if (n->op != Op::Cast || !(n->dtype == filled->dtype)) continue;
      for (const auto& [load, column] : read.loads) {
        if (n->src(0) == load) out.emplace(UOp(n), element(filled, column));
      }
    }
    return out;
  }
  static UOp numbered(const UOp& store, const std::vector<UOp>& loops) {
    UOpMap<UOp> fresh;
    int32_t next = 0;
    const auto give = [&](const UOp& r) {
      if (fresh.count(r)) return;
      fresh.emplace(r, range(r->src(0), next, r->get<RangeArg>().kind));
      next++;
    };
    for (const UOp& r : loops) give(r);
    for (const Node* n : toposort(store)) {
      if (n->op == Op::Range) give(UOp(n));
    }
    std::vector<UOp> src{store};
    src.insert(src.end(), loops.begin(), loops.end());
    return substitute(make(Op::End, DType::Void, src), fresh);
  }

  UOp end_;
  std::vector<UOp> loops_;
  std::vector<UOp> row_loops_;
  UOp column_;
  int32_t next_ = 0, number_ = 0;
};

class RowKeeper {
 public:
  // memory: by slot.
  RowKeeper(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of)
      : s_(s), memory_(memory), target_of_(target_of) {}

  // The calls in a new order, some of them one.
  std::vector<Call> run(std::span<const Call> calls) {
    for (const Call& c : calls) {
      head_.push_back(uint32_t(calls_.size()));
      calls_.push_back(&c);
      steps_.push_back(step_of(c));
    }
    writer_ = writers_of(calls);
    made_.resize(calls_.size());
    graph_ = CallGraph(calls, memory_);
    for (uint32_t c = 0; c < calls_.size(); c++) try_chain(c);
    std::vector<Call> out;
    for (uint32_t c : graph_.order(head_)) out.push_back(made_[c] ? *made_[c] : *calls_[c]);
    return out;
  }

 private:
  const Step* producer(uint32_t slot, uint32_t before) const {
    const auto w = writer_.find(slot);
    if (w == writer_.end() || w->second >= before || head_[w->second] != w->second) return nullptr;
    const Step& p = steps_[w->second];
    const bool usable = p.possible && p.writes == slot && !made_[w->second] &&
                        calls_[w->second]->device == calls_[before]->device;
    return usable ? &p : nullptr;
  }
  uint32_t number(const Step* p) const { return uint32_t(p - steps_.data()); }

  void try_chain(uint32_t c) {
    const Step& last = steps_[c];
    if (!last.possible || !last.product) return;
    for (uint32_t slot : last.reads) {
      const Step* rows = producer(slot, c);
      if (!rows || !rows->rows || !is_factor(last.product, slot)) continue;
      std::vector<const Step*> products;
      for (uint32_t read : rows->reads) {
        const Step* p = producer(read, number(rows));
        if (p && p->product) products.push_back(p);
      }
      if (!products.empty() && join(c, rows, products)) return;
    }
  }

  // The sum's steps take one element of the slot each.
  static bool is_factor(const Node* product, uint32_t slot) {
    for (const UOp& f : through_casts(product->src(0).get())->src()) {
      const Node* x = through_casts(f.get());
      if (x->op == Op::Load && slot_of(x->src(0)) == slot) return true;
    }
    return false;
  }

  bool join(uint32_t c, const Step* rows, const std::vector<const Step*>& products) {
    const Step& last = steps_[c];
    std::vector<uint32_t> members{number(rows)};
    for (const Step* p : products) members.push_back(number(p));
    std::sort(members.begin(), members.end());
    if (graph_.separated(members, c)) return false;
    members.push_back(c);
    std::vector<const Call*> own;
    for (uint32_t m : members) own.push_back(calls_[m]);
    Chain chain(last);
    for (size_t i = 0; i + 1 < members.size(); i++) {
      if (is_needed(s_, own, steps_[members[i]].writes)) return false;
    }
    if (!chain.keep(*rows)) return false;
    if (!reduces_rows_only(*rows, chain.column())) return false;
    const std::vector<UOp> loops = chain.rows();
    for (const Step* p : products) {
      if (!chain.keep(*p) || !(chain.rows() == loops)) return false;
    }
    if (!worth_it(c, chain, products)) return false;
    Call made = call_of(calls_[c]->device, std::vector<UOp>{chain.end()});
    if (made.args.size() > target_of_(made.device).max_buffers || !keeps_apart(made)) return false;
    made_[c] = std::move(made);
    for (uint32_t m : members) head_[m] = c;
    graph_.contract(members);
    return true;
  }

  // What a row is reduced to does not depend on its columns.
  static bool reduces_rows_only(const Step& rows, const UOp& column) {
    const std::vector<const Node*> nodes = toposort(rows.end);
    return std::none_of(nodes.begin(), nodes.end(), [&](const Node* n) {
      return n->op == Op::Reduce && depends_on(UOp(n), column);
    });
  }

  bool worth_it(uint32_t c, const Chain& chain, const std::vector<const Step*>& products) const {
    const Target& t = target_of_(calls_[c]->device);
    if (t.has_local) return worth_sharing(t, steps_[c], chain, products);
    const int64_t lanes = std::max<int64_t>(t.vector_bytes / 4, 4), columns = chain.columns();
    if (columns < kLeastColumns || columns % lanes != 0) return false;
    const Step& last = steps_[c];
    if (matrices(last, chain.rows()) < kMatricesPerCore * int64_t(t.cores)) return false;
    int64_t width = 1;  // of what is stored
    for (const UOp& r : last.loops) width *= contains(chain.rows(), r) ? 1 : r->src(0)->max;
    int64_t kept = int64_t(chain.kept()) * kRowsTogether + 2 + width;
    if (width < kLeastLength) return false;
    for (const Step* p : products) {
      const int64_t length = extent(p->product->src().subspan(1));
      if (length < kLeastLength) return false;
      kept += length;
    }
    const double cache = t.l2_bytes ? double(t.l2_bytes) * kCacheShare : double(t.shared_bytes);
    return double(kept * columns * 4) <= std::min(cache, double(t.shared_bytes));
  }

  // Cooperative matrices compute the product of what it is read as.
  static bool has_matrices(const Target& t, const Node* product) {
    const Node* factor = through_casts(through_casts(product->src(0).get())->src(0).get());
    return std::ranges::any_of(t.matrix_shapes,
                               [&](const MatrixShape& s) { return s.a == factor->dtype; });
  }

  // By the invocations of a workgroup.
  static bool worth_sharing(const Target& t, const Step& last, const Chain& chain,
                            const std::vector<const Step*>& products) {
    constexpr int64_t kInvocations = 8, kCopiesBytes = 8 << 10;
    const int64_t columns = chain.columns();
    if (t.load_cost >= kDearLoad || columns < kLeastColumns || columns % kInvocations != 0)
      return false;
    if (has_matrices(t, last.product)) return false;
    int64_t width = 1, rows = 1;  // of what is stored, in all
    for (const UOp& r : last.loops) {
      if (!r->src(0)->is_const()) return false;
      (contains(chain.rows(), r) ? rows : width) *= r->src(0)->max;
    }
    int64_t shared_width = width;  // of what each tile of rows reads again, per column
    for (const Step* p : products) {
      const int64_t length = extent(p->product->src().subspan(1));
      if (length < kLeastLength || has_matrices(t, p->product)) return false;
      shared_width += length;
    }
    if (width < kLeastLength || rows < kRowsPerCore * int64_t(t.cores)) return false;
    const int64_t room = int64_t(t.shared_bytes) - kCopiesBytes;
    // What becomes of the products lies where one of them was.
    const int64_t kept = std::max(chain.kept() - 1, 1);
    const int64_t together = std::max<int64_t>(room, 0) / (kept * columns * 4);
    const bool cached = !t.exceeds_caches(rows * columns * 4) && (t.l2_bytes || t.l3_bytes);
    const int64_t passes = kScorePasses * (cached ? 1 : kMemoryCost);
    const bool once = rows / matrices(last, chain.rows()) <= together;
    return together >= kLeastRows &&
           (once || shared_width <= passes * int64_t(std::bit_floor(uint64_t(together))));
  }

  // How many matrices the last product is of: loops that both of its factors walk.
  static int64_t matrices(const Step& last, const std::vector<UOp>& rows) {
    const Node* product = through_casts(last.product->src(0).get());
    int64_t n = 1;
    for (const UOp& r : rows) {
      if (depends_on(product->src(0), r) && depends_on(product->src(1), r)) n *= r->src(0)->max;
    }
    return n;
  }

  // What is stored is neither read nor stored again in the same memory.
  bool keeps_apart(const Call& made) const {
    for (size_t w = 0; w < made.output_count; w++) {
      for (size_t x = 0; x < made.args.size(); x++) {
        if (x != w && memory_[made.args[x]] == memory_[made.args[w]]) return false;
      }
    }
    return true;
  }

  Schedule& s_;
  std::span<const uint32_t> memory_;
  const TargetOf& target_of_;
  std::vector<const Call*> calls_;
  std::vector<Step> steps_;                // by call
  std::vector<std::optional<Call>> made_;  // by call: what it became
  std::vector<uint32_t> head_;             // by call: whose kernel it is in
  std::map<uint32_t, uint32_t> writer_;    // by slot
  CallGraph graph_;
};

}  // namespace

void keep_rows(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of) {
  const std::vector<uint32_t> by_slot = memory_by_slot(s, memory);
  remake_calls(
      s, [&](std::span<const Call> calls) { return RowKeeper(s, by_slot, target_of).run(calls); });
}

}  // namespace tuff::sched

#include "sched/keep.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/one_sweep.h"
#include "ir/symbolic.h"
#include "sched/call_fusion.h"
#include "sched/kept_chain.h"
#include "sched/kept_cost.h"
#include "sched/kept_parts.h"
#include "sched/loops.h"
#include "sched/parts.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace ir;

namespace {

// Of a row whose parts are computed beside each other: elements of a part.
constexpr int64_t kLeastPart = 16, kMostPart = 128;
// Row kernels, and kernels of elements, that have matrices in common; the products that store what
// they read; those that read what they store.
struct Island {
  std::vector<uint32_t> products, rows, last;  // calls
};

// A kernel in the making: for a last product, or for several at once; or for what a row kernel's
// rows are reduced to, and nothing else of it.
struct Making {
  std::vector<uint32_t> last;
  Chain chain;
  std::vector<uint32_t> whole;   // row kernels that it holds, their reductions too
  std::vector<int64_t> lengths;  // of the products taken in
};

class RowKeeper : CallFusion {
 public:
  using CallFusion::CallFusion;

  // The calls in a new order, some of them one.
  std::vector<Call> run() {
    for (const Call& c : calls_) steps_.push_back(matrix_kernel_of(c));
    made_.resize(calls_.size());
    find_readers();
    for (uint32_t c = 0; c < calls_.size(); c++) {
      if (!steps_[c].rows || head_[c] != c || contains(tried_, c)) continue;
      if (const std::optional<Island> found = island(c)) try_island(*found);
    }
    std::vector<Call> out;
    for (uint32_t c : graph_.order(head_)) {
      if (made_[c].empty()) out.push_back(calls_[c]);
      for (const Call& made : made_[c]) out.push_back(made);
    }
    return out;
  }

 private:
  void find_readers() {
    for (uint32_t c = 0; c < calls_.size(); c++) {
      for (uint32_t a : access_of(calls_[c]).reads) readers_[a].push_back(c);
    }
  }
  bool usable(uint32_t c, const std::string& device) const {
    return steps_[c].possible && head_[c] == c && made_[c].empty() && calls_[c].device == device;
  }

  // ---- what belongs together ----
  // All that reads and stores the matrices around a row kernel; nothing where something else does.
  std::optional<Island> island(uint32_t first) {
    Island out;
    const std::string& device = calls_[first].device;
    std::vector<uint32_t> work{first};
    while (!work.empty()) {
      const uint32_t r = work.back();
      work.pop_back();
      if (contains(out.rows, r)) continue;
      const bool stands_between = steps_[r].rows || steps_[r].elements;
      if (!usable(r, device) || !stands_between || !read_by_products(r, out)) return {};
      out.rows.push_back(r);
      for (uint32_t slot : steps_[r].reads) {
        const std::optional<uint32_t> p = producer_of(slot, r);
        if (!p || !steps_[*p].product || steps_[*p].writes != slot || !usable(*p, device)) continue;
        if (!is_own(slot)) return {};
        add_once(out.products, *p);
        for (uint32_t reader : readers_[slot]) work.push_back(reader);
      }
    }
    for (auto* list : {&out.products, &out.rows, &out.last}) std::sort(list->begin(), list->end());
    return out.products.empty() || out.last.empty() ? std::nullopt : std::optional(out);
  }
  // Nothing outside of these calls wants it.
  bool is_own(uint32_t slot) const {
    if (s_.buffers[slot].origin != BufferOrigin::Temp || contains(s_.sink_slots, slot))
      return false;
    size_t uses = 0;
    for (const Call& c : s_.calls) uses += size_t(contains(c.args, slot));
    const auto r = readers_.find(slot);
    return uses == 1 + (r == readers_.end() ? 0 : r->second.size());
  }
  bool read_by_products(uint32_t r, Island& out) {
    const uint32_t slot = steps_[r].writes;
    if (!is_own(slot)) return false;
    for (uint32_t c : readers_[slot]) {
      const MatrixKernel& s = steps_[c];
      if (!usable(c, calls_[r].device) || !s.product || !is_factor(s.product, slot)) return false;
      add_once(out.last, c);
    }
    return true;
  }

  // ---- one kernel for each last product ----
  bool try_island(const Island& from) {
    tried_.insert(tried_.end(), from.rows.begin(), from.rows.end());
    if (!std::ranges::all_of(from.last, [&](uint32_t c) { return rows_known(c); })) return false;
    std::vector<uint32_t> matrices;
    for (uint32_t r : from.rows) {
      if (!store_reductions(r)) return false;
      matrices.push_back(steps_[r].writes);
    }
    for (uint32_t c : from.last) put_rows_outermost(steps_[c], matrices);
    std::vector<uint32_t> waiting;
    if (try_makings(from, waiting)) return true;
    const bool shares = target(from.last[0]).has_local;
    if (waiting.empty() || !shares || steps_[from.products[0]].loops.size() < 2) return false;
    const auto separate = [&](uint32_t r) {
      return separate_values(r, steps_[from.products[0]]);
    };
    return std::ranges::all_of(waiting, separate) && try_makings(from, waiting);
  }
  // `apart`: row kernels of which another kernel computes what rows are reduced to, so that none
  // waits for the end of a row. Those that one waits for are added.
  bool try_makings(const Island& from, std::vector<uint32_t>& apart) {
    std::vector<Making> makings;
    for (const auto& calls : {apart, from.last}) {
      for (uint32_t c : calls) {
        std::optional<Making> m = rows_kept({c}, from, apart);
        if (!m) return false;
        makings.push_back(std::move(*m));
      }
    }
    unite_alike(makings, from, apart);
    if (!values_stored(from, makings)) return false;
    for (Making& m : makings) {
      if (!products_kept(m, from)) return false;
    }
    if (worth_it(from, makings)) return commit(from, makings);
    if (take_parts(from, makings)) return true;
    for (const Making& m : makings) {
      for (uint32_t r : m.whole)
        if (steps_[r].rows && !one_sweep_fills(m)) add_once(apart, r);
    }
    return false;
  }

  // A row may have any length; how many there are is a number.
  bool rows_known(uint32_t last) const {
    return std::ranges::all_of(steps_[last].loops,
                               [](const UOp& r) { return r->src(0)->is_const(); });
  }

  // What rows are reduced to may be read from memory: each number has a slot.
  bool store_reductions(uint32_t r) {
    MatrixKernel& s = steps_[r];
    if (s.elements) return true;
    const UOp column = column_of(s);
    if (!column) return false;
    std::vector<UOp> rows;
    UOp at = index_const(0);
    for (const UOp& l : s.loops) {
      if (l == column) continue;
      rows.push_back(l);
      at = at * l->src(0)->const_int() + l;
    }
    for (const UOp& value : reductions_left(s)) {
      const UOp index = make_index(new_memory(value->dtype, extent(rows), r), simplify(at));
      s.values.push_back(make_end(make_store(index, value), rows));
    }
    return true;
  }
  // A kernel for each value of a row kernel. Products that share a factor among rows have these in
  // loops of their own. False where a value is not one of each row.
  bool separate_values(uint32_t r, const MatrixKernel& product) {
    const int64_t rows = product.loops[product.loops.size() - 2]->src(0)->max;
    for (const UOp& v : steps_[r].values) {
      MatrixKernel& alone = values_[r].emplace_back();
      alone.end = v;
      alone.loops.assign(v->src().begin() + 1, v->src().end());
      if (alone.loops.size() + 1 != steps_[r].loops.size()) return false;
      const UOp last = alone.loops.back();
      if (const int64_t all = last->src(0)->max; all > rows && all % rows == 0)
        alone = with_loop_split(alone, last, rows);
    }
    return true;
  }
  UOp new_memory(DType t, int64_t count, uint32_t call) {
    BufferSlot slot;
    slot.dtype = t;
    slot.count = count;
    slot.device = calls_[call].device;
    s_.buffers.push_back(slot);
    memory_.push_back(*std::max_element(memory_.begin(), memory_.end()) + 1);
    return param(int32_t(s_.buffers.size() - 1), t, count);
  }
  // The outermost that no row value stores.
  static std::vector<UOp> reductions_left(const MatrixKernel& s) {
    const auto is_stored = [&](const Node* n) {
      return std::any_of(s.values.begin(), s.values.end(),
                         [&](const UOp& v) { return v->src(0)->src(1).get() == n; });
    };
    const std::vector<UOp> value{s.end->src(0)->src(1)};
    std::vector<UOp> out;
    for (const Node* n : toposort_gated(
             value, [&](const Node* x) { return x->op != Op::Reduce && !is_stored(x); })) {
      if (n->op == Op::Reduce && !is_stored(n)) out.emplace_back(n);
    }
    return out;
  }

  static bool is_symbolic(const Making& m) { return !m.chain.column()->src(0)->is_const(); }
  bool is_of_values(const Making& m) const { return !steps_[m.last[0]].product; }
  std::optional<Making> rows_kept(std::vector<uint32_t> last, const Island& from,
                                  const std::vector<uint32_t>& apart) const {
    std::vector<const MatrixKernel*> steps, products, rows;
    for (uint32_t p : from.products) products.push_back(&steps_[p]);
    for (uint32_t r : from.rows) rows.push_back(&steps_[r]);
    const bool values = !steps_[last[0]].product;
    for (uint32_t c : last) {
      if (!values) steps.push_back(&steps_[c]);
      for (size_t v = 0; values && v < values_.at(c).size(); v++)
        steps.push_back(&values_.at(c)[v]);
    }
    Making m{std::move(last), Chain(steps, values), {}, {}};
    if (values) m.whole = m.last;
    for (uint32_t r : from.rows) {
      if (!m.chain.reads(steps_[r].writes)) continue;
      const bool elements = steps_[r].elements;
      const MatrixKernel alone =
          with_hidden_zero(elements ? steps_[r] : by_element(steps_[r]), products, rows);
      Chain whole = m.chain;
      const bool kept = !contains(apart, r) && whole.keep(elements ? alone : steps_[r]);
      if (kept && (elements || whole.column() == column_of(steps_[r]))) {
        m.chain = std::move(whole);
        m.whole.push_back(r);
      } else if (!m.chain.keep(alone)) {
        return {};
      }
    }
    return m;
  }

  // Last products that reduce no rows themselves may have rows, and what fills them, in common.
  void unite_alike(std::vector<Making>& makings, const Island& from,
                   const std::vector<uint32_t>& apart) const {
    for (size_t i = 0; i < makings.size(); i++) {
      for (size_t j = i + 1; j < makings.size();) {
        std::optional<Making> both = united(makings[i], makings[j], from, apart);
        if (both) {
          makings[i] = std::move(*both);
          makings.erase(makings.begin() + ptrdiff_t(j));
        } else {
          j++;
        }
      }
    }
  }
  std::optional<Making> united(const Making& a, const Making& b, const Island& from,
                               const std::vector<uint32_t>& apart) const {
    std::vector<uint32_t> last = a.last;
    last.insert(last.end(), b.last.begin(), b.last.end());
    if (reduces_rows(a) || reduces_rows(b) || !loops_alike(a.last[0], b.last[0])) return {};
    std::optional<Making> both = rows_kept(std::move(last), from, apart);
    if (!both) return {};
    Making whole = *both;
    return products_kept(whole, from) ? both : std::nullopt;
  }
  bool reduces_rows(const Making& m) const {
    return std::any_of(m.whole.begin(), m.whole.end(), [&](uint32_t r) { return steps_[r].rows; });
  }
  bool loops_alike(uint32_t a, uint32_t b) const {
    return std::equal(steps_[a].loops.begin(), steps_[a].loops.end(), steps_[b].loops.begin(),
                      steps_[b].loops.end(),
                      [](const UOp& x, const UOp& y) { return x->src(0) == y->src(0); });
  }

  // Row values are stored by the first kernel that keeps the rows, for those that read them.
  bool values_stored(const Island& from, std::vector<Making>& makings) const {
    for (uint32_t r : from.rows) {
      const auto keeper = std::find_if(makings.begin(), makings.end(),
                                       [&](const Making& m) { return contains(m.whole, r); });
      if (keeper == makings.end()) return false;
      std::vector<uint32_t> slots;
      for (const UOp& v : steps_[r].values) {
        const uint32_t slot = slot_of(v->src(0)->src(0));
        if (keeper->chain.reads(slot)) return false;
        const bool read = std::any_of(makings.begin(), makings.end(),
                                      [&](const Making& m) { return m.chain.reads(slot); });
        if (read || is_needed(slot, {from.rows, from.last})) slots.push_back(slot);
      }
      if (is_of_values(*keeper)) continue;  // which stores all of them
      keeper->chain.store_values(steps_[r], slots);
    }
    return true;
  }

  bool products_kept(Making& m, const Island& from) const {
    for (uint32_t p : from.products) {
      if (!m.chain.reads(steps_[p].writes)) continue;
      if (!m.chain.take_in(steps_[p])) return false;
      m.lengths.push_back(extent(closed_ranges(steps_[p].product)));
    }
    return true;
  }

  // ---- the cost rule ----
  bool worth_it(const Island& from, const std::vector<Making>& makings) const {
    const bool again = makings.size() > 1;  // several kernels compute the same
    const Target& t = target(from.last[0]);
    if (again && !memory_is_far(from)) return false;
    if (t.has_local) return worth_sharing(t, from, makings);
    if (is_symbolic(makings[0])) return false;
    return std::ranges::all_of(makings, [&](const Making& m) {
      return !picks(m, from) && fits_cache(t, work_of(m), again);
    });
  }
  bool memory_is_far(const Island& from) const {
    uint64_t bytes = 0;
    for (const auto* list : {&from.products, &from.rows}) {
      for (uint32_t c : *list) bytes += s_.buffers[steps_[c].writes].size_bytes();
    }
    return bytes > kMostStored || target(from.last[0]).exceeds_caches(int64_t(bytes / kFarCaches));
  }

  // A factor that is loaded by an index from memory, as keys are through a table of pages: each
  // tile of rows would load it so again, which costs more than to store what the rows are made of.
  bool picks(const Making& m, const Island& from) const {
    const auto picks_factor = [&](uint32_t c) {
      return std::ranges::any_of(toposort(UOp(steps_[c].product)), [](const Node* n) {
        return n->op == Op::Load && std::ranges::any_of(toposort(n->src(0)), [](const Node* x) {
                 return x->op == Op::Load;
               });
      });
    };
    return std::ranges::any_of(from.products, picks_factor) ||
           std::ranges::any_of(m.last, picks_factor);
  }

  KeptWork work_of(const Making& m) const {
    const bool stores_values = is_of_values(m);
    const MatrixKernel& last = stores_values ? values_.at(m.last[0])[0] : steps_[m.last[0]];
    KeptWork w;
    for (const UOp& r : last.loops) {
      const bool is_row = contains(m.chain.rows(), r);
      w.fixed_rows = w.fixed_rows && r->src(0)->is_const();
      w.across += !is_row;
      (is_row ? w.rows : w.width) *= r->src(0)->max;
    }
    if (!stores_values) w.row_length = rows_of_matrix(last, m.chain.rows());
    w.columns = m.chain.columns();
    w.fixed_columns = !is_symbolic(m);
    w.matrices = stores_values ? 0 : matrices(last, m.chain.rows());
    w.results = int64_t(m.last.size());
    w.lengths = m.lengths;
    w.kept = m.chain.kept(), w.kept_at_once = m.chain.kept_at_once();
    w.is_one_sweep = [&] { return one_sweep_fills(m); };
    return w;
  }

  // Cooperative matrices compute the product of what it is read as.
  static bool has_matrices(const Target& t, const Node* product) {
    const Node* factor = through_casts(through_casts(product->src(0).get())->src(0).get());
    return std::ranges::any_of(t.matrix_shapes,
                               [&](const MatrixShape& s) { return s.a == factor->dtype; });
  }

  // They can compute all products where rows are kept, and what is stored needs no other sum.
  bool multiplies_matrices(const Target& t, const Making& m) const {
    const MatrixKernel& last = steps_[m.last[0]];
    if (!last.product) return false;
    const UOp value = last.end->src(0)->src(1);
    const auto sums = std::ranges::count_if(toposort(value), [](const Node* n) {
      return n->op == Op::Reduce;
    });
    if (sums != 1) return false;
    const Node* product = through_casts(last.product->src(0).get());
    const DType factor = through_casts(product->src(0).get())->dtype;
    KeptWork w = work_of(m);
    w.by_elements = !(value->op == Op::Cast && value->dtype == DType::F16 &&
                      value->src(0).get() == last.product);
    return std::ranges::any_of(t.matrix_shapes, [&](const MatrixShape& s) {
      return s.a == factor && s.b == factor && s.sum == DType::F32 && multiplies_rows(t, s, w);
    });
  }

  // By the invocations of a workgroup.
  bool worth_sharing(const Target& t, const Island& from,
                     const std::vector<Making>& makings) const {
    const bool again = makings.size() > 1;
    const Making& first = makings[0];
    if (!again && (first.last.size() > 1 || from.rows.size() > 1 || first.whole != from.rows))
      return false;
    const bool by_matrices = !again && multiplies_matrices(t, first);
    for (const auto* list : {&from.products, &from.last}) {
      for (uint32_t c : *list) {
        if (has_matrices(t, steps_[c].product) && !by_matrices) return false;
      }
    }
    double read = 0;
    for (const Making& m : makings) {
      const std::optional<double> tiles = reads_by_tiles(t, work_of(m));
      if (!tiles) return false;
      read += *tiles;
    }
    const int64_t matrix = s_.buffers[steps_[from.rows[0]].writes].count * 4;
    const bool cached = !again && !t.exceeds_caches(matrix) && (t.l2_bytes || t.l3_bytes);
    const auto matrices = int64_t(from.products.size() + from.rows.size());
    return read <= double(kMatrixPasses * matrices * (cached ? 1 : kMemoryCost));
  }

  // Whether rows need not be whole: all that reads them is reduced in one sweep.
  bool one_sweep_fills(const Making& m) const {
    if (!reduces_rows(m)) return true;
    const UOp ast = with_factors_outside(sink(m.chain.ends()));
    const auto columns = columns_of_rows(ast);
    return columns && one_sweep(ast, *columns);
  }

  // Whether both factors of the last product walk these rows: each has a matrix of its own.
  static bool is_batch(const MatrixKernel& last, const UOp& rows) {
    const Node* product = through_casts(last.product->src(0).get());
    return depends_on(product->src(0), rows) && depends_on(product->src(1), rows);
  }
  static int64_t matrices(const MatrixKernel& last, const std::vector<UOp>& rows) {
    int64_t n = 1;
    for (const UOp& r : rows) n *= is_batch(last, r) ? r->src(0)->max : 1;
    return n;
  }
  // Along the innermost loop over them.
  static int64_t rows_of_matrix(const MatrixKernel& last, const std::vector<UOp>& rows) {
    int64_t n = 1;
    for (const UOp& r : rows)
      if (!is_batch(last, r)) n = r->src(0)->max;
    return n;
  }

  // ---- rows in parts ----
  // Where workgroups share rows, and there are too few of them for the cores, parts of each are
  // computed beside each other. Their length need not be known before.
  bool take_parts(const Island& from, const std::vector<Making>& makings) {
    const Target& t = target(from.last[0]);
    const Making& m = makings[0];
    if (!t.has_local || makings.size() > 1 || m.last.size() > 1 || m.whole != from.rows)
      return false;
    const int64_t rows = extent(m.chain.rows()),
                  most = std::min(kMostPart, m.chain.columns() / 2),
                  length = part_of_row(m.chain.column()->src(0), kLeastPart, most);
    if (length == 0 || rows >= kSharedRowsPerCore * int64_t(t.cores)) return false;
    if (std::ranges::any_of(m.lengths, [](int64_t n) { return n < kLeastLength; })) return false;
    const MatrixKernel& last = steps_[m.last[0]];
    if (has_matrices(t, last.product) && rows > kThinProduct * matrices(last, m.chain.rows()))
      return false;
    const std::optional<KeptParts> parts =
        in_kept_parts(m.chain.ends(), length, [&](DType dtype, int64_t count) {
          return new_memory(dtype, count, m.last[0]);
        });
    return parts && commit(from, makings, {{parts->parts, parts->combined}});
  }

  // ---- the calls ----
  bool commit(const Island& from, const std::vector<Making>& makings) {
    std::vector<std::vector<std::vector<UOp>>> kernels;
    for (const Making& m : makings) kernels.push_back({m.chain.ends()});
    return commit(from, makings, kernels);
  }
  // `kernels`: the Ends of each, one behind the other, for each of the makings.
  bool commit(const Island& from, const std::vector<Making>& makings,
              const std::vector<std::vector<std::vector<UOp>>>& kernels) {
    const CallGraph graph = graph_;
    const std::vector<uint32_t> head = head_;
    std::vector<std::vector<Call>> made(makings.size());
    for (size_t i = 0; i < makings.size(); i++) {
      const std::vector<uint32_t> members = members_of(i, from, makings);
      if (!made_one(members, makings[i], kernels[i], from, made[i])) {
        graph_ = graph, head_ = head;
        return false;
      }
    }
    for (size_t i = 0; i < makings.size(); i++) made_[makings[i].last.back()] = std::move(made[i]);
    return true;
  }
  bool made_one(const std::vector<uint32_t>& members, const Making& m,
                const std::vector<std::vector<UOp>>& kernels, const Island& from,
                std::vector<Call>& made) {
    const uint32_t c = m.last.back();
    for (const std::vector<UOp>& ends : kernels) {
      const Call& call = made.emplace_back(call_of(calls_[c].device, ends));
      if (call.args.size() > target(c).max_buffers || !keeps_apart(call) ||
          !reads_in_time(call, members, from))
        return false;
    }
    if (graph_.separated(std::span(members).first(members.size() - 1), c)) return false;
    unite(members);
    return true;
  }

  // The calls that end with a kernel: what several kernels compute goes with the first.
  std::vector<uint32_t> members_of(size_t making, const Island& from,
                                   const std::vector<Making>& makings) const {
    std::vector<uint32_t> out = makings[making].last;
    const auto keeper = [&](uint32_t r) {
      return size_t(std::find_if(makings.begin(), makings.end(),
                                 [&](const Making& m) { return contains(m.whole, r); }) -
                    makings.begin());
    };
    for (uint32_t r : from.rows) {
      if (keeper(r) == making) add_once(out, r);
    }
    for (uint32_t p : from.products) {
      const auto reader = std::find_if(from.rows.begin(), from.rows.end(), [&](uint32_t r) {
        return contains(steps_[r].reads, steps_[p].writes);
      });
      if (reader != from.rows.end() && keeper(*reader) == making) out.push_back(p);
    }
    std::sort(out.begin(), out.end());
    return out;
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
  // What a kernel reads that none of its members read, to compute it again, is not overwritten
  // behind the first call that read it.
  bool reads_in_time(const Call& made, const std::vector<uint32_t>& members,
                     const Island& from) const {
    const auto reads = [&](uint32_t slot) {
      return [this, slot](uint32_t c) { return contains(steps_[c].reads, slot); };
    };
    for (size_t x = made.output_count; x < made.args.size(); x++) {
      const uint32_t slot = made.args[x];
      if (std::ranges::any_of(members, reads(slot))) continue;
      auto first = uint32_t(calls_.size());
      for (const auto* list : {&from.products, &from.rows}) {
        const auto reader = std::ranges::find_if(*list, reads(slot));
        if (reader != list->end()) first = std::min(first, *reader);
      }
      for (uint32_t c = first; c < calls_.size(); c++) {
        if (!contains(from.rows, c) && writes(c, memory_[slot])) return false;
      }
    }
    return true;
  }
  bool writes(uint32_t c, uint32_t memory) const {
    const Call& call = calls_[c];
    return std::any_of(call.args.begin(), call.args.begin() + ptrdiff_t(call.output_count),
                       [&](uint32_t slot) { return memory_[slot] == memory; });
  }

  std::vector<MatrixKernel> steps_;                    // by call
  std::map<uint32_t, std::vector<MatrixKernel>> values_;  // by row kernel: one for each value
  std::vector<std::vector<Call>> made_;                // by call: what it became
  std::map<uint32_t, std::vector<uint32_t>> readers_;  // by slot, calls
  std::vector<uint32_t> tried_;                        // row kernels
};

}  // namespace

std::vector<Call> keep_rows(Schedule& s, std::span<const uint32_t> memory,
                            const TargetOf& target_of, std::span<const Call> calls) {
  return RowKeeper(s, memory, target_of, calls).run();
}

}  // namespace tuff::sched

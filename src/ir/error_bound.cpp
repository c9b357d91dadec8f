#include "ir/error_bound.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ir/kept_rows.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"

namespace tuff::ir {

namespace {

class Analysis {
 public:
  Analysis(const UOp& ast, const KernelInputs& inputs,
           const std::function<bool(const StoredElement&)>& wanted,
           const std::function<void(const StoredElement&, const Bounded&)>& found)
      : ast_(ast), inputs_(inputs), wanted_(wanted), found_(found) {}

  void run() {
    for (const UOp& end : ast_->src()) each(*end, 1, [&] { store(*end); });
  }

 private:
  using Memo = std::unordered_map<const Node*, Bounded>;

  // Calls body for each value of the ranges that are n's sources from k on.
  template <class Body>
  void each(const Node& n, size_t k, const Body& body) {
    if (k == n.src_count) return body();
    Memo memo;
    const Node* r = n.src(k).get();
    const int64_t size = eval(r->src(0).get(), memo).value.as_int();
    for (int64_t i = 0; i < size; i++) {
      ranges_[r] = i;
      each(n, k + 1, body);
    }
    ranges_.erase(r);
  }

  void store(const Node& end) {
    Memo memo;
    const Node& index = *end.src(0)->src(0);
    if (index.src_count > 2 && !eval(index.src(2).get(), memo).value.as_bool()) return;
    const StoredElement at{index.src(0)->get<ParamArg>().slot,
                           eval(index.src(1).get(), memo).value.as_int()};
    if (wanted_(at)) found_(at, eval(end.src(0)->src(1).get(), memo));
  }

  Bounded eval(const Node* n, Memo& memo) {
    if (n->is_const()) return {n->get<Scalar>()};
    if (n->op == Op::Range) return {Scalar::of_int(DType::Index, ranges_.at(n))};
    if (auto it = memo.find(n); it != memo.end()) return it->second;
    const Bounded v = compute(*n, memo);
    memo.emplace(n, v);
    return v;
  }

  Bounded compute(const Node& n, Memo& memo) {
    if (n.op == Op::Variable)
      return {Scalar::of_int(n.dtype, inputs_.variables.at(n.get<VariableArg>().name))};
    if (n.op == Op::Load) return load(n, memo);
    if (n.op == Op::Reduce) return reduced(n);
    std::vector<Scalar> values;
    std::vector<Bounded> src;
    for (const UOp& u : n.src()) values.push_back(src.emplace_back(eval(u.get(), memo)).value);
    const Scalar value = eval_scalar(n.op, n.dtype, values, word_of(n.arg));
    return {value, alu_error(n, src, value)};
  }

  Bounded load(const Node& n, Memo& memo) {
    const Node& index = *n.src(0);
    double error = 0;
    if (index.src_count > 2) {
      const Bounded gate = eval(index.src(2).get(), memo);
      error = gate.error > 0 ? kUnknownError : 0;
      if (!gate.value.as_bool()) return {Scalar::of_int(n.dtype, 0), error};
    }
    const Bounded offset = eval(index.src(1).get(), memo);
    if (offset.error > 0) error = kUnknownError;
    const auto& bytes = inputs_.buffers.at(size_t(index.src(0)->get<ParamArg>().slot));
    const size_t size = size_bytes(n.dtype), at = size_t(offset.value.as_int()) * size;
    TUFF_CHECK(at + size <= bytes.size(), "element {} of a buffer of {} bytes",
               offset.value.as_int(), bytes.size());
    const Scalar value = load_scalar(n.dtype, bytes.data() + at);
    return {value, error + leaf_error(value)};
  }

  // A row's sum is the same for all of its elements: once while the loops around it stand still.
  Bounded reduced(const Node& n) {
    const auto [it, is_new] = reduced_.try_emplace(&n);
    Reduced& last = it->second;
    if (is_new) {
      for (const Node* below : toposort(UOp(&n)))
        if (below->op == Op::Range) last.ranges.push_back(below);
    }
    std::vector<int64_t> at;
    for (const Node* r : last.ranges) {
      const auto open = ranges_.find(r);
      at.push_back(open == ranges_.end() ? -1 : open->second);
    }
    if (is_new || at != last.at) {
      last.value = reduce(n);
      last.at = std::move(at);
    }
    return last.value;
  }
  Bounded reduce(const Node& n) {
    const Op op = n.get<ReduceArg>().op;
    const DType acc = reference_accumulator(op, n.dtype);
    ReduceError error(op, n.dtype);
    Scalar value = Scalar::of_int(n.dtype, op == Op::Mul);
    bool started = false;
    each(n, 1, [&] {
      Memo memo;
      const Bounded x = eval(n.src(0).get(), memo);
      const Scalar term = x.value.cast(acc), pair[2] = {value, term};
      value = started ? eval_scalar(op, acc, pair) : term;
      started = true;
      error.add(x);
    });
    value = value.cast(n.dtype);
    return {value, error.of(value)};
  }

  const UOp ast_;
  const KernelInputs& inputs_;
  const std::function<bool(const StoredElement&)>& wanted_;
  const std::function<void(const StoredElement&, const Bounded&)>& found_;
  std::unordered_map<const Node*, int64_t> ranges_;
  struct Reduced {
    std::vector<const Node*> ranges;  // below it
    std::vector<int64_t> at;          // their values around it
    Bounded value;
  };
  std::unordered_map<const Node*, Reduced> reduced_;
};

// How far two devices' results from equal operands are apart; 0: it does not round.
double ulps_of(const Node& n) {
  if (!is_float(n.dtype)) return 0;
  return row(n.op == Op::Reduce ? n.get<ReduceArg>().op : n.op).ulps;
}

}  // namespace

void bound_errors(const UOp& ast, const KernelInputs& inputs,
                  const std::function<bool(const StoredElement&)>& wanted,
                  const std::function<void(const StoredElement&, const Bounded&)>& found) {
  const UOp direct = without_kept_rows(ast);
  Analysis(direct, inputs, wanted, found).run();
}

// A reduction inside another is made for each of its terms, unless they have it in common.
int64_t terms_of_element(const UOp& ast) {
  constexpr int64_t kMost = int64_t{1} << 40;
  struct Terms {
    int64_t all = 0;      // of one value
    bool inside = false;  // counted with another
  };
  std::unordered_map<const Node*, Terms> reductions;
  int64_t total = 1;
  const UOp direct = without_kept_rows(ast);
  for (const Node* n : toposort(direct)) {
    if (n->op != Op::Reduce) continue;
    int64_t own = 1, each = 1;
    for (const UOp& r : n->src().subspan(1)) own = std::min(own * r->src(0)->max, kMost);
    for (const Node* below : toposort(n->src(0))) {
      const auto it = reductions.find(below);
      const auto walks = [&](const UOp& r) { return depends_on(UOp(below), r); };
      if (it == reductions.end() || !std::ranges::any_of(n->src().subspan(1), walks)) continue;
      each = std::min(each + it->second.all, kMost);
      it->second.inside = true;
    }
    reductions[n].all = std::min(own, kMost / each) * each;
  }
  for (const auto& [n, terms] : reductions)
    total = std::min(total + (terms.inside ? 0 : terms.all), kMost);
  return total;
}

double plain_ulps(const UOp& ast) {
  std::unordered_map<const Node*, double> growth;
  double most = 0;
  for (const Node* n : toposort(ast)) {
    double g = 0;
    for (const UOp& s : n->src()) g = std::max(g, growth[s.get()]);
    if (n->op != Op::Reduce) g += 2 * ulps_of(*n);
    if (n->op == Op::Reduce && ulps_of(*n) > 0) {
      double terms = 1;
      for (const UOp& r : n->src().subspan(1)) terms *= double(r->src(0)->max);
      g += std::sqrt(terms);
    }
    growth[n] = g;
    most = std::max(most, g);
  }
  return most;
}

}  // namespace tuff::ir

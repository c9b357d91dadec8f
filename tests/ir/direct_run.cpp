#include "ir/direct_run.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/kept_rows.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"

namespace tuff::ir::testing {

namespace {

struct HashOfValues {
  size_t operator()(const std::vector<int64_t>& values) const {
    uint64_t h = 0;
    for (const int64_t v : values) h = (h ^ uint64_t(v)) * 0x9e3779b97f4a7c15;
    return size_t(h ^ h >> 32);
  }
};

// A value is computed again only when a range that it depends on has moved on or, if it loads, when
// something was stored since.
class DirectRun {
 public:
  DirectRun(const UOp& ast, const Place& place) : place_(place) {
    for (const Node* n : toposort(ast)) {
      number_.emplace(n, steps_.size());
      steps_.push_back(step_of(n));
    }
  }

  void loop(const UOp& end, size_t k) {
    if (k == end->src_count) {
      const Step& store = step(end->src(0).get());
      const Scalar v = eval(store.src[1]);
      if (std::byte* p = memory(steps_[store.src[0]], true)) store_scalar(v, p);
      stored_ = ++moments_;
      return;
    }
    const int64_t size = eval(step(end->src(k).get()).src[0]).as_int();
    walk(step(end->src(k).get()), size, [&] { loop(end, k + 1); });
  }

 private:
  struct Step {
    const Node* node;
    std::vector<size_t> src;
    std::vector<size_t> ranges;  // that the value depends on and does not walk itself
    bool loads = false;          // outside of reductions, whose results are kept
    int64_t word = 0;            // of the argument, if it is one
    uint64_t moment = 0;         // when `value` was computed, and for a Range when it moved
    Scalar value;
    bool open = false;  // of a Range: it has a value
    // Of a Reduce, by the values of `ranges`.
    std::unordered_map<std::vector<int64_t>, Scalar, HashOfValues> reduced;
  };

  Step step_of(const Node* n) const {
    Step s{n};
    s.loads = n->op == Op::Load;
    if (const int64_t* word = std::get_if<int64_t>(&n->arg)) s.word = *word;
    for (const UOp& u : n->src()) {
      s.src.push_back(number_.at(u.get()));
      const Step& below = steps_[s.src.back()];
      s.ranges.insert(s.ranges.end(), below.ranges.begin(), below.ranges.end());
      s.loads |= below.loads && n->op != Op::Reduce;
    }
    std::ranges::sort(s.ranges);
    s.ranges.erase(std::unique(s.ranges.begin(), s.ranges.end()), s.ranges.end());
    if (n->op == Op::Reduce)
      std::erase_if(s.ranges, [&](size_t r) { return std::ranges::count(s.src, r) > 0; });
    if (n->op == Op::Range) s.ranges = {steps_.size()};
    return s;
  }
  Step& step(const Node* n) { return steps_[number_.at(n)]; }

  // A reduction may walk the range of one that it is part of.
  template <class Body>
  void walk(Step& range, int64_t size, const Body& body) {
    const bool walked_around = std::exchange(range.open, true);
    const Scalar around = range.value;
    for (int64_t i = 0; i < size; i++) {
      move(range, Scalar::of_int(DType::Index, i));
      body();
    }
    range.open = walked_around;
    move(range, around);
  }
  void move(Step& range, const Scalar& to) {
    range.value = to;
    range.moment = ++moments_;
  }

  std::byte* memory(const Step& index, bool write) {
    if (index.src.size() > 2 && !eval(index.src[2]).as_bool()) return nullptr;
    return place_(*index.node, eval(index.src[1]).as_int(), write);
  }

  bool is_current(const Step& s) const {
    if (s.moment == 0 || (s.loads && s.moment < stored_)) return false;
    return std::ranges::none_of(s.ranges, [&](size_t r) { return s.moment < steps_[r].moment; });
  }
  const Scalar& eval(size_t at) {
    Step& s = steps_[at];
    if (s.node->op == Op::Range) {
      TUFF_CHECK(s.open, "range r{} is not open", s.node->get<RangeArg>().id);
      return s.value;
    }
    if (!is_current(s)) {
      s.value = compute(s);
      s.moment = ++moments_;
    }
    return s.value;
  }
  Scalar compute(Step& s) {
    const Node& n = *s.node;
    if (n.op == Op::Const) return n.get<Scalar>();
    if (n.op == Op::Load) {
      const std::byte* p = memory(steps_[s.src[0]], false);
      return p ? load_scalar(n.dtype, p) : Scalar{n.dtype, 0};
    }
    if (n.op == Op::Reduce) return reduce(s);
    Scalar in[4];
    for (size_t k = 0; k < s.src.size(); k++) in[k] = eval(s.src[k]);
    return eval_scalar(n.op, n.dtype, std::span<const Scalar>(in, s.src.size()), s.word);
  }
  Scalar reduce(Step& s) {
    std::vector<int64_t> key;
    for (const size_t r : s.ranges) key.push_back(eval(r).as_int());
    if (const auto it = s.reduced.find(key); it != s.reduced.end()) return it->second;
    const DType t = s.node->dtype, kept = is_float(t) ? accumulator(t) : t;
    Scalar total = reduce_identity(s.node->get<ReduceArg>().op, kept);
    fold(s, s.node->get<ReduceArg>().op, 1, total);
    return s.reduced[key] = total.cast(t);
  }
  void fold(const Step& s, Op op, size_t k, Scalar& total) {
    if (k < s.src.size()) {
      const int64_t size = eval(steps_[s.src[k]].src[0]).as_int();
      walk(steps_[s.src[k]], size, [&] { fold(s, op, k + 1, total); });
      return;
    }
    const Scalar pair[2] = {total, eval(s.src[0]).cast(total.dtype)};
    total = eval_scalar(op, total.dtype, pair);
  }

  const Place& place_;
  std::unordered_map<const Node*, size_t> number_;
  std::vector<Step> steps_;
  uint64_t moments_ = 0, stored_ = 0;
};

}  // namespace

void run_direct(const UOp& ast, const Place& place) {
  const UOp direct = without_kept_rows(ast);
  DirectRun run(direct, place);
  for (const UOp& end : direct->src()) run.loop(end, 1);
}

}  // namespace tuff::ir::testing

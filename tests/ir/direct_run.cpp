#include "ir/direct_run.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/kept_rows.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"

namespace tuff::ir::testing {

namespace {

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
      now_ = ++moments_;
      const Step& store = step(end->src(0).get());
      const Scalar v = eval(store.src[1]);
      if (std::byte* p = memory(steps_[store.src[0]], true)) store_scalar(v, p);
      return;
    }
    now_ = ++moments_;
    const int64_t size = eval(step(end->src(k).get()).src[0]).as_int();
    walk(step(end->src(k).get()), size, [&] { loop(end, k + 1); });
  }

 private:
  struct Step {
    const Node* node;
    std::vector<size_t> src;
    std::vector<size_t> ranges;  // that the value depends on and does not walk itself
    uint64_t moment = 0;         // when `value` was computed
    Scalar value;
    bool open = false;                               // of a Range: it has a value
    std::map<std::vector<int64_t>, Scalar> reduced;  // of a Reduce, by the values of `ranges`
  };

  Step step_of(const Node* n) const {
    Step s{n};
    for (const UOp& u : n->src()) {
      s.src.push_back(number_.at(u.get()));
      const std::vector<size_t>& below = steps_[s.src.back()].ranges;
      s.ranges.insert(s.ranges.end(), below.begin(), below.end());
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
      range.value = Scalar::of_int(DType::Index, i);
      body();
    }
    range.open = walked_around;
    range.value = around;
  }

  std::byte* memory(const Step& index, bool write) {
    if (index.src.size() > 2 && !eval(index.src[2]).as_bool()) return nullptr;
    return place_(*index.node, eval(index.src[1]).as_int(), write);
  }

  // Computed once until a range moves on.
  Scalar eval(size_t at) {
    Step& s = steps_[at];
    if (s.node->op == Op::Const) return s.node->get<Scalar>();
    if (s.node->op == Op::Range) {
      TUFF_CHECK(s.open, "range r{} is not open", s.node->get<RangeArg>().id);
      return s.value;
    }
    if (s.moment != now_) {
      s.value = compute(s);
      s.moment = now_;
    }
    return s.value;
  }
  Scalar compute(Step& s) {
    const Node& n = *s.node;
    if (n.op == Op::Load) {
      const std::byte* p = memory(steps_[s.src[0]], false);
      return p ? load_scalar(n.dtype, p) : Scalar{n.dtype, 0};
    }
    if (n.op == Op::Reduce) return reduce(s);
    Scalar in[4];
    for (size_t k = 0; k < s.src.size(); k++) in[k] = eval(s.src[k]);
    const int64_t* word = std::get_if<int64_t>(&n.arg);
    return eval_scalar(n.op, n.dtype, std::span<const Scalar>(in, s.src.size()), word ? *word : 0);
  }
  Scalar reduce(Step& s) {
    std::vector<int64_t> key;
    for (const size_t r : s.ranges) key.push_back(eval(r).as_int());
    if (const auto it = s.reduced.find(key); it != s.reduced.end()) return it->second;
    const DType t = s.node->dtype, kept = is_float(t) ? accumulator(t) : t;
    Scalar total = reduce_identity(s.node->get<ReduceArg>().op, kept);
    const uint64_t outer = now_;
    fold(s, 1, total);
    now_ = outer;
    return s.reduced[key] = total.cast(t);
  }
  void fold(const Step& s, size_t k, Scalar& total) {
    if (k < s.src.size()) {
      const int64_t size = eval(steps_[s.src[k]].src[0]).as_int();
      walk(steps_[s.src[k]], size, [&] { fold(s, k + 1, total); });
      return;
    }
    now_ = ++moments_;
    const Scalar pair[2] = {total, eval(s.src[0]).cast(total.dtype)};
    total = eval_scalar(s.node->get<ReduceArg>().op, total.dtype, pair);
  }

  const Place& place_;
  std::unordered_map<const Node*, size_t> number_;
  std::vector<Step> steps_;
  uint64_t now_ = 0, moments_ = 0;
};

}  // namespace

void run_direct(const UOp& ast, const Place& place) {
  const UOp direct = without_kept_rows(ast);
  DirectRun run(direct, place);
  for (const UOp& end : direct->src()) run.loop(end, 1);
}

}  // namespace tuff::ir::testing

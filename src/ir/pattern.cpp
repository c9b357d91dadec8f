// Matching of patterns (with full backtracking over commutative orders) and rule sets bucketed by
// op.
#include "ir/pattern.h"

#include <array>
#include <atomic>
#include <optional>

namespace tuff::ir {
namespace {

static_assert(kOpRows.size() <= 64, "sets of ops are 64-bit masks");
constexpr uint64_t kAnyOp = ~uint64_t{0};
constexpr size_t kMaxPatternSources = 4;

uint64_t bit(Op o) { return uint64_t{1} << unsigned(o); }

}  // namespace

struct Pat::Body {
  uint64_t ops = kAnyOp;
  std::optional<DType> dtype;
  std::optional<double> value;  // of a Const
  int slot = -1;
  bool fixed_sources = false;  // exactly `src`
  std::vector<Pat> src;
  std::function<bool(const UOp&)> test;
};

namespace {

Pat make_pat(Pat::Body b) {
  TUFF_CHECK(b.slot < kMaxCaptures, "capture slot {} is above {}", b.slot, kMaxCaptures - 1);
  TUFF_CHECK(b.src.size() <= kMaxPatternSources, "a pattern has at most {} sources",
             kMaxPatternSources);
  return Pat(std::make_shared<const Pat::Body>(std::move(b)));
}

// What is still to be matched: a list on the call stack, so that a choice made early can be undone
// when something later fails.
struct Task {
  const Pat::Body* pat;
  const UOp* node;
  const Task* rest;
};

bool solve(const Task* task, Match& m);

bool solve_sources(const Task* task, Match& m) {
  const Pat::Body& p = *task->pat;
  const UOp& u = *task->node;
  if (!p.fixed_sources) return solve(task->rest, m);
  const size_t n = p.src.size();
  if (u->src_count != n) return false;
  std::array<Task, kMaxPatternSources> tasks;
  const bool swap = n == 2 && is_commutative(u->op);
  for (int order = 0; order < (swap ? 2 : 1); order++) {
    const Task* rest = task->rest;
    for (size_t i = n; i-- > 0;) {
      tasks[i] = {&p.src[i].body(), &u->src(order ? n - 1 - i : i), rest};
      rest = &tasks[i];
    }
    if (solve(rest, m)) return true;
  }
  return false;
}

bool accepts(const Pat::Body& p, const UOp& u) {
  if (!(p.ops & bit(u->op)) || (p.dtype && *p.dtype != u->dtype)) return false;
  if (p.value && u->get<Scalar>().as_double() != *p.value) return false;
  return !p.test || p.test(u);
}

bool solve(const Task* task, Match& m) {
  if (!task) return true;
  const Pat::Body& p = *task->pat;
  const UOp& u = *task->node;
  if (!accepts(p, u)) return false;
  if (p.slot < 0) return solve_sources(task, m);
  if (m.captures[p.slot]) return m.captures[p.slot] == u && solve_sources(task, m);
  m.captures[p.slot] = u;
  if (solve_sources(task, m)) return true;
  m.captures[p.slot] = UOp();
  return false;
}

}  // namespace

Pat Pat::of(DType t) const {
  Body b = body();
  b.dtype = t;
  return make_pat(std::move(b));
}

Pat Pat::when(std::function<bool(const UOp&)> test) const {
  Body b = body();
  if (b.test) {
    b.test = [first = b.test, second = std::move(test)](const UOp& u) {
      return first(u) && second(u);
    };
  } else {
    b.test = std::move(test);
  }
  return make_pat(std::move(b));
}

Pat any(int slot) { return make_pat({.slot = slot}); }
Pat cst(int slot) { return make_pat({.ops = bit(Op::Const), .slot = slot}); }
Pat cst_is(double value) { return make_pat({.ops = bit(Op::Const), .value = value}); }
Pat op(Op o, std::vector<Pat> src) { return op(o, std::move(src), -1); }
Pat op(Op o, std::vector<Pat> src, int slot) {
  return make_pat({.ops = bit(o), .slot = slot, .fixed_sources = true, .src = std::move(src)});
}
Pat op_any(Op o, int slot) { return make_pat({.ops = bit(o), .slot = slot}); }
Pat op_in(std::vector<Op> ops, int slot) {
  uint64_t set = 0;
  for (Op o : ops) set |= bit(o);
  return make_pat({.ops = set, .slot = slot});
}
Pat operator+(const Pat& a, const Pat& b) { return op(Op::Add, {a, b}); }
Pat operator-(const Pat& a, const Pat& b) { return op(Op::Sub, {a, b}); }
Pat operator*(const Pat& a, const Pat& b) { return op(Op::Mul, {a, b}); }
Pat floordiv(const Pat& a, const Pat& b) { return op(Op::FloorDiv, {a, b}); }
Pat floormod(const Pat& a, const Pat& b) { return op(Op::FloorMod, {a, b}); }

struct RuleSet::State {
  struct Counter {
    std::atomic<uint64_t> tries{0}, hits{0};
  };
  std::string name;
  std::vector<Rule> rules;
  std::vector<std::vector<uint64_t>> required;  // per rule: op sets that each need a source
  std::array<std::vector<uint16_t>, kOpRows.size()> buckets;
  mutable std::vector<Counter> counters;
};

namespace {

void count(std::atomic<uint64_t>& c) {
  c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

bool rejects(const std::vector<uint64_t>& required, uint64_t source_ops) {
  for (uint64_t set : required) {
    if (!(set & source_ops)) return true;
  }
  return false;
}

// The rule's result, provided that it is another node of the same dtype and shape.
UOp try_rule(const Rule& rule, const UOp& u) {
  Match m;
  m.root = u;
  const Task task{&rule.pattern.body(), &m.root, nullptr};
  if (!solve(&task, m)) return {};
  UOp result = rule.result(m);
  if (!result || result == u || result->dtype != u->dtype || !(result->shape == u->shape))
    return {};
  return result;
}

}  // namespace

RuleSet::RuleSet(std::string name, std::vector<Rule> rules) : state_(std::make_shared<State>()) {
  State& s = *state_;
  s.name = std::move(name);
  s.rules = std::move(rules);
  s.counters = std::vector<State::Counter>(s.rules.size());
  for (size_t i = 0; i < s.rules.size(); i++) {
    const Pat::Body& p = s.rules[i].pattern.body();
    std::vector<uint64_t> required;
    for (const Pat& child : p.src) {
      if (child.body().ops != kAnyOp) required.push_back(child.body().ops);
    }
    s.required.push_back(std::move(required));
    for (size_t o = 0; o < kOpRows.size(); o++) {
      if (p.ops >> o & 1) s.buckets[o].push_back(uint16_t(i));
    }
  }
}

RuleSet RuleSet::operator+(const RuleSet& other) const {
  std::vector<Rule> all = rules();
  all.insert(all.end(), other.rules().begin(), other.rules().end());
  return RuleSet(name() + "+" + other.name(), std::move(all));
}

const std::string& RuleSet::name() const { return state_->name; }
const std::vector<Rule>& RuleSet::rules() const { return state_->rules; }
bool RuleSet::has_rules_for(Op op) const { return !state_->buckets[size_t(op)].empty(); }

std::vector<RuleCount> RuleSet::counts() const {
  std::vector<RuleCount> out;
  for (size_t i = 0; i < state_->rules.size(); i++) {
    const State::Counter& c = state_->counters[i];
    out.push_back({state_->rules[i].name, c.tries.load(), c.hits.load()});
  }
  return out;
}

UOp RuleSet::apply_one(size_t i, const UOp& u) const { return try_rule(state_->rules.at(i), u); }

UOp RuleSet::apply(const UOp& u, const char** rule_name) const {
  const State& s = *state_;
  const auto& bucket = s.buckets[size_t(u->op)];
  if (bucket.empty()) return {};
  uint64_t source_ops = 0;
  for (const UOp& x : u->src()) source_ops |= bit(x->op);
  for (uint16_t i : bucket) {
    if (rejects(s.required[i], source_ops)) continue;
    count(s.counters[i].tries);
    if (UOp result = try_rule(s.rules[i], u)) {
      count(s.counters[i].hits);
      if (rule_name) *rule_name = s.rules[i].name;
      return result;
    }
  }
  return {};
}

}  // namespace tuff::ir

// Rules: named rows (name, which nodes, result), and the loop that applies them to a fixpoint.
// Called by the symbolic rules, and by symbolic.cpp alone to run them. Rules must terminate, keep
// dtype and shape, and not worsen code (see "rules for rules" in ARCHITECTURE.md).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <initializer_list>
#include <mutex>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

// The nodes that a rule is tried at: those of some ops that pass a test.
class Roots {
 public:
  using Test = bool (*)(const UOp&);
  Roots(std::initializer_list<Op> ops, Test test = nullptr)
      : Roots([&](Op op) { return std::find(ops.begin(), ops.end(), op) != ops.end(); }, test) {}
  template <std::predicate<Op> Group>
  explicit Roots(Group group, Test test = nullptr) : test_(test) {
    for (size_t i = 0; i < kOpRows.size(); i++) ops_[i] = group(Op(i));
  }
  bool has(Op op) const { return ops_[size_t(op)]; }
  bool accepts(const UOp& u) const { return has(u->op) && (!test_ || test_(u)); }

 private:
  std::array<bool, kOpRows.size()> ops_{};
  Test test_;
};

struct Rule {
  const char* name;  // "mul-zero"
  Roots roots;
  UOp (*result)(const UOp& root);  // empty UOp: the condition did not hold
};

// How often a rule was tried at a node of its root op, and how often it gave a result. Not exact
// when several threads count at once: a lost count is cheaper than a contended one.
struct RuleCount {
  const char* name;
  uint64_t tries, hits;
};

// Rules bucketed by root op, tried in order, with counters of tries and hits for each.
class RuleSet {
 public:
  RuleSet(const char* name, std::vector<Rule> rules);
  const char* name() const { return name_; }
  const std::vector<Rule>& rules() const { return rules_; }
  // One application at this node; empty if none applies.
  UOp apply(const UOp& u, const char** rule_name = nullptr) const;
  // The rules[i] alone at this node; empty if it does not apply. For tests and diagnosis; not
  // counted.
  UOp apply_one(size_t i, const UOp& u) const;
  bool has_rules_for(Op op) const { return !buckets_[size_t(op)].empty(); }
  std::vector<RuleCount> counts() const;  // in the order of rules()

 private:
  struct Counter {
    std::atomic<uint64_t> tries{0}, hits{0};
  };
  const char* name_;
  std::vector<Rule> rules_;
  std::array<std::vector<uint16_t>, kOpRows.size()> buckets_;
  mutable std::vector<Counter> counters_;
};

// Results that outlive one call, direct-mapped: a new result takes the place of an older one, so
// memory is bounded. Sound because nodes never change and an entry keeps its nodes alive.
class RewriteCache {
 public:
  UOp find(const UOp& u);  // empty if unknown
  void insert(const UOp& u, const UOp& result);
  void clear();

 private:
  static constexpr size_t kEntries = 1 << 15, kLocks = 64;
  struct Entry {
    UOp key, result;
  };
  std::array<Entry, kEntries> entries_;
  std::array<std::mutex, kLocks> locks_;
};

// Rewrites to a fixpoint, sources first; memoized per call, and across calls with a cache. Range
// and Special are leaves: a loop's counter stays the node that its loop knows. TUFF_CHECK fails
// with rule and node if a node is rewritten more than 1,000 times.
UOp rewrite(const UOp& root, const RuleSet& rules, RewriteCache* cache = nullptr);

}  // namespace tuff::ir

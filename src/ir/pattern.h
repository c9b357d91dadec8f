// Patterns and rules: named rows (pattern, condition, result) that read as algebra.
// Called by graph's own rule files, sched and kernel. Rules must terminate, keep dtype and shape,
// and not worsen code (see "rules for rules" in ARCHITECTURE.md).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/uop.h"

namespace tuff::ir {

inline constexpr int kMaxCaptures = 8;

// What a pattern bound: captures by slot, and the matched node itself.
struct Match {
  UOp root;
  UOp captures[kMaxCaptures];
  const UOp& operator[](int i) const { return captures[i]; }
};

// A pattern tree. Captured nodes that occur twice must be the same node; commutative ops match
// either order. Built by the functions below.
class Pat {
 public:
  struct Body;
  explicit Pat(std::shared_ptr<const Body> b) : body_(std::move(b)) {}
  const Body& body() const { return *body_; }
  Pat of(DType t) const;                                 // also requires this dtype
  Pat when(std::function<bool(const UOp&)> test) const;  // also requires this
 private:
  std::shared_ptr<const Body> body_;
};

Pat any(int slot);                   // anything, captured
Pat cst(int slot);                   // a Const, captured
Pat cst_is(double value);            // a Const equal to this
Pat op(Op o, std::vector<Pat> src);  // exactly these sources
Pat op(Op o, std::vector<Pat> src, int slot);
Pat op_any(Op o, int slot);                // this op whatever its sources, captured
Pat op_in(std::vector<Op> ops, int slot);  // one of these ops whatever its sources, captured
Pat operator+(const Pat&, const Pat&);
Pat operator-(const Pat&, const Pat&);
Pat operator*(const Pat&, const Pat&);
Pat floordiv(const Pat&, const Pat&);
Pat floormod(const Pat&, const Pat&);

struct Rule {
  const char* name;  // "mul-zero"
  Pat pattern;
  std::function<UOp(const Match&)> result;  // empty UOp: the condition did not hold
};

// How often a rule was tried at a node of its root op, and how often it gave a result. Not exact
// when several threads count at once: a lost count is cheaper than a contended one.
struct RuleCount {
  const char* name;
  uint64_t tries, hits;
};

// Rules bucketed by root op, with per-rule counters of tries and hits.
class RuleSet {
 public:
  RuleSet(std::string name, std::vector<Rule> rules);
  RuleSet operator+(const RuleSet& other) const;  // tried in order
  const std::string& name() const;
  const std::vector<Rule>& rules() const;
  // One application at this node; empty if none applies.
  UOp apply(const UOp& u, const char** rule_name = nullptr) const;
  // The rules[i] alone at this node; empty if it does not apply. For tests and diagnosis; not
  // counted.
  UOp apply_one(size_t i, const UOp& u) const;
  bool has_rules_for(Op op) const;
  std::vector<RuleCount> counts() const;  // in the order of rules()

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Rewrites to a fixpoint, sources first; memoized per call. TUFF_CHECK fails with rule and node
// names if a node is rewritten more than 1,000 times. Keeps dtype and shape (checked when
// TUFF_SPEC).
UOp rewrite(const UOp& root, const RuleSet& rules);

}  // namespace tuff::ir

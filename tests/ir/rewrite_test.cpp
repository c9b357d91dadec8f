// Rule sets, the rewriting loop, and the rules of identities in every order of their operands.
#include <gtest/gtest.h>

#include "ir/rewrite.h"
#include "ir/symbolic.h"
#include "ir/text.h"

namespace tuff::ir {
namespace {

UOp v(const char* name) { return variable(name, 0, 100); }
UOp raw(Op op, const UOp& a, const UOp& b) { return make(op, a->dtype, {a, b}); }
UOp left(const UOp& u) { return u->src(0); }
UOp right(const UOp& u) { return u->src(1); }
UOp apply(const Rule& rule, const UOp& u) { return RuleSet("one", {rule}).apply(u); }

// What the symbolic rule of this name makes of a node; empty if it does not apply.
UOp by_rule(std::string_view name, const UOp& u) {
  const RuleSet& rules = symbolic_rules();
  for (size_t i = 0; i < rules.rules().size(); i++) {
    if (rules.rules()[i].name == name) return rules.apply_one(i, u);
  }
  ADD_FAILURE() << "there is no rule " << name;
  return {};
}

TEST(Roots, AreOpsOfAGroupOrAListThatPassTheTest) {
  const UOp x = v("x"), sum = raw(Op::Add, x, index_const(4));
  const auto never = [](const UOp&) { return false; };
  EXPECT_TRUE(apply({"r", {Op::Sub, Op::Add}, left}, sum));
  EXPECT_FALSE(apply({"r", {Op::Sub, Op::Mul}, left}, sum));
  EXPECT_TRUE(apply({"r", Roots(is_alu), left}, sum));
  EXPECT_FALSE(apply({"r", Roots(is_movement), left}, sum));
  EXPECT_FALSE(apply({"r", {{Op::Add}, never}, left}, sum));
}

TEST(RuleSet, CountsTriesAndHitsAndKeepsOrder) {
  const RuleSet rules("r", {{"never", {Op::Add}, [](const UOp&) { return UOp(); }},
                            {"left", {Op::Add}, left},
                            {"right", {Op::Add}, right}});
  const char* rule = nullptr;
  EXPECT_EQ(rules.apply(raw(Op::Add, v("x"), v("y")), &rule), v("x"));
  EXPECT_STREQ(rule, "left");
  EXPECT_FALSE(rules.apply(raw(Op::Mul, v("x"), v("y"))));
  const auto counts = rules.counts();
  EXPECT_EQ(counts[0].tries, 1u);
  EXPECT_EQ(counts[0].hits, 0u);
  EXPECT_EQ(counts[1].hits, 1u);
  EXPECT_EQ(counts[2].tries, 0u);
}

TEST(RuleSet, ResultsOfAnotherTypeDoNotApply) {
  EXPECT_FALSE(apply({"r", {Op::Add}, [](const UOp&) { return bool_const(true); }},
                     raw(Op::Add, v("x"), v("y"))));
}

TEST(IdentityRules, CommutativeOpsHaveTheirConstantOnEitherSide) {
  const UOp x = v("x"), zero = index_const(0), one = index_const(1);
  for (const bool swapped : {false, true}) {
    const auto of = [&](Op op, const UOp& c) { return swapped ? raw(op, c, x) : raw(op, x, c); };
    EXPECT_EQ(by_rule("mul-one", of(Op::Mul, one)), x);
    EXPECT_EQ(by_rule("mul-zero", of(Op::Mul, zero)), zero);
    EXPECT_EQ(by_rule("add-zero", of(Op::Add, zero)), x);
    EXPECT_FALSE(by_rule("mul-one", of(Op::Mul, index_const(2))));
    EXPECT_FALSE(by_rule("add-zero", of(Op::Add, one)));
  }
}

TEST(IdentityRules, OrderedOpsKeepTheirOrder) {
  const UOp x = v("x"), zero = index_const(0);
  EXPECT_EQ(by_rule("sub-zero", raw(Op::Sub, x, zero)), x);
  EXPECT_FALSE(by_rule("sub-zero", raw(Op::Sub, zero, x)));
  EXPECT_FALSE(by_rule("mul-one", raw(Op::Sub, x, index_const(1))));
}

TEST(IdentityRules, FloatsKeepWhatZerosWouldLose) {
  const UOp x = make(Op::Cast, DType::F32, {v("x")}), zero = constant(DType::F32, 0);
  EXPECT_FALSE(by_rule("mul-zero", raw(Op::Mul, x, zero)));
  EXPECT_FALSE(by_rule("add-zero", raw(Op::Add, x, zero)));
  EXPECT_FALSE(by_rule("sub-zero", raw(Op::Sub, x, zero)));
  EXPECT_EQ(by_rule("mul-one", raw(Op::Mul, x, constant(DType::F32, 1))), x);
}

TEST(IdentityRules, ChoicesOfOneConditionAreOne) {
  const UOp x = v("x"), y = v("y"), z = v("z"), c = lt(x, y), other = lt(y, z);
  const auto choice = [](const UOp& c, const UOp& a, const UOp& b) {
    return make(Op::Where, a->dtype, {c, a, b});
  };
  EXPECT_EQ(by_rule("where-const", choice(bool_const(false), x, y)), y);
  EXPECT_EQ(by_rule("where-same", choice(c, x, x)), x);
  EXPECT_FALSE(by_rule("where-same", choice(c, x, y)));
  EXPECT_EQ(by_rule("where-not", choice(logical_not(c), x, y)), choice(c, y, x));
  EXPECT_EQ(by_rule("where-where-then", choice(c, choice(c, x, y), z)), choice(c, x, z));
  EXPECT_EQ(by_rule("where-where-else", choice(c, x, choice(c, y, z))), choice(c, x, z));
  EXPECT_FALSE(by_rule("where-where-then", choice(c, choice(other, x, y), z)));
  EXPECT_FALSE(by_rule("where-where-else", choice(c, x, choice(other, y, z))));
}

TEST(Rewrite, ReachesTheFixpointSourcesFirst) {
  const auto less_one = [](const UOp& u) {
    const int64_t n = u->src(1)->const_int();
    return n > 0 ? raw(Op::Mul, u->src(0), index_const(n - 1)) : UOp();
  };
  const RuleSet rules(
      "r", {{"zero", {Op::Add}, [](const UOp& u) { return right(u)->is_const_int(0) ? left(u) : UOp(); }},
            {"count-down", {Op::Mul}, less_one},
            {"gone", {Op::Mul}, [](const UOp&) { return index_const(0); }}});
  const UOp x = v("x");
  EXPECT_EQ(rewrite(raw(Op::Add, x, raw(Op::Mul, v("y"), index_const(20))), rules), x);
}

TEST(Rewrite, EndlessRulesAreNamed) {
  const RuleSet swap("endless", {{"swap", {Op::Sub}, [](const UOp& u) {
                                    return raw(Op::Sub, u->src(1), u->src(0));
                                  }}});
  const RuleSet grow("endless", {{"grow", {Op::Sub}, [](const UOp& u) {
                                    return raw(Op::Sub, u, index_const(1));
                                  }}});
  for (const RuleSet* rules : {&swap, &grow}) {
    try {
      rewrite(raw(Op::Sub, v("x"), v("y")), *rules);
      FAIL() << "came to an end";
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(rules->rules()[0].name), std::string::npos) << e.what();
    }
  }
}

TEST(Rewrite, DeepAndSharedGraphs) {
  const RuleSet rules("r", {{"double", {Op::Add}, [](const UOp& u) {
                               return left(u) == right(u) ? raw(Op::Mul, left(u), index_const(2))
                                                          : UOp();
                             }}});
  UOp x = v("x");
  for (int i = 0; i < 20000; i++) x = raw(Op::Add, x, x);  // 2^20000 paths
  UOp y = rewrite(x, rules);
  int depth = 0;
  while (y->op == Op::Mul) {
    y = y->src(0);
    depth++;
  }
  EXPECT_EQ(depth, 20000);
  EXPECT_EQ(y, v("x"));
}

}  // namespace
}  // namespace tuff::ir

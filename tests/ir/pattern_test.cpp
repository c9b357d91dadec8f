// Patterns, rule sets and the rewriting loop.
#include <gtest/gtest.h>

#include "ir/pattern.h"
#include "ir/text.h"

namespace tuff::ir {
namespace {

UOp v(const char* name) { return variable(name, 0, 100); }
UOp raw(Op op, const UOp& a, const UOp& b) { return make(op, a->dtype, {a, b}); }
UOp apply(const Rule& rule, const UOp& u) { return RuleSet("one", {rule}).apply(u); }

TEST(Pattern, CapturesAndRepeats) {
  const Rule twice{"twice", any(0) + any(0), [](const Match& m) { return m[0] * 2; }};
  EXPECT_EQ(apply(twice, raw(Op::Add, v("x"), v("x"))), v("x") * 2);
  EXPECT_FALSE(apply(twice, raw(Op::Add, v("x"), v("y"))));
}

// x*c + x in all orders: the repeated capture decides which order of the inner product fits.
TEST(Pattern, CommutativeOrdersBacktrack) {
  const Rule rule{"mul-add", (any(0) * any(1)) + any(0),
                  [](const Match& m) { return raw(Op::Mul, m[0], m[1]); }};
  const UOp x = v("x"), y = v("y");
  for (const UOp& p : {raw(Op::Mul, x, y), raw(Op::Mul, y, x)}) {
    EXPECT_EQ(apply(rule, raw(Op::Add, p, x)), raw(Op::Mul, x, y));
    EXPECT_EQ(apply(rule, raw(Op::Add, x, p)), raw(Op::Mul, x, y));
    EXPECT_EQ(apply(rule, raw(Op::Add, p, y)), raw(Op::Mul, y, x));
  }
  EXPECT_FALSE(apply(rule, raw(Op::Add, raw(Op::Mul, x, y), v("z"))));
}

TEST(Pattern, OrderedOpsKeepTheirOrder) {
  const Rule rule{"minus-const", any(0) - cst(1), [](const Match& m) { return m[0]; }};
  EXPECT_TRUE(apply(rule, raw(Op::Sub, v("x"), index_const(3))));
  EXPECT_FALSE(apply(rule, raw(Op::Sub, index_const(3), v("x"))));
}

TEST(Pattern, DTypesValuesAndTests) {
  auto id = [](const Match& m) { return m[0]; };
  const UOp x = v("x"), sum = raw(Op::Add, x, index_const(4));
  EXPECT_TRUE(apply({"r", any(0) + cst_is(4), id}, sum));
  EXPECT_FALSE(apply({"r", any(0) + cst_is(5), id}, sum));
  EXPECT_TRUE(apply({"r", any(0).of(DType::Index) + cst(1), id}, sum));
  EXPECT_FALSE(apply({"r", any(0).of(DType::F32) + cst(1), id}, sum));
  EXPECT_FALSE(apply({"r", (any(0) + cst(1)).when([](const UOp&) { return false; }), id}, sum));
  EXPECT_TRUE(apply({"r", op_in({Op::Sub, Op::Add}, 1), [&](const Match&) { return x; }}, sum));
  EXPECT_FALSE(apply({"r", op_in({Op::Sub, Op::Mul}, 1), [&](const Match&) { return x; }}, sum));
}

TEST(RuleSet, CountsTriesAndHitsAndKeepsOrder) {
  const RuleSet rules("r", {{"never", op_any(Op::Add, 0), [](const Match&) { return UOp(); }},
                            {"left", any(0) + any(1), [](const Match& m) { return m[0]; }},
                            {"right", any(0) + any(1), [](const Match& m) { return m[1]; }}});
  const char* rule = nullptr;
  EXPECT_EQ(rules.apply(raw(Op::Add, v("x"), v("y")), &rule), v("x"));
  EXPECT_STREQ(rule, "left");
  EXPECT_FALSE(rules.apply(raw(Op::Mul, v("x"), v("y"))));
  const auto counts = rules.counts();
  EXPECT_EQ(counts[0].tries, 1u);
  EXPECT_EQ(counts[0].hits, 0u);
  EXPECT_EQ(counts[1].hits, 1u);
  EXPECT_EQ(counts[2].tries, 0u);
  EXPECT_EQ((rules + rules).rules().size(), 6u);
}

TEST(RuleSet, ResultsOfAnotherTypeDoNotApply) {
  EXPECT_FALSE(apply({"r", any(0) + any(1), [](const Match&) { return bool_const(true); }},
                     raw(Op::Add, v("x"), v("y"))));
}

TEST(Rewrite, ReachesTheFixpointSourcesFirst) {
  const RuleSet rules(
      "r", {{"zero", any(0) + cst_is(0), [](const Match& m) { return m[0]; }},
            {"count-down", any(0) * cst(1),
             [](const Match& m) {
               return m[1]->const_int() > 0 ? raw(Op::Mul, m[0], index_const(m[1]->const_int() - 1))
                                            : UOp();
             }},
            {"gone", any(0) * cst_is(0), [](const Match&) { return index_const(0); }}});
  const UOp x = v("x");
  EXPECT_EQ(rewrite(raw(Op::Add, x, raw(Op::Mul, v("y"), index_const(20))), rules), x);
}

TEST(Rewrite, EndlessRulesAreNamed) {
  const RuleSet swap("endless", {{"swap", any(0) - any(1),
                                  [](const Match& m) { return raw(Op::Sub, m[1], m[0]); }}});
  const RuleSet grow("endless", {{"grow", op_any(Op::Sub, 0), [](const Match& m) {
                                    return raw(Op::Sub, m.root, index_const(1));
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
  const RuleSet rules("r", {{"double", any(0) + any(0),
                             [](const Match& m) { return raw(Op::Mul, m[0], index_const(2)); }}});
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

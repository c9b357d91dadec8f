// The text form both ways: every kind of arg, random graphs, errors with line and reason.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/loop.h"
#include "ir/random_index.h"
#include "ir/rule.h"
#include "ir/spec.h"
#include "ir/text.h"
#include "ir/variants.h"

namespace tuff::ir {
namespace {

UOp round_trip(const UOp& x) {
  const std::string text = to_text(x);
  const std::vector<UOp> roots = parse_text(text);
  EXPECT_EQ(roots.size(), 1u) << text;
  return roots.empty() ? UOp() : roots[0];
}

TEST(Text, LinesAreAsDocumented) {
  const UOp a = param(0, DType::F32, 32), b = reshape(a, {4, 8});
  EXPECT_EQ(to_text(make(Op::Add, DType::F32, {b, b})),
            "%0 = param{slot 0 count 32} f32 (32,)\n"
            "%1 = reshape{(4, 8)} f32 (4, 8) %0\n"
            "%2 = add f32 (4, 8) %1 %1\n");
}

TEST(Text, EveryKindOfArg) {
  const UOp a = param(3, DType::F32, 24, "VULKAN:1"), t = reshape(a, {2, 3, 4}),
            n = variable("a \"b\" {c}", -5, 9);
  const UOp u = constant(DType::U32, 7);
  const UOp loop = range(index_const(4), 2, AxisKind::GroupReduce);
  const std::vector<UOp> all{
      t,
      permute(t, {2, 0, 1}),
      flip(t, {0, 2}),
      pad(t, {{0, 1}, {2, 0}, {1, 1}}),
      shrink(t, {{0, 1}, {1, 3}, {0, 4}}),
      make(Op::Assign, DType::F32, {t, shrink(t, {{1, 2}, {0, 2}, {3, 4}})},
           Pairs{{0, 1}, {1, 3}, {0, 1}}),
      scatter(t, t, cast(t, DType::I32), {Op::Assign, 1}),
      scatter(t, t, cast(t, DType::I32), {Op::Max, 0, Named::Once}),
      scatter(t, t, cast(t, DType::I32), {Op::Add, 0, Named::Unordered}),
      reduce(Op::Max, t, {1}),
      reduce(Op::Add, t, {0, 2}),
      n,
      loop,
      make(Op::Special, DType::Index, {index_const(8)}, SpecialArg{'g', 1}),
      make(Op::Shared, DType::F16, {}, SharedArg{2, 128}),
      make(Op::Copy, DType::F32, {t}, Placement{{"CPU", "VULKAN:0"}, 1}),
      make(Op::Threefry, DType::U32, {u, u, u, make(Op::Neg, DType::U32, {u})}, int64_t{1}),
      make(Op::Register, DType::F32, {loop}, int64_t{4}),
      make(Op::Register, DType::F32, {loop}, MatrixArg{MatrixUse::Sum, 16, 8, 0, false, 3}),
      make(Op::MatrixFill, DType::F32, {constant(DType::F32, 2)}, MatrixArg{MatrixUse::A, 8, 32}),
      make(Op::MatrixLoad, DType::F32, {make(Op::Index, DType::F32, {a, index_const(0)})},
           MatrixArg{MatrixUse::B, 4, 2, 24, true}),
      make(Op::MatrixLoad, DType::BF16, {make(Op::Index, DType::BF16, {a, index_const(0)})},
           MatrixArg{.use = MatrixUse::B, .rows = 8, .columns = 2, .stride = 4, .interleaved = 2}),
      cast(t, DType::BF16),
      make(Op::Mul, DType::F32, {t, constant(DType::F32, 0.1)}),
      finite_product(t, t),
  };
  for (const UOp& x : all) EXPECT_EQ(round_trip(x), x) << to_text(x);
}

TEST(Text, ScalarsKeepTheirBits) {
  const double values[] = {0.0,       -0.0, 1.0 / 3, 1e300, -1e-310, INFINITY,
                           -INFINITY, NAN,  -NAN,    65504, 5e-324};
  for (double v : values) {
    for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64, DType::WeakFloat,
                    DType::F8E4M3FN, DType::F8E5M2}) {
      const UOp c = constant(t, v);
      EXPECT_EQ(round_trip(c), c) << to_text(c);
    }
  }
  for (DType t : {DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32,
                  DType::I64, DType::U64, DType::Index, DType::WeakInt}) {
    for (int64_t v : {int64_t(0), int64_t(1), int64_t(-1), INT64_MAX, INT64_MIN}) {
      const UOp c = constant(Scalar::of_int(t, v));
      EXPECT_EQ(round_trip(c), c) << to_text(c);
    }
  }
}

TEST(Text, SymbolicExtents) {
  const UOp n = variable("n", 1, 8);
  const UOp x = shrink(reshape(param(0, DType::F32, 16), {2, 8}), {{0, 2}, {0, Dim(n)}});
  EXPECT_EQ(round_trip(x), x) << to_text(x);
  const UOp wide = pad(x, {{0, 0}, {Dim(n * 2), 1}});
  EXPECT_EQ(round_trip(wide), wide) << to_text(wide);
}

TEST(Text, LoopsOfSymbolicLength) {
  const Dim n(variable("n", 1, 8));
  const UOp state = place_of(DType::F32, {2}, "CPU"), row = place_of(DType::F32, {2}, "CPU");
  const UOp x = loop({.states = {state},
                      .initial = {param(0, DType::F32, 2, "CPU")},
                      .next = {make(Op::Add, DType::F32, {state, row})},
                      .rows = {row},
                      .sequences = {reshape(param(1, DType::F32, 16, "CPU"), {n, 2})},
                      .steps = n,
                      .reverse = true,
                      .device = "CPU"});
  EXPECT_EQ(round_trip(x), x) << to_text(x);
  EXPECT_NO_THROW(check_spec(x, kFloorTensor, "the test"));
}

TEST(Text, StoragesBecomeFreshButStayApart) {
  const UOp a = buffer(make_ref<Storage>("CPU", DType::F32, 8)),
            b = buffer(make_ref<Storage>("CPU", DType::F32, 8));
  const UOp x = make(Op::Sub, DType::F32, {make(Op::Add, DType::F32, {a, b}), a});
  const UOp y = round_trip(x);
  ASSERT_TRUE(bool(y));
  EXPECT_FALSE(x == y);
  EXPECT_EQ(x->key, y->key);
  EXPECT_EQ(y->src(1), y->src(0)->src(0));
  EXPECT_FALSE(y->src(1) == y->src(0)->src(1));
}

TEST(Text, RandomGraphs) {
  const UOp v = variable("v", 1, 4);
  test::Generator random(
      11, {{v, range(v, 0, AxisKind::Loop), range(index_const(4), 1, AxisKind::Lane)}});
  for (int i = 0; i < 500; i++) {
    const UOp x = i % 2 ? random.index(i % 8) : random.boolean(i % 7);
    ASSERT_EQ(round_trip(x), x) << to_text(x);
  }
}

TEST(Text, SeveralRootsInOrder) {
  const UOp a = variable("a", 0, 9), x = a + 1, y = a * 2;
  EXPECT_EQ(parse_text("# two roots\n\n" + to_text(std::vector<UOp>{x, y})),
            (std::vector<UOp>{x, y}));
}

TEST(Text, LinearListsKeepTheirOrder) {
  const UOp four = index_const(4), a = range(four, 0, AxisKind::Loop),
            b = range(four, 1, AxisKind::Loop);
  EXPECT_EQ(list_to_text(std::vector<UOp>{four, b, a, a + b}),
            "%0 = const{4} index\n%1 = range{r 1 loop} index %0\n%2 = range{r 0 loop} index %0\n%3 "
            "= add index %2 %1\n");
}

TEST(Text, ErrorsNameLineAndReason) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"%0 = const{3} index\n%1 = frob index %0\n", "line 2: 'frob' is no op"},
      {"%0 = neg index %7\n", "line 1: %7 is used before it is defined"},
      {"%0 = const{3} indx\n", "line 1: 'indx' is no dtype"},
      {"%0 = const{300} u8\n", "line 1: 300 does not fit uint8"},
      {"%0 = const{3x} index\n", "line 1: '3x' is no 64-bit integer"},
      {"%0 = const index\n", "line 1: const has another kind of arg"},
      {"%0 = const{3} index\n%0 = const{4} index\n", "line 2: %0 is defined twice"},
      {"%0 = const{3} index junk\n", "line 1: 'junk' is left over"},
      {"%0 = const{3} index\n%1 = range{r 0 sideways} index %0\n",
       "line 2: 'sideways' is no axis kind"},
      {"%0 = const{3} index\n%1 = range index %0\n", "line 2: range needs {r NUMBER KIND}"},
      {"%0 = var{\"n\" 5..2} index\n", "line 1: lower bound 5 is above upper bound 2"},
      {"%0 = param{slot 0 count 6} f32 (6,)\n%1 = reshape{(4, 2)} f32 (4, 2) %0\n",
       "line 2: reshape: (6,) has 6 elements"},
      {"%0 = param{slot 0 count 6} f32 (7,)\n", "line 1: the shape is (6,), not (7,)"},
      {"%0 = param{slot 0 count 6 f32 (6,)\n", "line 1: '}' expected"},
      {"%0 = const{3} index\n%1 = cmplt index %0 %0\n", "line 2: cmplt gives bool, not index"},
      {"hello\n", "line 1: '%' expected"},
  };
  for (const auto& [text, reason] : cases) {
    try {
      parse_text(text);
      ADD_FAILURE() << "parsed: " << text;
    } catch (const InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find(reason), std::string::npos)
          << e.what() << " for " << text;
    }
  }
}

// Damaged texts give InvalidArgument or a graph, never anything else.
TEST(Text, DamagedTextsAreRefused) {
  const UOp n = variable("n", 1, 8);
  const UOp t = shrink(reshape(param(0, DType::F32, 16, "CPU"), {2, 8}), {{0, 2}, {0, Dim(n)}});
  const std::string text =
      to_text(make(Op::Mul, DType::F32, {reduce(Op::Add, t, {0}), constant(DType::F32, 2.5)}));
  std::mt19937 random(5);
  const std::string alphabet = "%{}()<>[]\"0123456789 abrx.-:\\\n";
  for (int i = 0; i < 5000; i++) {
    std::string damaged = text;
    for (int k = 0; k < 1 + i % 3; k++)
      damaged[random() % damaged.size()] = alphabet[random() % alphabet.size()];
    try {
      parse_text(damaged);
    } catch (const InvalidArgument&) {}
  }
}

TEST(Text, ExpressionsReadAsAlgebra) {
  const UOp a = range(index_const(8), 0, AxisKind::Loop),
            b = range(index_const(4), 1, AxisKind::Loop), n = variable("n", 0, 9);
  EXPECT_EQ(expression(floordiv(a * 4 + b, 3)), "(r0*4 + r1) // 3");
  EXPECT_EQ(expression(a - b * 2 - 1), "r0 - r1*2 - 1");
  EXPECT_EQ(expression(a - (b + n)), "r0 - (r1 + n)");
  EXPECT_EQ(expression(floormod(a, 4) * (b + 1)), "r0 % 4*(r1 + 1)");
  EXPECT_EQ(expression(logical_and(lt(a, n), logical_not(lt(b, n)))), "r0 < n & !(r1 < n)");
  EXPECT_EQ(expression(where(lt(a, n), a, b)), "where(r0 < n, r0, r1)");
  UOp deep = n;
  for (int i = 0; i < 100000; i++) deep = make(Op::Add, DType::Index, {deep, deep});
  EXPECT_LT(expression(deep).size(), 10000u);
}

}  // namespace
}  // namespace tuff::ir

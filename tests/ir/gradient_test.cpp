// Gradients: every row of gradient.cpp, first and second order, against central finite differences
// in f64 through the interpreter; then ties, zeros in products, Detach, Assign and ops without
// gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <random>

#include "ir/gradient.h"
#include "ir/interpret.h"
#include "ir/rule.h"
#include "ir/text.h"

namespace tuff::ir {
namespace {

constexpr DType kF64 = DType::F64;

// Leaves of a case, their values, and the graph made of them. Targets are the Buffers, since a
// reshape of a leaf's reshape looks through to it.
struct Fixture {
  std::mt19937_64 random{17};
  std::vector<UOp> leaves;
  std::deque<std::vector<double>> values;
  Bindings bindings;

  UOp leaf(const Shape& shape, double low, double high) {
    const int64_t n = element_count(shape);
    const UOp b = buffer(make_ref<Storage>("CPU", kF64, n));
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<double>& v = values.emplace_back();
    for (int64_t i = 0; i < n; i++) v.push_back(uniform(random));
    bindings.storages[b->get<Ref<Storage>>()->id] = std::as_writable_bytes(std::span(v));
    leaves.push_back(b);
    return reshape(b, shape);
  }
  std::vector<double> run(const UOp& u) const {
    const HostArray a = interpret(std::span(&u, 1), bindings).at(0);
    std::vector<double> out;
    for (int64_t i = 0; i < a.count(); i++) out.push_back(a.at(i).as_double());
    return out;
  }
  // A constant weight of the root's shape, different at every place.
  UOp weights(const UOp& root) {
    if (root->shape.empty()) return constant(kF64, 0.7);
    const UOp w = leaf(root->shape, 0.5, 1.5);
    leaves.pop_back();
    return w;
  }
  double weighted_sum(const UOp& root, const UOp& seed) const {
    const std::vector<double> r = run(root), s = run(seed);
    double total = 0;
    for (size_t i = 0; i < r.size(); i++) total += r[i] * (s.size() == 1 ? s[0] : s[i]);
    return total;
  }
};

void expect_gradient(Fixture& f, const UOp& root, const UOp& seed, const std::string& what) {
  const std::vector<UOp> grads = gradients(root, seed, f.leaves);
  for (size_t l = 0; l < f.leaves.size(); l++) {
    std::vector<double> got(f.values[l].size(), 0);
    if (grads[l]) {
      ASSERT_EQ(grads[l]->shape, f.leaves[l]->shape) << what;
      ASSERT_EQ(grads[l]->dtype, f.leaves[l]->dtype) << what;
      got = f.run(grads[l]);
    }
    for (size_t i = 0; i < got.size(); i++) {
      double& x = f.values[l][i];
      const double at = x, h = 1e-5;
      x = at + h;
      const double above = f.weighted_sum(root, seed);
      x = at - h;
      const double below = f.weighted_sum(root, seed);
      x = at;
      const double want = (above - below) / (2 * h);
      ASSERT_NEAR(got[i], want, 1e-7 * std::max(1.0, std::abs(want)))
          << what << ": leaf " << l << " element " << i;
    }
  }
}

struct Case {
  const char* name;
  std::function<UOp(Fixture&)> build;
};

UOp op1(Op op, const UOp& x) { return make(op, kF64, {x}); }
UOp op2(Op op, const UOp& x, const UOp& y) { return make(op, kF64, {x, y}); }
UOp square(const UOp& x) { return op2(Op::Mul, x, x); }

// Rows 2, 0, 2 and one that is outside.
UOp stored_by_index(Fixture& f, Op op) {
  const UOp row = iota(4, DType::I32);
  const UOp two = make(Op::IMod, DType::I32, {row, constant(DType::I32, 2)}),
            last = make(Op::IDiv, DType::I32, {row, constant(DType::I32, 3)});
  const UOp at = make(Op::Sub, DType::I32,
                      {constant(DType::I32, 2), make(Op::Add, DType::I32, {two, two})});
  const UOp index = make(Op::Sub, DType::I32, {at, last});
  return scatter(f.leaf({3, 2}, 0.5, 1.5), f.leaf({4, 2}, 0.5, 1.5),
                 expand(reshape(index, {4, 1}), {4, 2}), {op, 0});
}

const std::vector<Case> kCases = {
    {"neg", [](Fixture& f) { return op1(Op::Neg, square(f.leaf({3}, -1, 1))); }},
    {"recip", [](Fixture& f) { return op1(Op::Recip, f.leaf({4}, 0.5, 2)); }},
    {"sqrt", [](Fixture& f) { return op1(Op::Sqrt, f.leaf({4}, 0.5, 2)); }},
    {"exp2", [](Fixture& f) { return op1(Op::Exp2, f.leaf({4}, -2, 2)); }},
    {"log2", [](Fixture& f) { return op1(Op::Log2, f.leaf({4}, 0.5, 3)); }},
    {"sin", [](Fixture& f) { return op1(Op::Sin, f.leaf({4}, -3, 3)); }},
    {"trunc",
     [](Fixture& f) {
       UOp x = f.leaf({4}, 1.2, 1.8);
       return op2(Op::Mul, op1(Op::Trunc, x), x);
     }},
    {"add",
     [](Fixture& f) { return square(op2(Op::Add, f.leaf({2, 3}, -1, 1), f.leaf({2, 3}, -1, 1))); }},
    {"sub",
     [](Fixture& f) { return square(op2(Op::Sub, f.leaf({2, 3}, -1, 1), f.leaf({2, 3}, -1, 1))); }},
    {"mul", [](Fixture& f) { return op2(Op::Mul, f.leaf({2, 3}, -1, 1), f.leaf({2, 3}, -1, 1)); }},
    {"div",
     [](Fixture& f) { return op2(Op::Div, f.leaf({2, 3}, -1, 1), f.leaf({2, 3}, 0.5, 1.5)); }},
    {"max",
     [](Fixture& f) { return op2(Op::Max, square(f.leaf({8}, -1, 1)), f.leaf({8}, -1, 1)); }},
    {"where",
     [](Fixture& f) {
       const UOp x = f.leaf({6}, -1, 1), y = f.leaf({6}, -1, 1);
       return make(Op::Where, kF64,
                   {make(Op::CmpLt, DType::Bool, {x, y}), square(x), op2(Op::Mul, x, y)});
     }},
    {"scalar operands",
     [](Fixture& f) {
       const UOp s = f.leaf({}, 0.5, 1.5), x = f.leaf({2, 2}, 0.5, 1.5);
       return op2(Op::Add, op2(Op::Mul, x, s), op2(Op::Div, s, x));
     }},
    {"scalar where",
     [](Fixture& f) {
       const UOp s = f.leaf({}, 0.5, 1.5), x = f.leaf({4}, -1, 1);
       return make(Op::Where, kF64,
                   {make(Op::CmpLt, DType::Bool, {x, constant(kF64, 0)}), square(s), square(x)});
     }},
    {"used twice",
     [](Fixture& f) {
       const UOp x = f.leaf({3}, 0.5, 1), y = op1(Op::Sin, x);
       return op2(Op::Mul, op2(Op::Add, y, x), y);
     }},
    {"reshape", [](Fixture& f) { return square(reshape(f.leaf({2, 3}, -1, 1), {3, 2})); }},
    {"permute", [](Fixture& f) { return square(permute(f.leaf({2, 3, 2}, -1, 1), {2, 0, 1})); }},
    {"expand",
     [](Fixture& f) {
       return op2(Op::Mul, expand(f.leaf({1, 3, 1}, -1, 1), {2, 3, 4}), f.leaf({2, 3, 4}, -1, 1));
     }},
    {"pad", [](Fixture& f) { return square(pad(f.leaf({2, 3}, -1, 1), Pairs{{1, 0}, {0, 2}})); }},
    {"shrink",
     [](Fixture& f) { return square(shrink(f.leaf({4, 3}, -1, 1), Pairs{{1, 3}, {0, 2}})); }},
    {"flip",
     [](Fixture& f) {
       return op2(Op::Mul, flip(f.leaf({2, 3}, -1, 1), {1}), f.leaf({2, 3}, -1, 1));
     }},
    {"reduce add",
     [](Fixture& f) { return square(reduce(Op::Add, f.leaf({2, 3, 2}, -1, 1), {0, 2})); }},
    {"reduce mul", [](Fixture& f) { return reduce(Op::Mul, f.leaf({2, 4}, 0.5, 1.5), {1}); }},
    {"reduce max", [](Fixture& f) { return square(reduce(Op::Max, f.leaf({3, 4}, -1, 1), {1})); }},
    {"scatter add", [](Fixture& f) { return square(stored_by_index(f, Op::Add)); }},
    {"scatter mul", [](Fixture& f) { return stored_by_index(f, Op::Mul); }},
    {"scatter max", [](Fixture& f) { return square(stored_by_index(f, Op::Max)); }},
    {"scatter assign", [](Fixture& f) { return square(stored_by_index(f, Op::Assign)); }},
    {"scatter once",
     [](Fixture& f) {
       const UOp index = expand(reshape(iota(2, DType::I32), {1, 2}), {2, 2});
       return square(scatter(f.leaf({2, 3}, -1, 1), f.leaf({2, 2}, -1, 1), index,
                             {Op::Assign, 1, Named::Once}));
     }},
    {"contiguous",
     [](Fixture& f) { return square(make(Op::Contiguous, kF64, {f.leaf({3}, -1, 1)})); }},
    {"copy",
     [](Fixture& f) {
       return square(make(Op::Copy, kF64, {f.leaf({3}, -1, 1)}, Placement{{"NULL"}}));
     }},
    {"mark",
     [](Fixture& f) { return square(make(Op::Mark, kF64, {f.leaf({3}, -1, 1)}, int64_t{0})); }},
    {"again",
     [](Fixture& f) {
       const UOp x = f.leaf({3}, -1, 1);
       return square(make(Op::Again, kF64, {square(x), x}));
     }},
    {"checkpoint",
     [](Fixture& f) {
       const UOp x = square(f.leaf({3}, -1, 1)), given = sink(std::vector<UOp>{x});
       const UOp y = op2(Op::Mul, square(x), f.leaf({3}, -1, 1));
       return op2(Op::Mul, square(make(Op::Checkpoint, kF64, {square(y), given})),
                  make(Op::Checkpoint, kF64, {y, given}));
     }},
    {"ruled",
     [](Fixture& f) {
       // Two values of two arguments, with the gradients that they have.
       const UOp x = square(f.leaf({3}, -1, 1)), y = f.leaf({3}, -1, 1);
       const UOp both = op2(Op::Mul, x, y), cube = op2(Op::Mul, square(x), x);
       RuleParts parts{.values = {both, cube}, .arguments = {x, y}, .places = {}, .gradients = {}};
       for (const UOp& v : parts.values) parts.places.push_back(place_like(v));
       const UOp g = parts.places[0], h = parts.places[1];
       const UOp slope = op2(Op::Mul, constant(kF64, 3), square(x));
       parts.gradients = {op2(Op::Add, op2(Op::Mul, g, y), op2(Op::Mul, h, slope)),
                          op2(Op::Mul, g, x)};
       const std::vector<UOp> values = ruled(parts);
       return op2(Op::Mul, square(values[0]), values[1]);
     }},
    {"softmax",
     [](Fixture& f) {
       const UOp x = f.leaf({2, 3}, -1, 1);
       const UOp e = op1(Op::Exp2, op2(Op::Sub, x, expand(reduce(Op::Max, x, {1}), {2, 3})));
       return op2(Op::Div, e, expand(reduce(Op::Add, e, {1}), {2, 3}));
     }},
    {"matmul",
     [](Fixture& f) {
       const UOp a = expand(reshape(f.leaf({2, 3}, -1, 1), {2, 3, 1}), {2, 3, 4});
       const UOp b = expand(reshape(f.leaf({3, 4}, -1, 1), {1, 3, 4}), {2, 3, 4});
       return square(reduce(Op::Add, op2(Op::Mul, a, b), {1}));
     }},
};

TEST(Gradient, FirstOrderMatchesFiniteDifferences) {
  for (const Case& c : kCases) {
    Fixture f;
    const UOp root = c.build(f);
    expect_gradient(f, root, f.weights(root), c.name);
  }
}

TEST(Gradient, SecondOrderMatchesFiniteDifferences) {
  for (const Case& c : kCases) {
    Fixture f;
    const UOp root = c.build(f);
    const UOp seed = f.weights(root);  // before the span over the leaves is taken
    const std::vector<UOp> first = gradients(root, seed, f.leaves);
    for (const UOp& g : first) {
      if (g) expect_gradient(f, g, f.weights(g), std::string(c.name) + ", second order");
    }
  }
}

TEST(Gradient, CastsKeepTheDtypeOfTheirSource) {
  Fixture f;
  const UOp x = f.leaf({3}, -1, 1);
  const UOp narrow = cast(x, DType::F32);
  const UOp root = make(Op::Mul, DType::F32, {narrow, narrow});
  const UOp g = gradients(root, constant(DType::F32, 1), f.leaves).at(0);
  ASSERT_EQ(g->dtype, kF64);
  const std::vector<double> got = f.run(g);
  for (size_t i = 0; i < got.size(); i++) EXPECT_EQ(got[i], double(2 * float(f.values[0][i])));
}

std::vector<double> gradient_of(Fixture& f, const UOp& root) {
  const UOp g = gradients(root, constant(kF64, 1), f.leaves).at(0);
  return f.run(g);
}

TEST(Gradient, TiesOfMaxShareTheGradient) {
  Fixture f;
  const UOp x = f.leaf({4}, 0, 0);
  std::ranges::copy(std::vector<double>{1, 3, 3, 2}, f.values[0].begin());
  EXPECT_EQ(gradient_of(f, reduce(Op::Max, x, {0})), (std::vector<double>{0, 0.5, 0.5, 0}));
  EXPECT_EQ(gradient_of(f, op2(Op::Max, x, constant(kF64, 3))),
            (std::vector<double>{0, 0.5, 0.5, 0}));
  EXPECT_EQ(gradient_of(f, op2(Op::Max, x, x)), (std::vector<double>{1, 1, 1, 1}));
}

TEST(Gradient, ZerosInAProduct) {
  Fixture f;
  const UOp x = f.leaf({3, 3}, 1, 2);
  const double values[9] = {2, 3, 4, 2, 0, 4, 0, 0, 4};
  std::copy(values, values + 9, f.values[0].begin());
  EXPECT_EQ(gradient_of(f, reduce(Op::Mul, x, {1})),
            (std::vector<double>{12, 8, 6, 0, 8, 0, 0, 0, 0}));
}

TEST(Gradient, DetachStopsIt) {
  Fixture f;
  const UOp x = f.leaf({2}, 1, 2);
  const UOp still = make(Op::Detach, kF64, {x});
  EXPECT_FALSE(gradients(square(still), constant(kF64, 1), f.leaves).at(0));
  const std::vector<double> got = gradient_of(f, op2(Op::Mul, still, x));
  EXPECT_EQ(got, f.values[0]);
}

// The rule of a cube whose value was computed in another way: of (value, x), by the node itself.
std::vector<UOp> row_of_cube(const UOp& u, const UOp& g) {
  const UOp over = op2(Op::Div, u, u->src(1));
  return {UOp(), op2(Op::Mul, g, op2(Op::Mul, over, constant(kF64, 3)))};
}
constexpr GradientRule kCube{"cube", row_of_cube};

TEST(Gradient, DetachWithARule) {
  Fixture f;
  const UOp x = f.leaf({2}, 1, 2);
  const UOp value = op2(Op::Mul, op2(Op::Mul, x, x), x);
  const UOp cube = make(Op::Detach, kF64, {value, x}, &kCube);
  const std::vector<double> at = f.values[0];
  const std::vector<double> got = gradient_of(f, reduce(Op::Add, cube, {0}));
  const UOp first = gradients(reduce(Op::Add, cube, {0}), constant(kF64, 1), f.leaves).at(0);
  const std::vector<double> second = gradient_of(f, reduce(Op::Add, first, {0}));
  for (size_t i = 0; i < at.size(); i++) {
    EXPECT_NEAR(got[i], 3 * at[i] * at[i], 1e-12);
    EXPECT_NEAR(second[i], 6 * at[i], 1e-12);
  }
  EXPECT_EQ(make(Op::Detach, kF64, {value, x}, &kCube), cube);
  const std::string text = to_text(cube);
  EXPECT_NE(text.find("detach{rule cube}"), std::string::npos) << text;
  EXPECT_EQ(parse_text(text).at(0)->src_count, 2u);
}

TEST(Gradient, NoDependenceIsAnEmptyNode) {
  Fixture f;
  const UOp x = f.leaf({2}, 1, 2), y = f.leaf({2}, 1, 2);
  const std::vector<UOp> g = gradients(square(y), constant(kF64, 1), f.leaves);
  EXPECT_FALSE(g[0]);
  EXPECT_TRUE(g[1]);
  EXPECT_FALSE(gradients(cast(x, DType::I32), constant(DType::I32, 1), f.leaves).at(0));
}

TEST(Gradient, AssignPassesItsValueThrough) {
  Fixture f;
  const UOp x = f.leaf({2}, 1, 2), target = f.leaf({2}, 1, 2);
  const UOp stored = make(Op::Assign, kF64, {target, square(x)});
  const std::vector<UOp> g = gradients(square(stored), constant(kF64, 1), f.leaves);
  ASSERT_TRUE(g[0]);
  EXPECT_FALSE(g[1]);  // what the target held before does not matter any more
  const std::vector<double> at = f.values[0], got = f.run(g[0]);
  for (size_t i = 0; i < 2; i++) EXPECT_NEAR(got[i], 4 * std::pow(at[i], 3), 1e-12);
}

TEST(Gradient, WhatAPartLeavesKeepsItsGradient) {
  Fixture f;
  const UOp x = f.leaf({2}, 1, 2), target = f.leaf({4}, 1, 2);
  const UOp stored = make(Op::Assign, kF64, {target, square(x)}, Pairs{{1, 3}});
  const std::vector<UOp> g = gradients(square(stored), constant(kF64, 1), f.leaves);
  const std::vector<double> to_x = f.run(g[0]), to_target = f.run(g[1]);
  for (size_t i = 0; i < 2; i++) EXPECT_NEAR(to_x[i], 4 * std::pow(f.values[0][i], 3), 1e-12);
  for (size_t i : {0, 3}) EXPECT_NEAR(to_target[i], 2 * f.values[1][i], 1e-12);
  EXPECT_EQ(to_target[1], 0);
  EXPECT_EQ(to_target[2], 0);
}

TEST(Gradient, AnOpWithoutOneIsNamed) {
  Fixture f;
  const UOp x = f.leaf({2}, 1, 2);
  const UOp fused = make(Op::MulAdd, kF64, {x, x, x});
  try {
    gradients(fused, constant(kF64, 1), f.leaves);
    FAIL() << "no error";
  } catch (const Unsupported& e) {
    EXPECT_STREQ(e.what(), "muladd has no gradient");
  }
}

// Every op that floats can flow through on the tensor floor has a case above.
TEST(Gradient, CasesCoverTheTable) {
  std::string names;
  for (const Case& c : kCases) names += std::string(" ") + c.name + " ";
  for (size_t i = 0; i < op_rows().size(); i++) {
    const Op op = Op(i);
    const OpRow& r = op_rows()[i];
    const bool flows = (r.floors & kFloorTensor) && r.arity > 0 && r.rule != DTypeRule::Bool;
    const bool integers_only = op == Op::IDiv || op == Op::IMod || op == Op::And || op == Op::Or ||
                               op == Op::Xor || op == Op::Shl || op == Op::Shr ||
                               op == Op::Threefry;
    const bool own_test =
        op == Op::Cast || op == Op::Bitcast || op == Op::Detach || op == Op::Assign;
    EXPECT_TRUE(!flows || integers_only || own_test ||
                names.find(std::string(" ") + r.text + " ") != std::string::npos)
        << r.text;
  }
}

}  // namespace
}  // namespace tuff::ir

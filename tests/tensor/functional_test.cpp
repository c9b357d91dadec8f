// vjp, jvp, jacrev and hessian against closed forms and finite differences; vmap against a loop;
// and which functions Autocast narrows and widens.
#include <gtest/gtest.h>

#include <cmath>

#include <tuff/autocast.h>
#include <tuff/autograd.h>
#include "base/check.h"

namespace tuff::test {
namespace {

using autograd::Function;
using autograd::FunctionContext;
using autograd::hessian;
using autograd::jacfwd;
using autograd::jacrev;
using autograd::jvp;
using autograd::vjp;
using Doubles = std::vector<double>;
const TensorOptions kDouble{DType::F64, "CPU"};

Tensor vector(const Doubles& v) { return Tensor::from(v, {int64_t(v.size())}, kDouble); }
Tensor mixed(const Tensor& x) {  // (3,) -> (2, 2)
  return Tensor::stack({x[0] * x[1], x[2].sin(), (x[0] * x[2]).exp(), x.square().sum()})
      .reshape({2, 2});
}
const Doubles kAt{0.3, -0.7, 1.1};

// The Jacobian matrix of mixed() by central differences.
std::vector<Doubles> differences() {
  std::vector<Doubles> columns;
  for (size_t k = 0; k < kAt.size(); k++) {
    Doubles up = kAt, down = kAt;
    up[k] += 1e-5, down[k] -= 1e-5;
    const Tensor d = (mixed(vector(up)) - mixed(vector(down))) / 2e-5;
    columns.push_back(d.to_vector<double>());
  }
  return columns;
}

TEST(Functional, JacobiansMatchFiniteDifferences) {
  const std::vector<Doubles> want = differences();
  const Tensor j = jacrev(mixed, vector(kAt));
  EXPECT_EQ(j.sizes(), (Sizes{2, 2, 3}));
  const Doubles got = j.to_vector<double>();
  for (size_t i = 0; i < 4; i++)
    for (size_t k = 0; k < 3; k++) EXPECT_NEAR(got[i * 3 + k], want[k][i], 1e-8) << i << " " << k;
  const Tensor ahead = jacfwd(mixed, vector(kAt));
  EXPECT_EQ(ahead.sizes(), j.sizes());
  EXPECT_LT((ahead - j).abs().max().item(), 1e-12);
  // Of several inputs, one of which it does not depend on; and twice, both ways.
  const Tensors both = jacfwd([](const Tensors& in) { return mixed(in[0]); },
                              {vector(kAt), vector({1, 2})});
  EXPECT_LT((both[0] - j).abs().max().item(), 1e-12);
  EXPECT_EQ(both[1].sizes(), (Sizes{2, 2, 2}));
  EXPECT_EQ(both[1].abs().max().item(), 0);
  const auto rows = [](const Tensor& x) { return jacrev(mixed, x); };
  const auto columns = [](const Tensor& x) { return jacfwd(mixed, x); };
  EXPECT_LT((jacfwd(rows, vector(kAt)) - jacrev(columns, vector(kAt))).abs().max().item(), 1e-11);
}

TEST(Functional, ProductsWithTheJacobianMatrix) {
  const std::vector<Doubles> want = differences();
  const auto f = [](const Tensors& in) { return Tensors{mixed(in[0])}; };
  const Doubles v{1, -2, 0.5, 3}, u{0.5, 2, -1};
  const auto back = vjp(f, {vector(kAt)}, {vector(v).reshape({2, 2})});
  const auto ahead = jvp(f, {vector(kAt)}, {vector(u)});
  EXPECT_EQ(back.outputs[0].to_vector<double>(), mixed(vector(kAt)).to_vector<double>());
  EXPECT_EQ(ahead.derivatives[0].sizes(), (Sizes{2, 2}));
  const Doubles by_x = back.derivatives[0].to_vector<double>(),
                along = ahead.derivatives[0].to_vector<double>();
  for (size_t k = 0; k < 3; k++) {
    double sum = 0;
    for (size_t i = 0; i < 4; i++) sum += v[i] * want[k][i];
    EXPECT_NEAR(by_x[k], sum, 1e-8);
  }
  for (size_t i = 0; i < 4; i++) {
    double sum = 0;
    for (size_t k = 0; k < 3; k++) sum += u[k] * want[k][i];
    EXPECT_NEAR(along[i], sum, 1e-8);
  }
}

// Equal inputs are different variables; what a function uses besides is a constant; an output that
// depends on nothing has zeros.
TEST(Functional, InputsAreToldApart) {
  const Tensor x = vector({2, 3});
  const auto f = [&](const Tensors& in) { return Tensors{in[0] * in[0] * in[1] * x}; };
  const auto got = vjp(f, {x, x}, {vector({1, 1})});
  EXPECT_EQ(got.derivatives[0].to_vector<double>(), (Doubles{16, 54}));
  EXPECT_EQ(got.derivatives[1].to_vector<double>(), (Doubles{8, 27}));
  const Tensor ones = Tensor::ones({2}, kDouble);  // no memory: a number
  const auto g = [](const Tensors& in) { return Tensors{in[0] * 1.0 + 1.0, in[1] * 0 + 4}; };
  const auto more = jvp(g, {ones, ones}, {vector({5, 6}), vector({7, 8})});
  EXPECT_EQ(more.derivatives[0].to_vector<double>(), (Doubles{5, 6}));
  EXPECT_EQ(more.derivatives[1].to_vector<double>(), (Doubles{0, 0}));
}

TEST(Functional, Hessians) {
  const Tensor x = vector(kAt);
  const auto f = [](const Tensor& v) { return v[0] * v[0] * v[1] + v[2].sin(); };
  const Doubles got = hessian(f, x).to_vector<double>();
  const Doubles want{2 * kAt[1], 2 * kAt[0], 0, 2 * kAt[0], 0, 0, 0, 0, -std::sin(kAt[2])};
  for (size_t i = 0; i < 9; i++) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  // As jvp of the gradient, and of a jvp.
  const auto gradient = [&](const Tensors& in) {
    return vjp([&](const Tensors& v) { return Tensors{f(v[0])}; }, in).derivatives;
  };
  const Doubles column =
      jvp(gradient, {x}, {vector({0, 1, 0})}).derivatives[0].to_vector<double>();
  for (size_t i = 0; i < 3; i++) EXPECT_NEAR(column[i], want[i * 3 + 1], 1e-12) << i;
  const auto slope = [&](const Tensors& in) {
    return jvp([&](const Tensors& v) { return Tensors{f(v[0])}; }, in, {vector({1, 0, 0})})
        .derivatives;
  };
  EXPECT_NEAR(jvp(slope, {x}, {vector({1, 0, 0})}).derivatives[0].item(), want[0], 1e-12);
}

TEST(Functional, WhatDoesNotFitIsNamed) {
  const auto f = [](const Tensors& in) { return Tensors{in[0] * 2}; };
  EXPECT_THROW(vjp(f, {vector(kAt)}), InvalidArgument);  // three elements need a v
  EXPECT_THROW(vjp(f, {vector(kAt)}, {vector({1, 2})}), ShapeError);
  EXPECT_THROW(vjp(f, {vector(kAt).cast(DType::I32)}, {vector(kAt)}), InvalidArgument);
  EXPECT_THROW(hessian([](const Tensor& x) { return x; }, vector(kAt)), ShapeError);
}

// What f gives for all slices, against a loop.
void expect_mapped(const char* name, const TensorFunction& f, const Tensor& x) {
  Tensors slices;
  for (int64_t i = 0; i < int64_t(x.size(0)); i++) slices.push_back(f(x[i]));
  const Tensor want = Tensor::stack(slices), got = vmap(f)(x);
  EXPECT_EQ(got.dtype(), want.dtype()) << name;
  ASSERT_EQ(got.sizes(), want.sizes()) << name;
  EXPECT_LT((got.cast(DType::F64) - want.cast(DType::F64)).abs().max().item(), 1e-12) << name;
}

TEST(Vmap, OfFunctions) {
  Tensor::manual_seed(4);
  const Tensor x = Tensor::uniform({3, 4, 5}, -1, 1, kDouble).realize(),
               w = Tensor::uniform({5, 2}, -1, 1, kDouble).realize();
  using T = const Tensor&;
  expect_mapped("product", [&](T v) { return v.matmul(w).tanh(); }, x);
  expect_mapped("of a number", [&](T v) { return v.sum().tanh() * v.mean().sigmoid(); }, x);
  expect_mapped("own product", [](T v) { return v.matmul(v.T()); }, x);
  expect_mapped("softmax", [](T v) { return v.softmax(0) + v.mean(); }, x);
  expect_mapped("movement", [](T v) { return v.T().pad({1, 2}).flip({0}).slice(1, 1, 6, 2); }, x);
  expect_mapped("repeated", [](T v) { return v[0].unsqueeze(1).expand({5, 3}); }, x);
  expect_mapped("a number each", [](T v) { return v.sum() * 3; }, x);
  expect_mapped("where", [](T v) { return Tensor::where(v > v.mean(), v, 0.0); }, x);
  expect_mapped("running", [](T v) { return v.cumsum(1); }, x);
  expect_mapped("sorted", [](T v) { return v.sort(1).first; }, x);
  expect_mapped("largest", [](T v) { return v.argmax(1); }, x);
  expect_mapped(
      "gathered", [](T v) { return v.gather(1, v.argsort(1).narrow(1, 0, 2)); }, x);
  expect_mapped(
      "stored by index", [](T v) { return v.scatter_add(0, v.argsort(0), v * v); }, x);
  expect_mapped("constant", [](T) { return Tensor::arange(3); }, x);
  expect_mapped("gradient", [](T v) { return (v * v * v).sum().gradient({v})[0]; }, x);
  expect_mapped("jacobian", [](T v) { return jacrev([](T r) { return r * r.sum(); }, v[0]); }, x);
  const auto bent = [](T r) { return r.exp().sin(); };
  expect_mapped("again", [&](T v) { return checkpoint(bent, v).gradient({v})[0]; }, x);
  expect_mapped("nested", [](T v) { return vmap([](T r) { return r * r.sum(); }, 1, 1)(v); }, x);
}

TEST(Vmap, OfFunctionsWithTheirOwnGradients) {
  const Function tenfold{[](FunctionContext& c, const Tensors& x) {
                           c.save_for_backward({x[0], x[1]});
                           return Tensors{x[0] * x[1]};
                         },
                         [](FunctionContext& c, const Tensors& g) {
                           return Tensors{g[0] * c.saved_tensors()[1] * 10, g[0] * 100};
                         }};
  Tensor::manual_seed(4);
  const Tensor x = Tensor::uniform({3, 4}, -1, 1, kDouble).realize(),
               w = Tensor::uniform({4}, -1, 1, kDouble).realize();
  const auto f = [&](const Tensor& v) { return tenfold({v, w})[0].square().sum(); };
  expect_mapped("inside", [&](const Tensor& v) { return f(v).gradient({v})[0]; }, x);
  const Tensor all = vmap(f)(x).sum();
  const Tensors got = all.gradient({x, w});
  const Tensor product = x * w;
  EXPECT_LT((got[0] - product * w * 20).abs().max().item(), 1e-12);
  EXPECT_LT((got[1] - (product * 200).sum({0})).abs().max().item(), 1e-12);
}

TEST(Vmap, AxesAndErrors) {
  const Tensor x = Tensor::arange(0, 6, 1, kDouble).reshape({2, 3}), y = vector({10, 20});
  const auto f = [](const Tensors& in) { return Tensors{in[0] + in[1], in[0].sum()}; };
  const Tensors got = vmap(f, {1, std::nullopt}, -1)({x, y});
  EXPECT_EQ(got[0].to_vector<double>(), (Doubles{10, 11, 12, 23, 24, 25}));
  EXPECT_EQ(got[1].to_vector<double>(), (Doubles{3, 5, 7}));
  EXPECT_THROW(vmap(f, {std::nullopt, std::nullopt})({x, y}), InvalidArgument);
  EXPECT_THROW(vmap(f, {0})({x, y}), InvalidArgument);
  EXPECT_THROW(vmap(f, {1, 0})({x, y}), ShapeError);
  EXPECT_THROW(vmap([](const Tensor& v) { return v * v.sum().item(); })(x), InvalidArgument);
  const Tensor none = Tensor::zeros({0, 3}, kDouble);
  EXPECT_EQ(vmap([](const Tensor& v) { return v.exp(); })(none).sizes(), (Sizes{0, 3}));
}

TEST(AutocastScope, ProductsNarrowAndTotalsWiden) {
  const TensorOptions cpu{.device = "CPU"};
  const Tensor x = Tensor::rand({2, 3}, cpu), w = Tensor::rand({4, 3}, cpu),
               bias = Tensor::rand({4}, cpu), image = Tensor::rand({1, 2, 4, 4}, cpu),
               kernel = Tensor::rand({3, 2, 2, 2}, cpu);
  const Tensor half = x.cast(DType::F16);
  EXPECT_EQ(autocast_dtype(), DType::Void);
  for (const DType t : {DType::F16, DType::BF16}) {
    const Autocast scope(t);
    EXPECT_EQ(x.matmul(w.T()).dtype(), t);
    EXPECT_EQ(x.linear(w, bias).dtype(), t);
    EXPECT_EQ(Tensor::einsum("ij,kj->ik", {x, w}).dtype(), t);
    EXPECT_EQ(image.conv2d(kernel, Tensor::zeros({3}, cpu)).dtype(), t);
    const Tensor q = x.unsqueeze(0);
    EXPECT_EQ(Tensor::scaled_dot_product_attention(q, q, q).dtype(), t);
    for (const Tensor& total :
         {half.sum(), half.mean(), half.softmax(-1), half.log_softmax(-1), half.layernorm({3}),
          half.var(), half.mse_loss(half), half.logsumexp({0}), half.norm()})
      EXPECT_EQ(total.dtype(), DType::F32);
    EXPECT_EQ((half * 2).dtype(), DType::F16);
    EXPECT_EQ(x.relu().dtype(), DType::F32);
    EXPECT_EQ(x.cast(DType::F64).matmul(w.T()).dtype(), DType::F64);
    {
      const Autocast off(t, false);
      EXPECT_EQ(x.matmul(w.T()).dtype(), DType::F32);
      EXPECT_EQ(half.sum().dtype(), DType::F16);
    }
    EXPECT_EQ(autocast_dtype(), t);
  }
  EXPECT_EQ(autocast_dtype(), DType::Void);
  EXPECT_EQ(half.softmax(-1).dtype(), DType::F16);
  EXPECT_THROW(Autocast(DType::F32), InvalidArgument);
}

// Sums of products of queries and keys beyond the largest F16, that are not once they are scaled.
TEST(NarrowAttention, ScoresAreRoundedOnceTheyAreScaled) {
  const TensorOptions cpu{.device = "CPU"};
  Tensor::manual_seed(3);
  const auto draw = [&](double scale) {
    return (Tensor::randn({2, 5, 32}, cpu) * scale).cast(DType::F16).realize();
  };
  const Tensor q = draw(64), k = draw(64), v = draw(1);
  const auto result = [&](DType t) {
    return Tensor::scaled_dot_product_attention(q.cast(t), k.cast(t), v.cast(t)).cast(DType::F32);
  };
  EXPECT_GT(q.cast(DType::F32).matmul(k.cast(DType::F32).T()).abs().max().item(), 65504);
  EXPECT_LT((result(DType::F16) - result(DType::F32)).abs().max().item(), 2e-3);
}

TEST(NarrowAttention, ScoresOfIntegersAreNot) {
  const Tensor q = vector({1, 2, 3, 1}).reshape({2, 2}), k = vector({1, 1, 0, 2}).reshape({2, 2}),
               v = vector({1, 2, 3, 4}).reshape({2, 2});
  const Tensor want = Tensor::scaled_dot_product_attention(q, k, v);
  for (const DType t : {DType::I32, DType::I8, DType::U8}) {
    const Tensor got = Tensor::scaled_dot_product_attention(q.cast(t), k.cast(t), v);
    EXPECT_LT((got - want).abs().max().item(), 1e-6) << name(t);
  }
}

TEST(AutocastScope, WhatNeedsTheRangeWidens) {
  const Tensor h = vector({0.25, 0.5}).cast(DType::F16);
  const auto all = [&] {
    return Tensors{h.exp(),   h.expm1(), h.log(),  h.log2(), h.log10(), h.log1p(),
                   h.pow(3),  h.pow(h),  2 / h,    h.tan(),  h.rsqrt(), h.reciprocal(),
                   h.asin(),  h.acos(),  h.cosh(), h.sinh(), h.erfinv(), h.softplus(),
                   h.norm(),  h.normalize(2, 0),   Tensor::pow(2, h)};
  };
  const Autocast scope(DType::F16);
  for (const Tensor& y : all()) EXPECT_EQ(y.dtype(), DType::F32) << y.sizes().size();
  for (const Tensor& y :
       {h.sigmoid(), h.tanh(), h.gelu(), h.elu(), h.sqrt(), h / 2, h / h, h.exp2()})
    EXPECT_EQ(y.dtype(), DType::F16);
  // e^12 is beyond F16.
  EXPECT_NEAR(vector({12}).cast(DType::F16).exp().item(), std::exp(12.0), 0.2);
  const Autocast outside(DType::F16, false);
  for (const Tensor& y : all()) EXPECT_EQ(y.dtype(), DType::F16);
}

TEST(AutocastScope, ParametersKeepTheirDtypeAndGradients) {
  const TensorOptions cpu{.device = "CPU"};
  Tensor w = Tensor::rand({4, 3}, cpu).realize().set_requires_grad();
  const Tensor x = Tensor::rand({2, 3}, cpu).realize();
  Tensor loss;
  {
    const Autocast scope(DType::BF16);
    loss = x.linear(w).square().sum();
  }
  loss.backward();
  EXPECT_EQ(loss.dtype(), DType::F32);
  EXPECT_EQ(w.grad().dtype(), DType::F32);
  const Tensor rounded = x.cast(DType::BF16).linear(w.cast(DType::BF16));
  EXPECT_EQ(loss.item(), rounded.square().cast(DType::F32).sum().item());
  const auto got = w.grad().to_vector<float>(),
             want = x.linear(w).square().sum().gradient({w})[0].to_vector<float>();
  for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], want[i], 0.02 * std::abs(want[i]));
}

}  // namespace
}  // namespace tuff::test

// Elementary functions and activations where several forms meet and at the ends of their domains:
// values that C's library gives, gradients against finite differences and at single points.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <tuff/tensor.h>

namespace tuff::test {
namespace {

using Doubles = std::vector<double>;
using Function = std::function<Tensor(const Tensor&)>;
const TensorOptions kCpu{.device = "CPU"};

Tensor of(const Doubles& v) { return Tensor::from(v, {int64_t(v.size())}, kCpu); }

// The derivative of an element-wise function at each point, and of that again.
Doubles slopes(const Function& f, const Doubles& at, int order = 1) {
  const Tensor x = of(at).set_requires_grad();
  Tensor y = f(x);
  for (int i = 0; i < order; i++) y = y.gradient({x}).at(0);
  return y.to_vector<double>();
}

void expect_slopes(const char* name, const Function& f, const Doubles& at, const Doubles& want) {
  const Doubles got = slopes(f, at);
  for (size_t i = 0; i < at.size(); i++) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << name << " at " << at[i] << ": " << got[i];
    else if (std::isinf(want[i]))
      EXPECT_EQ(got[i], want[i]) << name << " at " << at[i];
    else
      EXPECT_NEAR(got[i], want[i], 1e-12 * std::max(1.0,
          std::abs(want[i]))) << name << " at " << at[i];
  }
}

// Central differences of F64: an error of h^2 and of 1e-16/h; the second derivative by differences
// of the first.
void expect_differences(const char* name, const Function& f, const Doubles& at) {
  const double h = 1e-5;
  Doubles above = at, below = at;
  for (double& v : above) v += h;
  for (double& v : below) v -= h;
  const Doubles up = f(of(above)).to_vector<double>(), down = f(of(below)).to_vector<double>();
  const Doubles slope = slopes(f, at), curve = slopes(f, at, 2);
  const Doubles slope_up = slopes(f, above), slope_down = slopes(f, below);
  for (size_t i = 0; i < at.size(); i++) {
    const double want = (up[i] - down[i]) / (2 * h);
    EXPECT_NEAR(slope[i], want, 1e-6 * std::max(1.0, std::abs(want))) << name << " at " << at[i];
    const double bend = (slope_up[i] - slope_down[i]) / (2 * h);
    EXPECT_NEAR(curve[i], bend, 1e-5 * std::max(1.0, std::abs(bend)))
        << name << ", twice, at " << at[i];
  }
}

// Both sides of each seam between two forms, and the middle of each.
TEST(Elementary, GradientsAgreeWithDifferences) {
  using T = const Tensor&;
  const Doubles wide = {-30, -7, -1.0003, -0.9997, -0.3, -1e-3, 2e-3, 0.4, 0.9997, 1.0003, 3, 12};
  const Doubles unit = {-0.97, -0.7503, -0.7497, -0.5003, -0.4997, -0.1, 0.2, 0.4997, 0.5003, 0.75,
      0.99};
  expect_differences("atan", [](T x) { return x.atan(); }, wide);
  expect_differences("asin", [](T x) { return x.asin(); }, unit);
  expect_differences("acos", [](T x) { return x.acos(); }, unit);
  expect_differences("atanh", [](T x) { return x.atanh(); }, unit);
  expect_differences("erfinv", [](T x) { return x.erfinv(); }, unit);
  expect_differences("i0", [](T x) { return x.i0(); }, {-17, -3, 0.1, 7.9, 9.9997, 10.0003, 20});
  expect_differences("asinh", [](T x) { return x.asinh(); }, wide);
  expect_differences("acosh", [](T x) { return x.acosh(); }, {1.05, 2, 2.9997, 3.0003, 9, 200});
  expect_differences("sinh", [](T x) { return x.sinh(); }, {-3, -1.0003, -0.9997, -0.1, 0.2, 2});
  expect_differences("cosh", [](T x) { return x.cosh(); }, {-3, -1, -0.1, 0.2, 2});
  expect_differences("log1p", [](T x) { return x.log1p(); },
      {-0.9, -0.5003, -0.4997, 0.1, 0.9997, 1.0003, 40});
  expect_differences("expm1", [](T x) { return x.expm1(); },
      {-9, -1.0003, -0.9997, 0.1, 0.9997, 1.0003, 3});
  expect_differences("erfc", [](T x) { return x.erfc(); },
      {-3, -1.0003, -0.9997, 0.1, 0.3997, 0.4003, 1, 4});
  expect_differences("logit", [](T x) { return x.logit(); },
      {0.05, 0.2497, 0.2503, 0.5, 0.7497, 0.7503, 0.9});
  expect_differences("lgamma", [](T x) { return x.lgamma(); },
                     {-2.5, -0.3, 0.3, 0.4997, 0.5003, 1, 1.4997, 1.5003, 2, 2.9, 3.1, 5.5, 7.9997,
                         8.0003, 60});
  expect_differences("digamma", [](T x) { return x.digamma(); },
                     {-2.5, -0.3, 0.3, 0.9997, 1.0003, 1.46, 1.9997, 2.0003, 5.5, 7.9997, 8.0003,
                         60});
  expect_differences("sinc", [](T x) { return x.sinc(); }, {-2.2, -0.3, 0.01, 1, 4});
  expect_differences("atan2", [](T x) { return x.atan2(of({-2, -2, 1, 1, 3, 3})); },
      {-1, 1.9, -3, 0.4, -3.1, 2.9});
  expect_differences("hypot", [](T x) { return x.hypot(of({-2, 2, 1, 0.5})); }, {-1, 3, 0, 0.4});
  expect_differences("logaddexp", [](T x) { return x.logaddexp(of({-2, 2, 1, 700})); },
      {-1, 3, 0.9, -700});
  expect_differences("mish", [](T x) { return x.mish(); }, {-20, -1, -0.01, 0.2, 3, 30});
  expect_differences("celu", [](T x) { return x.celu(0.7); }, {-3, -0.7, -0.1, 0.2});
  expect_differences("norm", [](T x) { return x.unsqueeze(1).norm(2.5, {1}); }, {-3, -0.7, 0.2});
}

TEST(Elementary, GradientsAtTheEnds) {
  using T = const Tensor&;
  const double inf = INFINITY, nan = NAN;
  expect_slopes("atan", [](T x) { return x.atan(); }, {0, -0.0, inf, -inf, 1, nan},
      {1, 1, 0, 0, 0.5, nan});
  expect_slopes("asin", [](T x) { return x.asin(); }, {0, 1, -1, 2}, {1, inf, inf, nan});
  expect_slopes("acos", [](T x) { return x.acos(); }, {0, 1, -1}, {-1, -inf, -inf});
  expect_slopes("sinh", [](T x) { return x.sinh(); }, {0, inf, -inf}, {1, inf, inf});
  expect_slopes("cosh", [](T x) { return x.cosh(); }, {0, inf, -inf}, {0, inf, -inf});
  expect_slopes("asinh", [](T x) { return x.asinh(); }, {0, 1e300}, {1, 1e-300});
  expect_slopes("acosh", [](T x) { return x.acosh(); }, {1, 1e300}, {inf, 1e-300});
  expect_slopes("atanh", [](T x) { return x.atanh(); }, {0, 1, -1}, {1, inf, inf});
  expect_slopes("log1p", [](T x) { return x.log1p(); }, {0, -1, inf}, {1, inf, 0});
  expect_slopes("expm1", [](T x) { return x.expm1(); }, {0, -inf, inf}, {1, 0, inf});
  expect_slopes("erfc", [](T x) { return x.erfc(); }, {0, inf, -inf}, {-2 / std::sqrt(M_PI), 0, 0});
  expect_slopes("erfinv", [](T x) { return x.erfinv(); }, {0, 1, -1},
      {std::sqrt(M_PI) / 2, inf, inf});
  expect_slopes("i0", [](T x) { return x.i0(); }, {0, -0.0, inf, -inf, -1e300},
      {0, 0, inf, -inf, -inf});
  expect_slopes("hypot", [](T x) { return x.hypot(of({0, 2, 0, 0})); }, {0, 0, 3, -3},
      {0, 0, 1, -1});
  expect_slopes("atan2", [](T x) { return x.atan2(of({0, 2, -2, -2})); }, {0, 0, 0, -0.0},
      {0, 0.5, -0.5, -0.5});
  expect_slopes("copysign", [](T x) { return x.copysign(-1); }, {2, -2, 0}, {-1, 1, 0});
  expect_slopes("xlogy", [](T x) { return x.xlogy(of({0, 1, 4})); }, {0, 0, 0},
      {0, 0, std::log(4)});
  expect_slopes("xlogy of y", [](T y) { return of({0, 2}).xlogy(y); }, {0, 4}, {0, 0.5});
  expect_slopes("sinc", [](T x) { return x.sinc(); }, {0}, {0});
  expect_slopes("norm", [](T x) { return x.unsqueeze(1).norm(2, {1}); }, {0, -2}, {0, -1});
  expect_slopes("elu", [](T x) { return x.elu(); }, {0, -inf, inf}, {1, 0, 1});
  expect_slopes("softsign", [](T x) { return x.softsign(); }, {0}, {1});
  expect_slopes("max_with_indices", [](T x) { return x.max_with_indices(0, true).first; },
      {2, 3, 3, 1}, {0, 1, 0, 0});
  expect_slopes("bce", [](T x) { return x.binary_cross_entropy(of({0, 1, 1, 0}),
      {}, Reduction::None); }, {0, 1, 0.5, 0.5}, {1, -1, -2, 2});
}

TEST(Elementary, SignsOfZero) {
  const Tensor x = of({-0.0});
  for (const Tensor& y : {x.atan(), x.asin(), x.sinh(), x.asinh(), x.atanh(), x.log1p(), x.expm1(),
      x.erfinv(), x.atan2(of({1})), x.elu(), x.hardshrink(-1)})
    EXPECT_TRUE(std::signbit(y.item())) << y.item();
  EXPECT_EQ(x.atan2(of({-0.0})).item(), -M_PI);
  EXPECT_EQ(of({0.0}).atan2(x).item(), M_PI);
  EXPECT_FALSE(std::signbit(x.hypot(x).item()));
  EXPECT_TRUE(x.signbit().item());
}

// Beside the root of digamma, x = 1.4616321449683623..., what is left are the digits that x lacks
// of it; values to 20 digits by mpmath.
TEST(Elementary, DigammaBesideItsRoot) {
  const Doubles x = {1.4616321449683622, 1.4616321449683625, 1.4616};
  const Doubles want = {-9.2412655217294275168e-17, 1.2245374622004069031e-16,
                        -3.1106251230341649658e-05};
  const Doubles got = of(x).digamma().to_vector<double>();
  for (size_t i = 0; i < x.size(); i++)
    EXPECT_NEAR(got[i] / want[i], 1, 1e-14) << x[i] << ": " << got[i];
}

TEST(Elementary, WholeNumbersBecomeFloats) {
  const Tensor n = Tensor::from(std::vector<int32_t>{-1, 0, 2}, {3}, kCpu);
  EXPECT_EQ(n.atan().dtype(), DType::F32);
  EXPECT_EQ(n.elu().dtype(), DType::F32);
  EXPECT_EQ(n.norm().dtype(), DType::F32);
  EXPECT_EQ(n.copysign(-2).dtype(), DType::F32);
  EXPECT_EQ(n.isfinite().to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(n.signbit().to_vector<bool>(), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(n.clamp(n * 0, Tensor()).to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 2}));
  EXPECT_EQ(n.count_nonzero().dtype(), DType::I64);
}

TEST(Statistics, AnswersForTheHost) {
  const Tensor x = of({1, 2, NAN}), y = of({1, 2 + 1e-6, NAN});
  EXPECT_FALSE(x.allclose(y));
  EXPECT_TRUE(x.allclose(y, 1e-5, 0, true));
  EXPECT_FALSE(x.allclose(y, 1e-9, 0, true));
  EXPECT_FALSE(x.equal(x));
  EXPECT_TRUE(of({1, 2}).equal(of({1, 2})));
  EXPECT_FALSE(of({1, 2}).equal(of({1, 2, 3})));
  EXPECT_TRUE(of({}).equal(of({})));
  EXPECT_TRUE(of({INFINITY}).allclose(of({INFINITY})));
  EXPECT_FALSE(of({1}).allclose(of({INFINITY}), 1, INFINITY));
}

TEST(Views, TakeTheShapeOfOthers) {
  const Tensor x = of({1, 2, 3, 4, 5, 6}), grid = x.reshape({2, 3});
  EXPECT_EQ(x.view_as(grid).sizes(), (Sizes{2, 3}));
  EXPECT_EQ(x.reshape_as(grid).select(0, 1).to_vector<double>(), (Doubles{4, 5, 6}));
}

}  // namespace
}  // namespace tuff::test

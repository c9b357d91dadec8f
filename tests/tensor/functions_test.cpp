// How exact the composed functions are on the CPU, in ULP, against the C library in the next wider
// type: the figures that tensor.h states.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <limits>
#include <tuff/tensor.h>

namespace tuff::test {
namespace {

// Both ends included; irregular, so that no grid of the type's own is favoured.
template <class T>
std::vector<T> spread(double low, double high) {
  std::vector<T> v;
  constexpr int kCount = 20011;
  for (int i = 0; i <= kCount; i++) v.push_back(T(low + (high - low) * double(i) / kCount));
  return v;
}

using Function = Tensor (*)(const Tensor&);
using Exact = long double (*)(long double);

// Largest error over low..high in ULP of the exact value, not counting subnormal ones.
template <class T>
double largest_error(Function f, Exact exact, double low, double high) {
  const std::vector<T> x = spread<T>(low, high);
  const Tensor in = Tensor::from(x, {int64_t(x.size())}, {.device = "CPU"});
  const std::vector<T> y = f(in).template to_vector<T>();
  double worst = 0;
  for (size_t i = 0; i < x.size(); i++) {
    const long double want = exact(x[i]);
    const T rounded = T(want);
    if (std::abs(rounded) < std::numeric_limits<T>::min()) continue;
    const T ulp = std::nextafter(std::abs(rounded), T(INFINITY)) - std::abs(rounded);
    worst = std::max(worst, double(std::abs((long double)(y[i]) - want) / ulp));
  }
  return worst;
}

long double exact_softplus(long double x) { return log1pl(expl(x)); }
long double exact_gelu(long double x) { return x * erfcl(-x / sqrtl(2.0L)) / 2; }

TEST(Functions, StayWithinTheirUlpInF32) {
  const Function erf = [](const Tensor& x) { return x.erf(); },
                 cos = [](const Tensor& x) { return x.cos(); },
                 tan = [](const Tensor& x) { return x.tan(); },
                 tanh = [](const Tensor& x) { return x.tanh(); };
  EXPECT_LE(largest_error<float>(erf, erfl, -6, 6), 2.5);
  EXPECT_LE(largest_error<float>(erf, erfl, -1e-3, 1e-3), 2.5);
  EXPECT_LE(largest_error<float>(cos, cosl, -10, 10), 2.5);
  EXPECT_LE(largest_error<float>(cos, cosl, 1000, 1e20), 2.5);
  EXPECT_LE(largest_error<float>(tan, tanl, -10, 10), 5);
  EXPECT_LE(largest_error<float>(tan, tanl, 1000, 1e20), 5);
  EXPECT_LE(largest_error<float>(tanh, tanhl, -10, 10), 4);
  EXPECT_LE(largest_error<float>(tanh, tanhl, -1e-3, 1e-3), 2);
  EXPECT_LE(
      largest_error<float>([](const Tensor& x) { return x.softplus(); }, exact_softplus, -20, 20),
      3);
  EXPECT_LE(largest_error<float>([](const Tensor& x) { return x.gelu(); }, exact_gelu, -1, 10), 6);
}

TEST(Functions, StayWithinTheirUlpInF64) {
  const Function erf = [](const Tensor& x) { return x.erf(); },
                 cos = [](const Tensor& x) { return x.cos(); },
                 tan = [](const Tensor& x) { return x.tan(); },
                 tanh = [](const Tensor& x) { return x.tanh(); };
  EXPECT_LE(largest_error<double>(erf, erfl, -6, 6), 4);
  EXPECT_LE(largest_error<double>(cos, cosl, -10, 10), 2.5);
  EXPECT_LE(largest_error<double>(cos, cosl, 1000, 1e200), 2.5);
  EXPECT_LE(largest_error<double>(tan, tanl, -10, 10), 5);
  EXPECT_LE(largest_error<double>(tanh, tanhl, -10, 10), 4);
}

template <class T>
Tensor of(const std::vector<T>& v) {
  return Tensor::from(v, {int64_t(v.size())}, {.device = "CPU"});
}

// The same bits, but that one NaN is as good as another.
template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); i++) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << " " << i << ": " << got[i];
    } else {
      EXPECT_TRUE(got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]))
          << what << " " << i << ": " << got[i] << ", not " << want[i];
    }
  }
}

template <class T>
class OfType : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(OfType, Types);

// Every pair of values at which C's pow has a rule of its own.
TYPED_TEST(OfType, PowAtSpecialValues) {
  using T = TypeParam;
  const T inf = INFINITY, most = std::numeric_limits<T>::max();
  const std::vector<T> values = {0,   -T(0), 1,   -1,   2,   -2,   3,    -3,  T(0.5), T(-0.5), T(1.5),
                                 inf, -inf,  NAN, most, -most, std::numeric_limits<T>::denorm_min()};
  std::vector<T> x, y, want;
  for (T a : values) {
    for (T b : values) {
      const bool tested_for_size = std::abs(a) == most || (a > 0 && a < T(1e-30));
      if (tested_for_size && b != std::trunc(b)) continue;  // roots, which are no special values
      x.push_back(a), y.push_back(b), want.push_back(std::pow(a, b));
    }
  }
  expect_same(of(x).pow(of(y)).template to_vector<T>(), want, "pow");
}

// Wherever the power is a number of the type.
TYPED_TEST(OfType, WholePowersAreExact) {
  using T = TypeParam;
  std::vector<T> x, y, want;
  for (int base = -40; base <= 40; base++) {
    for (int exponent = 0; exponent <= 40; exponent++) {
      const long double exact = powl(base, exponent);
      if (exact != (long double)(T(exact)) || std::abs(exact) > 0x1p64L) continue;
      x.push_back(T(base)), y.push_back(T(exponent)), want.push_back(T(exact));
    }
  }
  expect_same(of(x).pow(of(y)).template to_vector<T>(), want, "pow");
}

TYPED_TEST(OfType, NumbersAsExponentsKeepTheRange) {
  using T = TypeParam;
  const T most = std::numeric_limits<T>::max(), small = std::pow(most, T(-0.25)) * T(1.001);
  const Tensor x = of<T>({most, -T(0), T(0), small, INFINITY});
  expect_same(x.pow(1).template to_vector<T>(), {most, -T(0), T(0), small, T(INFINITY)}, "pow 1");
  expect_same(of<T>({-T(0), T(0)}).pow(-1).template to_vector<T>(), {-T(INFINITY), T(INFINITY)}, "-1");
  expect_same(of<T>({-T(0), -T(INFINITY)}).pow(-2).template to_vector<T>(), {T(INFINITY), T(0)}, "-2");
  EXPECT_NEAR(double(x.pow(-4).template to_vector<T>()[3] / std::pow(small, T(-4))), 1, 1e-6);
}

// torch.autograd of torch.pow at the same operands (1.13.0), whose zero at 1/inf is a negative one.
TEST(Functions, GradientsOfPowAtTheEdgesArePyTorchs) {
  const float inf = INFINITY, nan = NAN;
  Tensor x = of<float>({0, 0, 0, 0, 0, inf, inf, inf, -2, nan, 2, 3, -2});
  Tensor y = of<float>({0, 0.5, 1, 2, -1, 2, 1, -1, 0.5, 0, nan, 0, 3});
  x.set_requires_grad();
  y.set_requires_grad();
  x.pow(y).sum().backward();
  expect_same(x.grad().to_vector<float>(), {0, inf, 1, 0, -inf, inf, 1, 0, nan, 0, nan, 0, 12}, "d/dx");
  const float log_3 = std::log(3.0f);
  const std::vector<float> of_y = y.grad().to_vector<float>();
  EXPECT_NEAR(of_y[11], log_3, 2e-7);
  expect_same(std::vector<float>(of_y.begin(), of_y.begin() + 11), {0, 0, 0, 0, -inf, inf, inf, nan, nan, nan, nan}, "d/dy");
  EXPECT_TRUE(std::isnan(of_y[12]));
  Tensor v = of<float>({0, 2, -3});
  v.set_requires_grad();
  v.pow(0).sum().backward();
  ASSERT_TRUE(v.grad().defined());
  expect_same(v.grad().to_vector<float>(), {0, 0, 0}, "d/dx of x**0");
}

TYPED_TEST(OfType, QuotientsHaveTheSignsOfNumPy) {
  using T = TypeParam;
  const T inf = INFINITY;
  const Tensor a = of<T>({T(0), -T(0), T(0), -T(0), 6, -6, 6, -6, T(0.5), 1, -1}),
               b = of<T>({3, 3, -3, -3, 3, 3, -3, -3, 2, inf, inf});
  expect_same(a.floor_divide(b).template to_vector<T>(),
              {T(0), -T(0), -T(0), T(0), 2, -2, -2, 2, T(0), T(0), -1}, "floor_divide");
  expect_same(a.remainder(b).template to_vector<T>(),
              {T(0), T(0), -T(0), -T(0), T(0), T(0), -T(0), -T(0), T(0.5), 1, inf}, "remainder");
  expect_same(a.fmod(b).template to_vector<T>(),
              {T(0), -T(0), T(0), -T(0), T(0), -T(0), T(0), -T(0), T(0.5), 1, -1}, "fmod");
  const T most = std::numeric_limits<T>::max();
  expect_same(of<T>({most, -most}).floor_divide(T(0.1)).template to_vector<T>(), {inf, -inf}, "infinite");
  expect_same(of<T>({most, -most}).remainder(T(0.1)).template to_vector<T>(), {T(0), T(0)}, "infinite");
  expect_same(of<T>({T(-0.3), T(0.3), -T(0), T(-0.5)}).round().template to_vector<T>(),
              {-T(0), T(0), -T(0), -T(0)}, "round");
  Tensor x = of<T>({6, -6, 5});
  x.set_requires_grad();
  x.remainder(3).sum().backward();
  expect_same(x.grad().template to_vector<T>(), {1, 1, 1}, "gradient");
}

TYPED_TEST(OfType, BoundsThatAreNaN) {
  using T = TypeParam;
  const Tensor x = of<T>({1, -1, NAN, INFINITY});
  const std::vector<T> all(4, T(NAN));
  expect_same(x.clamp(NAN, 1).template to_vector<T>(), all, "low");
  expect_same(x.clamp({}, NAN).template to_vector<T>(), all, "high");
}

TYPED_TEST(OfType, GradientsOfSinesFarOut) {
  using T = TypeParam;
  Tensor x = of<T>({T(1e19), T(1e10), T(-3e7)});
  x.set_requires_grad();
  x.sin().sum().backward();
  expect_same(x.grad().template to_vector<T>(), x.detach().cos().template to_vector<T>(), "cos");
}

}  // namespace
}  // namespace tuff::test

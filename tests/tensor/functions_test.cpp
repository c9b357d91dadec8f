// How exact the composed functions are on the CPU, in ULP, against the C library in the next wider
// type: the figures that tensor.h states.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

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
  EXPECT_LE(largest_error<float>(cos, cosl, 1000, 24999), 2.5);
  EXPECT_LE(largest_error<float>(tan, tanl, -10, 10), 5);
  EXPECT_LE(largest_error<float>(tan, tanl, 1000, 24999), 5);
  EXPECT_LE(largest_error<float>(tanh, tanhl, -10, 10), 4);
  EXPECT_LE(largest_error<float>(tanh, tanhl, -1e-3, 1e-3), 2);
  EXPECT_LE(
      largest_error<float>([](const Tensor& x) { return x.softplus(); }, exact_softplus, -20, 20),
      24);
  EXPECT_LE(largest_error<float>([](const Tensor& x) { return x.gelu(); }, exact_gelu, -1, 10), 6);
}

TEST(Functions, StayWithinTheirUlpInF64) {
  const Function erf = [](const Tensor& x) { return x.erf(); },
                 cos = [](const Tensor& x) { return x.cos(); },
                 tan = [](const Tensor& x) { return x.tan(); },
                 tanh = [](const Tensor& x) { return x.tanh(); };
  EXPECT_LE(largest_error<double>(erf, erfl, -6, 6), 4);
  EXPECT_LE(largest_error<double>(cos, cosl, -10, 10), 2.5);
  EXPECT_LE(largest_error<double>(cos, cosl, 1000, 2e6), 2.5);
  EXPECT_LE(largest_error<double>(tan, tanl, -10, 10), 5);
  EXPECT_LE(largest_error<double>(tanh, tanhl, -10, 10), 4);
}

// Beyond the reduction's reach: 1 - 2 y^2 with the sine y within 1.7 ULP, 4 * 1.7 * 2^-24.
TEST(Functions, CosineFarOut) {
  const std::vector<float> x = spread<float>(26000, 4e6);
  const std::vector<float> y =
      Tensor::from(x, {int64_t(x.size())}, {.device = "CPU"}).cos().to_vector<float>();
  for (size_t i = 0; i < x.size(); i++) EXPECT_NEAR(y[i], std::cos(double(x[i])), 4.1e-7) << x[i];
}

}  // namespace
}  // namespace tuff::test

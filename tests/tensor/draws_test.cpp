// Draws from distributions, whose counts and moments are what they should be and whose bits are the
// same on every device; slices that differ; tensors that move to another device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <tuff/tensor.h>
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

class Draws : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { Tensor::manual_seed(11); }
  TensorOptions on(DType t = DType::F32) const { return {t, GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Devices, Draws, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

constexpr int64_t kCount = 20000;

double mean_of(const Floats& v) {
  double sum = 0;
  for (const float x : v) sum += x;
  return sum / double(v.size());
}

// The largest distance of the values' distribution from another, times the root of their number
// (Kolmogorov and Smirnov); above 1.95 in one of a thousand draws.
template <class F>
double distance_from(Floats v, const F& distribution) {
  std::sort(v.begin(), v.end());
  double most = 0;
  const auto n = double(v.size());
  for (size_t i = 0; i < v.size(); i++) {
    const double p = distribution(v[i]);
    most = std::max({most, p - double(i) / n, double(i + 1) / n - p});
  }
  return most * std::sqrt(n);
}

TEST_P(Draws, Bernoulli) {
  const Floats p = Tensor::full({kCount}, 0.3, on()).bernoulli().to_vector<float>();
  EXPECT_NEAR(mean_of(p), 0.3, 0.015);
  for (const float v : p) ASSERT_TRUE(v == 0 || v == 1);
  const Tensor edges = Tensor::from({0.0f, 1.0f, -1.0f, 2.0f}, {4}, on()).bernoulli();
  EXPECT_EQ(edges.to_vector<float>(), (Floats{0, 1, 0, 1}));
  EXPECT_NEAR(mean_of(Tensor::zeros({kCount}, on()).bernoulli(0.8).to_vector<float>()), 0.8, 0.015);
  EXPECT_EQ(Tensor::full({3}, 1, on(DType::F16)).bernoulli().dtype(), DType::F16);
}

TEST_P(Draws, Exponential) {
  const Floats v = Tensor::exponential({kCount}, 2, on()).to_vector<float>();
  EXPECT_LT(distance_from(v, [](double x) { return 1 - std::exp(-2 * x); }), 1.95);
  EXPECT_GE(*std::min_element(v.begin(), v.end()), 0);
}

TEST_P(Draws, NormalBetweenBounds) {
  const Floats v = Tensor::trunc_normal({kCount}, 1, 2, -1, 2, on()).to_vector<float>();
  const auto phi = [](double x) { return 0.5 * std::erfc(-(x - 1) / 2 / std::sqrt(2.0)); };
  EXPECT_LT(distance_from(v, [&](double x) { return (phi(x) - phi(-1)) / (phi(2) - phi(-1)); }),
            1.95);
  EXPECT_GE(*std::min_element(v.begin(), v.end()), -1);
  EXPECT_LE(*std::max_element(v.begin(), v.end()), 2);
}

TEST_P(Draws, ScaledUniform) {
  const Floats v = Tensor::scaled_uniform({100, 100}, on()).to_vector<float>();
  EXPECT_LT(distance_from(v, [](double x) { return (x * 100 + 1) / 2; }), 1.95);
}

// Pearson's statistic of how often each count came, in its own deviations.
double deviations_of(const Floats& v, double rate) {
  std::map<int64_t, double> seen;
  for (const float k : v) seen[int64_t(k)]++;
  double statistic = 0, degrees = -1;
  for (int64_t k = 0; k < int64_t(rate) + 60; k++) {
    const double expected =
        double(v.size()) * std::exp(double(k) * std::log(rate) - rate - std::lgamma(double(k) + 1));
    if (expected < 5) continue;
    statistic += (seen[k] - expected) * (seen[k] - expected) / expected;
    degrees++;
  }
  return (statistic - degrees) / std::sqrt(2 * degrees);
}

TEST_P(Draws, PoissonBySumsAndByRejection) {
  for (const double rate : {0.5, 11.5, 12.5, 80.0}) {
    const Floats v = Tensor::full({kCount}, rate, on()).poisson().to_vector<float>();
    EXPECT_NEAR(mean_of(v), rate, 4 * std::sqrt(rate / kCount)) << rate;
    EXPECT_LT(std::abs(deviations_of(v, rate)), 4) << rate;
  }
  const Floats odd = Tensor::from({0.0f, -1.0f, NAN}, {3}, on()).poisson().to_vector<float>();
  EXPECT_EQ(odd[0], 0);
  EXPECT_TRUE(std::isnan(odd[1]) && std::isnan(odd[2]));
}

TEST(DrawsOfAllDevices, AreTheSame) {
  Floats first;
  for (const std::string& device : devices()) {
    Tensor::manual_seed(3);
    const TensorOptions there{.device = device};
    const Tensor rates = Tensor::linspace(0, 40, 64, there);
    const Tensor all = Tensor::cat({rates.poisson(), Tensor::exponential({64}, 1, there),
                                    Tensor::trunc_normal({64}, 0, 1, -1, 1, there)});
    if (first.empty()) first = all.to_vector<float>();
    EXPECT_EQ(all.to_vector<float>(), first) << device;
  }
}

TEST_P(Draws, DifferentSlices) {
  const Ints rows{2, 1, 0, 5, 2, 1, 2, 0, 0, 5};
  const Tensor x = Tensor::from(rows, {5, 2}, on(DType::I32));
  const UniqueElements u = x.unique(0);
  EXPECT_EQ(u.values.to_vector<int32_t>(), (Ints{0, 5, 2, 0, 2, 1}));
  EXPECT_EQ(u.inverse.to_vector<int32_t>(), (Ints{2, 0, 2, 1, 0}));
  EXPECT_EQ(u.counts.to_vector<int32_t>(), (Ints{2, 1, 2}));
  EXPECT_EQ(x.T().unique(1).values.to_vector<int32_t>(), (Ints{0, 2, 2, 5, 0, 1}));
  const UniqueElements none = Tensor::zeros({0, 3}, on()).unique(0);
  EXPECT_EQ(none.values.sizes(), (Sizes{0, 3}));
  const Tensor odd = Tensor::from({-0.0f, 1.0f, NAN, 0.0f, 1.0f, NAN}, {6, 1}, on());
  EXPECT_EQ(odd.unique(0).counts.to_vector<int32_t>(), (Ints{2, 2, 2}));
}

TEST_P(Draws, TensorsMoveWithTheirGradients) {
  Tensor x = Tensor::from({1, 2, 3}, {3}, {.device = "CPU"}).set_requires_grad();
  (x * x).sum().backward();
  const Tensor copy = x;
  x.to_(GetParam());
  EXPECT_EQ(copy.device(), Tensor::zeros({}, on()).device());
  EXPECT_TRUE(copy.requires_grad());
  EXPECT_EQ(copy.grad().device(), copy.device());
  EXPECT_EQ(copy.grad().to_vector<float>(), (Floats{2, 4, 6}));
  (x * 3).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{5, 7, 9}));
  // What is still to be computed keeps its history.
  Tensor w = Tensor::from({1, 2}, {2}, {.device = "CPU"}).set_requires_grad(), y = w * 5;
  y.to_(GetParam());
  y.sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{5, 5}));
}

TEST_P(Draws, OverlappingStridesAddUpTheirGradients) {
  Tensor x = Tensor::arange(6).to(GetParam()).cast(DType::F32).realize();
  x.set_requires_grad();
  const Tensor windows = x.as_strided({3, 3}, {1, 1}, 1);
  windows.sum().backward();
  EXPECT_EQ(windows.to_vector<float>(), (Floats{1, 2, 3, 2, 3, 4, 3, 4, 5}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 1, 2, 3, 2, 1}));
}

}  // namespace
}  // namespace tuff::test

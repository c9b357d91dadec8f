// Autograd's contract: what accumulates, what is left alone, gradients of gradients; and gradients
// of random networks of functions against finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <tuff/tensor.h>
#include "base/check.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
const TensorOptions kCpu{.device = "CPU"};

Tensor leaf(const Floats& v) {
  return Tensor::from(v, {int64_t(v.size())}, kCpu).set_requires_grad();
}

TEST(Autograd, BackwardAddsToWhatIsThere) {
  Tensor x = leaf({1, 2});
  EXPECT_TRUE(x.requires_grad());
  const Tensor y = x.square().sum();
  y.backward();
  y.backward();  // the graph is still there
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{4, 8}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
  (x * 3).backward(Tensor::from({1, 10}, {2}, kCpu));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 30}));
}

TEST(Autograd, GradientLeavesGradAlone) {
  const Tensor x = leaf({1, 2}), other = leaf({5});
  const std::vector<Tensor> g = (x * x).gradient({x, other});
  EXPECT_EQ(g[0].to_vector<float>(), (Floats{2, 4}));
  EXPECT_FALSE(g[1].defined());
  EXPECT_FALSE(x.grad().defined());
  const Tensor weighted = (x * x).gradient({x}, Tensor::from({10, 100}, {2}, kCpu)).at(0);
  EXPECT_EQ(weighted.to_vector<float>(), (Floats{20, 400}));
}

TEST(Autograd, DetachAndIntegersStopIt) {
  Tensor x = leaf({1, 2});
  (x.detach() * x).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{1, 2}));
  x.cast(DType::I32).cast(DType::F32).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{1, 2}));
}

TEST(Autograd, OfIntermediateTensors) {
  const Tensor x = leaf({3}), y = x * 2;
  EXPECT_EQ((y * y).gradient({y}).at(0).item(), 12);
}

TEST(Autograd, OfGradients) {
  const Tensor x = leaf({0.5, -1.5, 2});
  // All asked for before any is computed: memory has no history.
  const Tensor first = x.pow(3).gradient({x}).at(0), second = first.gradient({x}).at(0),
               third = second.gradient({x}).at(0);
  const Floats got = second.to_vector<float>();
  for (size_t i = 0; i < 3; i++) EXPECT_NEAR(got[i], 6 * x.to_vector<float>()[i], 1e-5);
  EXPECT_NEAR(third.to_vector<float>()[0], 6, 1e-5);
}

// d/dx of sum(f(x) * w) by central differences in F64: an error of h^2 and of 1e-16/h.
void expect_gradient_of_differences(const char* name, const std::function<Tensor(Tensor)>& f,
                                    const Sizes& sizes, double low, double high) {
  Tensor::manual_seed(21);
  Tensor x = Tensor::uniform(sizes, low, high, {DType::F64, "CPU"}).realize();
  x.set_requires_grad();
  const Tensor w = Tensor::uniform(f(x).sizes(), 0.5, 1.5, {DType::F64, "CPU"}).realize();
  const Doubles got = (f(x) * w).gradient({x}).at(0).to_vector<double>();
  const Doubles values = x.to_vector<double>();
  const double h = 1e-5;
  for (size_t i = 0; i < values.size(); i += 3) {
    double ends[2];
    for (int side = 0; side < 2; side++) {
      Doubles moved = values;
      moved[i] += side ? h : -h;
      ends[side] = (f(Tensor::from(moved, sizes, kCpu)) * w).sum().item();
    }
    const double want = (ends[1] - ends[0]) / (2 * h);
    EXPECT_NEAR(got[i], want, 1e-6 * std::max(1.0, std::abs(want))) << name << " " << i;
  }
}

TEST(Autograd, AgreesWithFiniteDifferences) {
  using T = const Tensor&;
  expect_gradient_of_differences("tan", [](T x) { return x.tan(); }, {7}, -1.3, 1.3);
  expect_gradient_of_differences("cos", [](T x) { return x.cos(); }, {7}, -9, 9);
  expect_gradient_of_differences("erf", [](T x) { return x.erf(); }, {9}, -3, 3);
  expect_gradient_of_differences("gelu", [](T x) { return x.gelu(); }, {9}, -3, 3);
  expect_gradient_of_differences("tanh", [](T x) { return x.tanh(); }, {9}, -2, 2);
  expect_gradient_of_differences("sigmoid", [](T x) { return x.sigmoid(); }, {9}, -4, 4);
  expect_gradient_of_differences("silu", [](T x) { return x.silu(); }, {9}, -4, 4);
  expect_gradient_of_differences("gelu by tanh", [](T x) { return x.gelu("tanh"); }, {9}, -3, 3);
  expect_gradient_of_differences("softplus", [](T x) { return x.softplus(2); }, {9}, -3, 3);
  expect_gradient_of_differences("pow", [](T x) { return x.pow(x); }, {7}, 0.2, 3);
  expect_gradient_of_differences(
      "pow of a base", [](T x) { return Tensor::pow(3, x); }, {5}, -1, 1);
  expect_gradient_of_differences("fmod", [](T x) { return x.fmod(0.7); }, {5}, 0.8, 1.3);
  expect_gradient_of_differences("cumsum", [](T x) { return x.cumsum(0).square(); }, {5, 2}, -1, 1);
  expect_gradient_of_differences("var", [](T x) { return x.var({1}); }, {3, 4}, -1, 1);
  expect_gradient_of_differences("logsumexp", [](T x) { return x.logsumexp({0}); }, {3, 4}, -1, 1);
  expect_gradient_of_differences("rms_norm", [](T x) { return x.rms_norm({4}); }, {3, 4}, -1, 1);
  expect_gradient_of_differences(
      "batchnorm", [](T x) { return x.batchnorm({}, {}, {}, {}, true); }, {3, 2, 2}, -1, 1);
  expect_gradient_of_differences(
      "avg_pool2d", [](T x) { return x.avg_pool2d({2, 3}, 2, 1, true, false); }, {1, 5, 6}, -1, 1);
  expect_gradient_of_differences(
      "einsum", [](T x) { return Tensor::einsum("ij,kj,kk->ik", {x, x, x}); }, {3, 3}, -1, 1);
  expect_gradient_of_differences("prod", [](T x) { return x.prod({1}); }, {3, 4}, 0.5, 1.5);
}

}  // namespace
}  // namespace tuff::test

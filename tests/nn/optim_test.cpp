// Optimizers against their formulas, computed here in double.
#include <gtest/gtest.h>

#include <tuff/optim.h>

#include <cmath>

namespace tuff::optim {
namespace {

using Floats = std::vector<float>;
const Floats kStart{1.0f, -2.0f, 0.5f}, kTarget{0.0f, 1.0f, 2.0f};

Tensor parameter(const Floats& values) {
  return Tensor::from(values, {int64_t(values.size())}, {.device = "CPU"}).set_requires_grad();
}

// One step on sum((p - target)^2): the gradient is 2 (p - target).
void step(Optimizer& optimizer, const Tensor& p) {
  const Tensor target = Tensor::from(kTarget, {3}, {.device = "CPU"});
  (p - target).square().sum().backward();
  optimizer.step();
}

void expect_near(const Tensor& p, const std::vector<double>& wanted) {
  const Floats got = p.to_vector<float>();
  for (size_t i = 0; i < wanted.size(); i++)
    EXPECT_NEAR(got[i], wanted[i], 2e-6) << "element " << i;
}

void check_sgd(bool nesterov) {
  const double lr = 0.1, momentum = 0.9, decay = 0.01;
  const Tensor p = parameter(kStart);
  SGD sgd({p}, {.lr = lr, .momentum = momentum, .weight_decay = decay, .nesterov = nesterov});
  std::vector<double> x(kStart.begin(), kStart.end()), v(3, 0.0);
  for (int s = 0; s < 5; s++) {
    step(sgd, p);
    for (size_t i = 0; i < 3; i++) {
      const double g = 2 * (x[i] - kTarget[i]) + decay * x[i];
      v[i] = momentum * v[i] + g;
      x[i] -= lr * (nesterov ? g + momentum * v[i] : v[i]);
    }
    expect_near(p, x);
  }
}

TEST(Sgd, MomentumAndWeightDecay) { check_sgd(false); }
TEST(Sgd, Nesterov) { check_sgd(true); }

TEST(AdamW, FollowsItsFormula) {
  const double lr = 0.05, b1 = 0.9, b2 = 0.95, eps = 1e-8, decay = 0.1;
  const Tensor p = parameter(kStart);
  AdamW adam({p}, {.lr = lr, .beta1 = b1, .beta2 = b2, .eps = eps, .weight_decay = decay});
  std::vector<double> x(kStart.begin(), kStart.end()), m(3, 0.0), v(3, 0.0);
  for (int s = 1; s <= 5; s++) {
    step(adam, p);
    for (size_t i = 0; i < 3; i++) {
      const double g = 2 * (x[i] - kTarget[i]);
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const double mh = m[i] / (1 - std::pow(b1, s)), vh = v[i] / (1 - std::pow(b2, s));
      x[i] = x[i] * (1 - lr * decay) - lr * mh / (std::sqrt(vh) + eps);
    }
    expect_near(p, x);
  }
}

TEST(Adam, AddsItsDecayToTheGradient) {
  const double lr = 0.05, b1 = 0.9, b2 = 0.95, eps = 1e-8, decay = 0.1;
  const Tensor p = parameter(kStart);
  Adam adam({p}, {.lr = lr, .beta1 = b1, .beta2 = b2, .eps = eps, .weight_decay = decay});
  std::vector<double> x(kStart.begin(), kStart.end()), m(3, 0.0), v(3, 0.0);
  for (int s = 1; s <= 5; s++) {
    step(adam, p);
    for (size_t i = 0; i < 3; i++) {
      const double g = 2 * (x[i] - kTarget[i]) + decay * x[i];
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const double mh = m[i] / (1 - std::pow(b1, s)), vh = v[i] / (1 - std::pow(b2, s));
      x[i] -= lr * mh / (std::sqrt(vh) + eps);
    }
    expect_near(p, x);
  }
}

TEST(Optimizer, TakesTheLearningRateFromItsTensor) {
  const Tensor p = parameter(kStart);
  SGD sgd({p}, {.lr = 0.1});
  sgd.set_lr(0.0);
  step(sgd, p);
  expect_near(p, {1.0, -2.0, 0.5});
}

TEST(Optimizer, SaysWhatIsWrong) {
  EXPECT_THROW(SGD({}, {}), InvalidArgument);
  EXPECT_THROW(SGD({Tensor::zeros({2}, {.device = "CPU"})}, {}), InvalidArgument);
  SGD sgd({parameter(kStart)}, {});
  EXPECT_THROW(sgd.step(), InvalidArgument);
}

}  // namespace
}  // namespace tuff::optim

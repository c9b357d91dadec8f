// Optimizers against their formulas, computed here in double.
#include <gtest/gtest.h>

#include <tuff/optim.h>

#include <cmath>
#include <functional>

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

// The tensors of a state, as a file would hold them.
nn::StateDict copies(const nn::StateDict& state) {
  nn::StateDict out;
  for (const nn::NamedTensor& t : state)
    out.push_back({t.name,
                   Tensor::from(t.tensor.to_vector<float>(), t.tensor.sizes(), {.device = "CPU"}),
                   false});
  return out;
}
std::vector<std::string> names(const nn::StateDict& state) {
  std::vector<std::string> out;
  for (const nn::NamedTensor& t : state) out.push_back(t.name);
  return out;
}
std::string refusal(Optimizer& optimizer, const nn::StateDict& state) {
  try {
    optimizer.load_state_dict(state);
  } catch (const Error& e) {
    return std::string(e.kind()) + ": " + e.what();
  }
  return "";
}

// Three steps, then two more; the same two by another optimizer that was given the state in
// between.
template <class Kind>
void check_goes_on(const typename Kind::Options& options, const std::vector<std::string>& wanted) {
  const Tensor p = parameter(kStart);
  Kind first({p}, options);
  for (int s = 0; s < 3; s++) step(first, p);
  first.set_lr(0.03);
  EXPECT_EQ(names(first.state_dict()), wanted);
  const nn::StateDict kept = copies(first.state_dict());
  const Tensor q = parameter(p.to_vector<float>());
  for (int s = 0; s < 2; s++) step(first, p);

  typename Kind::Options other = options;
  other.lr = 0.5;
  Kind second({q}, other);
  second.load_state_dict(kept);
  EXPECT_FLOAT_EQ(float(second.lr_value()), 0.03f);
  for (int s = 0; s < 2; s++) step(second, q);
  EXPECT_EQ(q.to_vector<float>(), p.to_vector<float>());
}

TEST(OptimizerState, GoesOnBitForBit) {
  check_goes_on<SGD>({.lr = 0.1}, {"param_groups.0.lr"});
  check_goes_on<SGD>({.lr = 0.1, .momentum = 0.9},
                     {"param_groups.0.lr", "state.0.momentum_buffer"});
  const std::vector<std::string> moments{"param_groups.0.lr", "state.0.step", "state.0.exp_avg",
                                         "state.0.exp_avg_sq"};
  check_goes_on<Adam>({.lr = 0.1}, moments);
  check_goes_on<AdamW>({.lr = 0.1}, moments);
}

TEST(OptimizerState, RefusesTheStateOfAnother) {
  const Tensor p = parameter(kStart), q = parameter(kStart), r = parameter({1, 2});
  AdamW adam({p, q}, {}), of_one({p}, {}), smaller({p, r}, {});
  SGD sgd({p, q}, {.momentum = 0.9});
  step(adam, p);
  const nn::StateDict before = copies(adam.state_dict());
  EXPECT_NE(refusal(adam, copies(sgd.state_dict())).find("momentum_buffer"), std::string::npos);
  EXPECT_NE(refusal(adam, copies(of_one.state_dict())).find("no 'state.1.step'"),
            std::string::npos);
  EXPECT_NE(refusal(of_one, before).find("AdamW of 1 parameters keeps no 'state.1.step'"),
            std::string::npos);
  EXPECT_NE(refusal(adam, copies(smaller.state_dict())).find("ShapeError"), std::string::npos);
  nn::StateDict uneven = copies(adam.state_dict());
  for (nn::NamedTensor& t : uneven)
    if (t.name == "state.1.step") t.tensor = Tensor::from({7}, {}, {.device = "CPU"});
  EXPECT_NE(refusal(adam, uneven).find("'state.1.step' is 7 and 'state.0.step' 1"),
            std::string::npos);
  const nn::StateDict after = adam.state_dict();
  for (size_t i = 0; i < after.size(); i++)
    EXPECT_EQ(after[i].tensor.to_vector<float>(), before[i].tensor.to_vector<float>());
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(Optimizers, RefuseAmountsThatAreNone) {
  const auto p = [] { return std::vector<Tensor>{parameter(kStart)}; };
  for (const double bad : {-0.1, double(NAN), double(INFINITY), 1e300}) {
    EXPECT_NE(refusal([&] { SGD(p(), {.lr = bad}); }).find("lr is "), std::string::npos) << bad;
    EXPECT_NE(refusal([&] { SGD(p(), {.momentum = bad}); }).find("SGD: momentum is "),
              std::string::npos);
    EXPECT_NE(refusal([&] { SGD(p(), {.weight_decay = bad}); }).find("SGD: weight_decay is "),
              std::string::npos);
    EXPECT_NE(refusal([&] { Adam(p(), {.lr = bad}); }).find("lr is "), std::string::npos);
    EXPECT_NE(refusal([&] { Adam(p(), {.eps = bad}); }).find("Adam: eps is "), std::string::npos);
    EXPECT_NE(refusal([&] { Adam(p(), {.beta1 = bad}); }).find("Adam: beta1 is "),
              std::string::npos);
    EXPECT_NE(refusal([&] { AdamW(p(), {.beta2 = bad}); }).find("beta2 is "), std::string::npos);
    EXPECT_NE(refusal([&] { AdamW(p(), {.weight_decay = bad}); }).find("AdamW: weight_decay is "),
              std::string::npos);
    SGD sgd(p(), {.lr = 0.5});
    EXPECT_NE(refusal([&] { sgd.set_lr(bad); }).find("SGD: lr is "), std::string::npos);
    EXPECT_EQ(sgd.lr_value(), 0.5);
    EXPECT_EQ(sgd.lr().item(), 0.5);
    LambdaLR schedule(sgd, [&](int64_t step) { return step == 0 ? 1 : bad; });
    EXPECT_NE(refusal([&] { schedule.step(); }).find("SGD: lr is "), std::string::npos);
    EXPECT_EQ(schedule.last_step(), 0);
  }
  EXPECT_NE(refusal([&] { Adam(p(), {.beta1 = 1}); }).find("less than 1"), std::string::npos);
  EXPECT_NE(refusal([&] { SGD(p(), {.nesterov = true}); }).find("nesterov needs a momentum"),
            std::string::npos);
  SGD(p(), {.lr = 0});
}

TEST(Optimizers, RefuseARateOfAStateThatIsNone) {
  const std::vector<Tensor> p{parameter(kStart)};
  SGD sgd(p, {.lr = 0.5, .momentum = 0.5});
  nn::StateDict state = sgd.state_dict();
  for (nn::NamedTensor& t : state)
    t.tensor = t.name == "param_groups.0.lr" ? Tensor::full({}, NAN, {.device = "CPU"})
                                             : Tensor::ones(t.tensor.sizes(), {.device = "CPU"});
  EXPECT_NE(refusal([&] { sgd.load_state_dict(state); }).find("param_groups.0.lr is nan"),
            std::string::npos);
  EXPECT_EQ(sgd.lr().item(), 0.5);
  EXPECT_EQ(sgd.state_dict().back().tensor.to_vector<float>(), Floats(3, 0.0f));
}

}  // namespace
}  // namespace tuff::optim

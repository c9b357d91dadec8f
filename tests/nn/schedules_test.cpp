// Learning-rate schedules against PyTorch's, gradient clipping against its formula, and both inside
// and around a captured step.
#include <gtest/gtest.h>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

namespace tuff::optim {
namespace {

using Floats = std::vector<float>;
const TensorOptions kCpu{.device = "CPU"};

Tensor cpu_parameter(const Floats& values) {
  return Tensor::from(values, {int64_t(values.size())}, kCpu).set_requires_grad();
}

std::vector<double> stored_rates(const char* name) {
  std::ifstream file(TUFF_SOURCE_DIR "/tests/data/tensor_values.json");
  return nlohmann::json::parse(file).at("schedules").at(name);
}

template <class Schedule, class... Args>
void expect_rates(const char* name, Args... args) {
  SGD optimizer({cpu_parameter({1})}, {.lr = 0.1});
  Schedule schedule(optimizer, args...);
  const std::vector<double> wanted = stored_rates(name);
  ASSERT_EQ(wanted.size(), 12u);
  for (size_t i = 0; i < wanted.size(); i++) {
    EXPECT_NEAR(schedule.get_last_lr(), wanted[i], 1e-9) << "step " << i;
    EXPECT_NEAR(optimizer.lr().item(), wanted[i], 1e-7) << "step " << i;
    EXPECT_EQ(schedule.last_step(), int64_t(i));
    if (i + 1 < wanted.size()) schedule.step();
  }
}

TEST(Schedules, AgreeWithPyTorch) {
  expect_rates<StepLR>("StepLR", 3, 0.5);
  expect_rates<CosineAnnealingLR>("CosineAnnealingLR", 11, 0.01);
  expect_rates<LinearLR>("LinearLR", 0.25, 1.0, 4);
  expect_rates<OneCycleLR>("OneCycleLR", 0.4, 12);
  expect_rates<LambdaLR>("LambdaLR", [](int64_t step) { return 1.0 / double(1 + step); });
}

// Steps of SGD on a constant gradient of 1 sum the rates up, captured or not.
TEST(Schedules, MoveACapturedStep) {
  Tensor p = cpu_parameter({0});
  SGD optimizer({p}, {.lr = 1});
  LambdaLR schedule(optimizer, [](int64_t step) { return double(step + 1); });
  Jit jit([&](const std::vector<Tensor>&) {
    optimizer.zero_grad();
    p.sum().backward();
    optimizer.step();
    return std::vector<Tensor>{};
  });
  double sum = 0;
  for (int step = 1; step <= 6; step++) {
    jit({});
    schedule.step();
    sum -= step;
    EXPECT_EQ(p.item(), sum);
  }
  EXPECT_TRUE(jit.captured());
}

TEST(Schedules, StepInsideACaptureIsAnError) {
  SGD optimizer({cpu_parameter({0})}, {.lr = 1});
  StepLR schedule(optimizer, 2);
  const Tensor x = cpu_parameter({1});
  Jit jit([&](const std::vector<Tensor>& in) {
    const std::vector<Tensor> out{in[0] + 1};
    schedule.step();
    return out;
  });
  jit({x});
  EXPECT_THROW(jit({x}), InvalidArgument);
}

void expect_gradients(const std::vector<Tensor>& parameters, const std::vector<Floats>& wanted) {
  for (size_t i = 0; i < wanted.size(); i++) {
    const Floats got = parameters[i].grad().to_vector<float>();
    for (size_t k = 0; k < got.size(); k++)
      EXPECT_NEAR(got[k], wanted[i][k], 1e-5) << i << " " << k;
  }
}

std::vector<Tensor> with_gradients() {
  const Tensor a = cpu_parameter({0, 0}), b = cpu_parameter({0});
  (a * Tensor::from({3, -4}, {2}, kCpu)).sum().backward();
  (b * 12.0).sum().backward();
  return {a, b};
}

TEST(Clipping, ScalesToTheNorm) {
  std::vector<Tensor> p = with_gradients();
  EXPECT_NEAR(clip_grad_norm_(p, 6.5).item(), 13, 1e-5);
  expect_gradients(p, {{1.5f, -2}, {6}});
  p = with_gradients();
  EXPECT_NEAR(clip_grad_norm_(p, 100).item(), 13, 1e-5);
  expect_gradients(p, {{3, -4}, {12}});
  EXPECT_NEAR(clip_grad_norm_(p, 6, INFINITY).item(), 12, 1e-5);
  expect_gradients(p, {{1.5f, -2}, {6}});
  EXPECT_NEAR(clip_grad_norm_(p, 100, 1).item(), 9.5, 1e-5);
  EXPECT_NEAR(clip_grad_norm_(p, 100, 3).item(), std::cbrt(1.5 * 1.5 * 1.5 + 8 + 216), 1e-4);
}

TEST(Schedules, GoOnFromAStep) {
  const Tensor p = cpu_parameter({0});
  SGD first({p}, {.lr = 0.8}), second({p}, {.lr = 0.8});
  CosineAnnealingLR whole(first, 10), resumed(second, 10);
  for (int i = 0; i < 4; i++) whole.step();
  resumed.set_last_step(4);
  EXPECT_EQ(resumed.last_step(), 4);
  EXPECT_EQ(resumed.get_last_lr(), whole.get_last_lr());
  whole.step();
  resumed.step();
  EXPECT_EQ(resumed.get_last_lr(), whole.get_last_lr());
  EXPECT_THROW(resumed.set_last_step(-1), InvalidArgument);
}

TEST(Clipping, ClampsValues) {
  const std::vector<Tensor> p = with_gradients();
  clip_grad_value_(p, 3.5);
  expect_gradients(p, {{3, -3.5f}, {3.5f}});
}

TEST(Clipping, WorksInACapturedStep) {
  Tensor p = cpu_parameter({0});
  SGD optimizer({p}, {.lr = 1});
  Jit jit([&](const std::vector<Tensor>& in) {
    optimizer.zero_grad();
    (p * in[0]).sum().backward();
    const Tensor norm = clip_grad_norm_({p}, 2);
    optimizer.step({norm});
    return std::vector<Tensor>{norm};
  });
  double sum = 0;
  for (const float g : {1.0f, 8.0f, -4.0f, 0.5f, 2.0f}) {
    const double norm = jit({Tensor::from({g}, {1}, kCpu)}).at(0).item();
    EXPECT_NEAR(norm, std::abs(g), 1e-5);
    sum -= std::max(-2.0, std::min(2.0, double(g)));
    EXPECT_NEAR(p.item(), sum, 1e-4);
  }
}

}  // namespace
}  // namespace tuff::optim

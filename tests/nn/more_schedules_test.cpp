// Schedules by their formulas (tests/python/torch_optim_test.py has PyTorch's values), and what
// several of them make together.
#include <gtest/gtest.h>

#include <tuff/optim.h>

#include <cmath>
#include <memory>

namespace tuff::optim::schedules_tests {
namespace {

Tensor parameter() { return Tensor::from({0}, {1}, {.device = "CPU"}).set_requires_grad(); }

template <class Schedule, class... Args>
void expect_rates(const std::vector<double>& wanted, Args... args) {
  SGD optimizer({parameter()}, {.lr = 0.8});
  Schedule schedule(optimizer, args...);
  for (size_t i = 0; i < wanted.size(); i++) {
    EXPECT_NEAR(optimizer.lr_value(), wanted[i], 1e-12) << "step " << i;
    EXPECT_NEAR(optimizer.lr().item(), wanted[i], 1e-7) << "step " << i;
    schedule.step();
  }
  const nn::StateDict state = schedule.state_dict();
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].name, "last_epoch");
  SGD other({parameter()}, {.lr = 0.8});
  Schedule resumed(other, args...);
  resumed.load_state_dict(state);
  EXPECT_EQ(other.lr_value(), optimizer.lr_value());
  EXPECT_THROW(resumed.load_state_dict({}), InvalidArgument);
}

TEST(MoreSchedules, FollowTheirFormulas) {
  expect_rates<MultiStepLR>({0.8, 0.8, 0.4, 0.2, 0.2}, std::vector<int64_t>{2, 3}, 0.5);
  expect_rates<ExponentialLR>({0.8, 0.4, 0.2}, 0.5);
  expect_rates<PolynomialLR>({0.8, 0.45, 0.2, 0.05, 0, 0}, 4, 2.0);
  expect_rates<ConstantLR>({0.2, 0.2, 0.8, 0.8}, 0.25, 2);
  const double half = std::sqrt(0.5);
  expect_rates<CosineAnnealingWarmRestarts>(
      {0.8, 0.4, 0.8, 0.4 + 0.4 * half, 0.4, 0.4 - 0.4 * half, 0.8}, 2, 2);
  expect_rates<CosineAnnealingWarmRestarts>({0.8, 0.4, 0.8, 0.4}, 2);
}

TEST(MoreSchedules, GoRoundInCycles) {
  using std::string_view;
  expect_rates<CyclicLR>({0.1, 0.5, 0.9, 0.7, 0.5, 0.3, 0.1, 0.5}, 0.1, 0.9, 2, 4);
  expect_rates<CyclicLR>({0.1, 0.9, 0.1, 0.5, 0.1, 0.3}, 0.1, 0.9, 1, 1,
                         string_view("triangular2"));
  expect_rates<CyclicLR>({0.1, 0.5, 0.1, 0.2}, 0.1, 0.9, 1, 1, string_view("exp_range"), 0.5);
  SGD optimizer({parameter()}, {.lr = 1});
  EXPECT_THROW(CyclicLR(optimizer, 0, 1, 1, 1, "square"), InvalidArgument);
  EXPECT_THROW(CyclicLR(optimizer, 0, 1, 0), InvalidArgument);
}

TEST(MoreSchedules, FollowOneAnother) {
  SGD optimizer({parameter()}, {.lr = 0.8}), other({parameter()}, {.lr = 0.8});
  const auto warm = std::make_shared<ConstantLR>(optimizer, 0.25, 10);
  const auto decay = std::make_shared<ExponentialLR>(optimizer, 0.5);
  SequentialLR schedule(optimizer, {warm, decay}, {2});
  for (const double wanted : {0.2, 0.2, 0.8, 0.4, 0.2}) {
    EXPECT_NEAR(optimizer.lr_value(), wanted, 1e-12);
    schedule.step();
  }
  using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;
  EXPECT_THROW(SequentialLR(optimizer, {warm, decay}, {}), InvalidArgument);
  EXPECT_THROW(SequentialLR(optimizer, {warm, decay, warm}, {3, 2}), InvalidArgument);
  EXPECT_THROW(SequentialLR(other, {warm}, {}), InvalidArgument);
  EXPECT_THROW(ChainedScheduler(Schedulers{}), InvalidArgument);
  const auto foreign = std::make_shared<ExponentialLR>(other, 0.5);
  EXPECT_THROW(ChainedScheduler(Schedulers{warm, foreign}), InvalidArgument);
}

TEST(MoreSchedules, MultiplyInAChain) {
  SGD optimizer({parameter()}, {.lr = 0.8});
  const auto constant = std::make_shared<ConstantLR>(optimizer, 0.5, 2);
  const auto decay = std::make_shared<ExponentialLR>(optimizer, 0.5);
  ChainedScheduler schedule({constant, decay});
  for (const double wanted : {0.4, 0.2, 0.2, 0.1}) {
    EXPECT_NEAR(optimizer.lr_value(), wanted, 1e-12);
    schedule.step();
  }
}

TEST(MoreSchedules, LowerTheRateOnAPlateau) {
  SGD optimizer({parameter()}, {.lr = 0.8});
  ReduceLROnPlateau schedule(optimizer, {.factor = 0.5, .patience = 1, .cooldown = 1});
  const std::vector<std::pair<double, double>> steps{
      {3, 0.8}, {3, 0.8}, {3, 0.4}, {3, 0.4}, {3, 0.4}, {3, 0.2}, {1, 0.2}, {1, 0.2}, {1, 0.1}};
  for (size_t i = 0; i < steps.size(); i++) {
    schedule.step(steps[i].first);
    EXPECT_EQ(optimizer.lr_value(), steps[i].second) << "step " << i;
  }
  ReduceLROnPlateau resumed(optimizer, {.factor = 0.5, .patience = 1, .cooldown = 1});
  resumed.load_state_dict(schedule.state_dict());
  EXPECT_EQ(resumed.state_dict()[0].tensor.item(), 1);
  EXPECT_EQ(resumed.state_dict()[2].tensor.item(), 1);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.mode = "least"}), InvalidArgument);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.factor = 1}), InvalidArgument);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.threshold_mode = "any"}), InvalidArgument);
}

}  // namespace
}  // namespace tuff::optim::schedules_tests

// Values that are asked for before gradients are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuff/autograd.h>

#include "devices.h"
#include "drawn_values.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff::test {
namespace {

using testing::HasSubstr;

class History : public DrawnValues {};
INSTANTIATE_TEST_SUITE_P(, History, testing::ValuesIn(devices()),
                         named_by_device<testing::TestParamInfo<std::string>>);

void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_TRUE(got.defined());
  EXPECT_LT((got - want).abs().amax().item(), 1e-5);
}

// A loss, as programs print it; what a layer gives; and both of a graph that was made before.
TEST_P(History, GradientsFlowThroughValuesThatWereAskedFor) {
  const Tensor x = drawn({4, 3}, 1), w = trained({3, 5}, 2), v = trained({5}, 3);
  const auto hidden = [&] { return x.matmul(w).tanh(); };
  const auto loss_of = [&](const Tensor& h) { return (h * v).square().sum(); };
  const Tensors want = loss_of(hidden()).gradient({w, v});
  for (const int asked : {0, 1, 2, 3}) {
    const Tensor h = hidden();
    if (asked == 1) h.to_vector<float>();
    const Tensor loss = loss_of(h);
    if (asked == 2) h.to_vector<float>();
    if (asked >= 2) loss.item();
    if (asked == 3) h.to_vector<float>();
    const Tensors got = loss.gradient({w, v});
    for (size_t i = 0; i < got.size(); i++) expect_near(got[i], want[i]);
    EXPECT_NEAR(loss.item(), loss_of(hidden()).item(), 1e-4);
  }
}

TEST_P(History, BackwardAfterItemTrains) {
  Tensor w = trained({3, 3}, 1), same = trained({3, 3}, 1);
  const Tensor x = drawn({4, 3}, 2);
  const auto train = [&](Tensor& weight, bool asks) {
    const Tensor loss = x.matmul(weight).square().mean();
    const double printed = asks ? loss.item() : 0;
    loss.backward();
    const NoGradGuard writing;
    weight.assign(weight - weight.grad() * 0.1).realize();
    weight.set_grad({});
    return asks ? printed : loss.item();
  };
  for (int step = 0; step < 3; step++) EXPECT_NEAR(train(w, true), train(same, false), 1e-5);
  expect_near(w, same);
}

TEST_P(History, GradientsOfGradientsFlowToo) {
  const Tensor x = trained({3}, 1);
  const Tensor g = (x * x * x).sum().gradient({x})[0];
  g.to_vector<float>();
  expect_near(g.sum().gradient({x})[0], x * 6);
}

// A realization walks no further than to the value before.
TEST_P(History, AStepOfAChainOfValuesCostsWhatItComputes) {
  constexpr int kSteps = 50;
  const Tensor w = Tensor::full({3}, 0.9, {.device = GetParam()}).realize().set_requires_grad();
  Tensor h = drawn({3}, 2);
  const Tensor first = h * 1;
  for (int i = 0; i < kSteps; i++) {
    h = h * w;
    EXPECT_LE(ir::toposort(detail::uop(h)).size(), 4u) << i;
    h.realize();
  }
  const Tensor g = h.sum().gradient({w})[0];
  expect_near(g, first * (w.pow(kSteps - 1) * kSteps));
}

// The numbers of a dropout are drawn anew for its gradients, whatever has been drawn since.
TEST_P(History, RandomNumbersAreThoseOfTheValue) {
  const TensorOptions on{.device = GetParam()};
  Tensor w = trained({64}, 1);
  const auto gradient = [&](bool asks) {
    Tensor::manual_seed(7);
    const Tensor h = w * (Tensor::rand({64}, on) < 0.5);
    if (asks) h.to_vector<float>();
    const Tensor loss = (h * h * (Tensor::rand({64}, on) + 1)).sum();
    if (asks) loss.item();
    if (asks) Tensor::rand({3}, on).realize();
    return loss.gradient({w})[0].to_vector<float>();
  };
  const std::vector<float> want = gradient(false), got = gradient(true);
  EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(1e-5f), want));
  EXPECT_THAT(want, testing::Contains(0.0f));
}

// What it would be computed of again is another value by then.
TEST_P(History, OverwrittenWeightsAreAnError) {
  Tensor w = trained({3}, 1);
  const Tensor h = w * w;
  h.to_vector<float>();
  const Tensor before = h.sum() + w.sum();
  {
    const NoGradGuard writing;
    w.assign(w + 1).realize();
  }
  for (const Tensor& loss : {h.sum(), before}) {
    try {
      loss.gradient({w});
      ADD_FAILURE();
    } catch (const InvalidArgument& e) {
      EXPECT_THAT(e.what(), HasSubstr("optimizer.step()"));
    }
  }
  expect_near((h.detach() * w).sum().gradient({w})[0], h);
  const Tensor other = trained({3}, 2);
  EXPECT_THROW((h * other).sum().backward(), InvalidArgument);
}

TEST_P(History, NothingIsKeptWithoutGradients) {
  Tensor::manual_seed(1);
  const Tensor w = trained({3}, 1);
  Tensor y, running = Tensor::zeros({3}, {.device = GetParam()}).realize();
  {
    const NoGradGuard reading;
    y = w * 2;
    y.to_vector<float>();
  }
  EXPECT_FALSE(y.sum().gradient({w})[0].defined());
  Tensor h = w * 3;
  h.to_vector<float>();
  const float host[3] = {1, 2, 3};
  h.copy_from(host, sizeof host);
  EXPECT_FALSE(h.sum().gradient({w})[0].defined());
  running.assign(running * 0.9 + w * 0.1).realize();
  EXPECT_FALSE(running.sum().gradient({w})[0].defined());
}

}  // namespace
}  // namespace tuff::test

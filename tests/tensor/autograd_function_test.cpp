// Functions with gradients of their own, and activations that are computed again: values, what they
// cost, what they keep.
#include <gtest/gtest.h>

#include <cmath>

#include <tuff/autograd.h>
#include "base/check.h"
#include "devices.h"
#include "engine/device.h"
#include "engine/stats.h"
#include "ir/walk.h"
#include "sched/schedule.h"
#include "tensor/impl.h"
#include "temporaries.h"

namespace tuff::test {
namespace {

using autograd::Function;
using autograd::FunctionContext;
using Floats = std::vector<float>;

class AutogradFunction : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions here() const { return {.device = GetParam()}; }
  Tensor leaf(const Floats& v) const {
    return Tensor::from(v, {int64_t(v.size())}, here()).set_requires_grad();
  }
};
INSTANTIATE_TEST_SUITE_P(, AutogradFunction, testing::ValuesIn(devices()),
                         named_by_device<testing::TestParamInfo<std::string>>);

// x*x, whose gradient is said to be 10 g x.
const Function kTenfold{[](FunctionContext& c, const Tensors& x) {
                          c.save_for_backward({x[0]});
                          return Tensors{x[0] * x[0]};
                        },
                        [](FunctionContext& c, const Tensors& g) {
                          return Tensors{g[0] * c.saved_tensors()[0] * 10};
                        }};
// e^x by its result, the usual one.
const Function kExp{[](FunctionContext& c, const Tensors& x) {
                      c.save_for_backward({x[0].exp()});
                      return c.saved_tensors();
                    },
                    [](FunctionContext& c, const Tensors& g) {
                      return Tensors{g[0] * c.saved_tensors()[0]};
                    }};

int64_t kernels_of(const std::vector<Tensor>& tensors) {
  const auto before = engine::counters().kernels.load();
  Tensor::realize(tensors);
  return int64_t(engine::counters().kernels.load() - before);
}

TEST_P(AutogradFunction, TheGradientIsTheGivenOne) {
  Tensor x = leaf({1, -2, 3});
  const Tensor y = kTenfold({x * 2})[0] + 1;
  EXPECT_EQ(y.to_vector<float>(), (Floats{5, 17, 37}));
  (kTenfold({x * 2})[0] * Tensor::from({1, 10, 100}, {3}, here())).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{40, -800, 12000}));
}

TEST_P(AutogradFunction, ItCostsNoKernel) {
  const Tensor x = leaf({1, -2, 3});
  EXPECT_EQ(kernels_of({kTenfold({x * 2})[0] + 1}), 1);
  EXPECT_EQ(kernels_of({(kTenfold({x * 3})[0] + 1).gradient({x})[0]}), 1);
}

TEST_P(AutogradFunction, GradientsOfGradients) {
  const Tensor x = leaf({0.5, -1});
  const Tensor first = kExp({x})[0].gradient({x})[0], second = first.gradient({x})[0],
               third = second.gradient({x})[0];
  const Floats want = x.exp().to_vector<float>();
  EXPECT_EQ(third.to_vector<float>(), want);
  // By the rule, each time: 10 x g of what was 10 x.
  const Tensor z = leaf({3});
  const Tensor again = kTenfold({z})[0].gradient({z})[0].gradient({z})[0];
  EXPECT_EQ(again.item(), 10);
}

TEST_P(AutogradFunction, SavedResultsHaveTheFunctionsGradient) {
  // The gradient of floor(x) is said to be floor(x) itself.
  const Function stepped{[](FunctionContext& c, const Tensors& x) {
                           c.save_for_backward({x[0].floor()});
                           return c.saved_tensors();
                         },
                         [](FunctionContext& c, const Tensors& g) {
                           return Tensors{g[0] * c.saved_tensors()[0]};
                         }};
  const Tensor x = leaf({2.5, -1.5});
  const Tensor first = stepped({x})[0].gradient({x})[0];
  EXPECT_EQ(first.gradient({x})[0].to_vector<float>(), (Floats{2, -2}));
}

TEST_P(AutogradFunction, SeveralResultsAndArguments) {
  int calls = 0;
  const Function both{[](FunctionContext&, const Tensors& in) {
                        return Tensors{in[0] + in[1], in[0] * 3, in[2]};
                      },
                      [&calls](FunctionContext&, const Tensors& g) {
                        calls++;
                        EXPECT_FALSE(g[2].defined());  // of integers
                        return Tensors{g[0] * 100 + g[1], Tensor(), Tensor()};
                      }};
  const Tensor x = leaf({1, 2}), y = leaf({5, 6});
  const Tensor numbers = Tensor::from(std::vector<int32_t>{1, 2}, {2}, here());
  const Tensors out = both({x, y, numbers});
  const Tensors all = (out[0] + out[1] * 2).gradient({x, y});
  const Tensors one = out[1].gradient({x, y});
  EXPECT_EQ(all[0].to_vector<float>(), (Floats{102, 102}));
  EXPECT_FALSE(all[1].defined());
  EXPECT_EQ(one[0].to_vector<float>(), (Floats{1, 1}));
  EXPECT_EQ(out[2].to_vector<int32_t>(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(calls, 1);
}

TEST_P(AutogradFunction, FunctionsWithinFunctions) {
  // Forwards and backwards, each with stand-ins of equal shape.
  const Function outer{[](FunctionContext& c, const Tensors& x) {
                         c.save_for_backward({x[0], kTenfold({x[0]})[0]});
                         return Tensors{c.saved_tensors()[1] + 1};
                       },
                       [](FunctionContext& c, const Tensors& g) {
                         return Tensors{kTenfold({g[0]})[0] * c.saved_tensors()[0]};
                       }};
  const Tensor x = leaf({3}), w = leaf({2});
  const Tensor y = kTenfold({outer({x})[0] * w})[0];  // (x x + 1)^2 w^2
  // 10 (x x + 1) w, times w for the function inside: squared, times x.
  const Tensors g = y.gradient({x, w});
  EXPECT_EQ(y.item(), 400);
  EXPECT_EQ(g[0].item(), 400.0 * 400 * 3);
  EXPECT_EQ(g[1].item(), 2000);
}

TEST_P(AutogradFunction, WithoutGradientsBackwardIsNotCalled) {
  const Function f{[](FunctionContext&, const Tensors& x) { return Tensors{x[0] * 2}; },
                   [](FunctionContext&, const Tensors&) -> Tensors {
                     ADD_FAILURE();
                     return {};
                   }};
  const NoGradGuard off;
  EXPECT_EQ(f({leaf({3})})[0].item(), 6);
}

TEST_P(AutogradFunction, MayReadValuesForwards) {
  const Function halved{[](FunctionContext& c, const Tensors& x) {
                          const double largest = x[0].max().item();  // realizes
                          c.save_for_backward({x[0] / largest});
                          return c.saved_tensors();
                        },
                        [](FunctionContext& c, const Tensors& g) {
                          return Tensors{g[0] * c.saved_tensors()[0]};
                        }};
  const Tensor x = leaf({2, 4});
  EXPECT_EQ(halved({x})[0].gradient({x})[0].to_vector<float>(), (Floats{0.5, 1}));
}

TEST(AutogradFunctions, KeepNothingAndAreCached) {
  const auto step = [] {
    Tensor x = Tensor::from({1, 2, 3, 4}, {4}, {.device = "CPU"}).set_requires_grad();
    (kExp({kTenfold({x})[0]})[0]).sum().backward();
    return x.grad().realize().to_vector<float>();
  };
  step();
  const uint64_t nodes = ir::live_node_count();
  const auto misses = sched::schedule_cache_stats().misses;
  for (int i = 0; i < 3; i++) step();
  EXPECT_EQ(sched::schedule_cache_stats().misses, misses);
  EXPECT_EQ(ir::live_node_count(), nodes);
}

template <class E>
void expect_error(const std::string& text, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "no error: " << text;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(AutogradFunctions, WhatDoesNotFitIsNamed) {
  const Tensor x = Tensor::from({1, 2}, {2}, {.device = "CPU"});
  const auto with = [](auto backward) {
    return Function{[](FunctionContext&, const Tensors& in) { return Tensors{in[0] * 1.5}; },
                    backward};
  };
  using C = FunctionContext&;
  using T = const Tensors&;
  expect_error<InvalidArgument>("2 gradients for 1 arguments", [&] {
    with([](C, T g) { return Tensors{g[0], g[0]}; })({x});
  });
  expect_error<ShapeError>("a gradient (1, 2) for argument 0 of (2,)", [&] {
    with([](C, T g) { return Tensors{g[0].unsqueeze(0)}; })({x});
  });
  expect_error<InvalidArgument>("only floats have gradients", [&] {
    with([](C, T g) { return Tensors{g[0]}; })({x.cast(DType::I32)});
  });
  expect_error<InvalidArgument>("a tensor is read that stands for others", [&] {
    with([](C, T g) { return Tensors{g[0] * g[0].sum().item()}; })({x});
  });
}

// ---- checkpoints -------------------------------------------------------------------------------

struct Chain {
  static constexpr int64_t kRows = 256, kWidth = 8, kBlocks = 6, kLayers = 3;
  Tensor input;
  Tensors weights;

  explicit Chain(const std::string& device) {
    const TensorOptions here{.device = device};
    Tensor::manual_seed(3);
    input = Tensor::rand({kRows, kWidth}, here).realize();
    for (int64_t i = 0; i < kBlocks * kLayers; i++)
      weights.push_back(Tensor::uniform({kWidth, kWidth}, -0.6, 0.8, here).realize());
    for (Tensor& w : weights) w.set_requires_grad();
  }
  Tensor block(const Tensor& x, int64_t number, double p) const {
    Tensor y = x;
    for (int64_t i = 0; i < kLayers; i++)
      y = y.matmul(weights[size_t(number * kLayers + i)]).sigmoid().dropout(p);
    return y;
  }
  Tensors gradients(bool again, double p = 0) const {
    const TrainingMode on;
    Tensor::manual_seed(5);
    Tensor x = input;
    for (int64_t b = 0; b < kBlocks; b++) {
      const auto f = [&](const Tensor& y) { return block(y, b, p); };
      x = again ? checkpoint(f, x) : f(x);
    }
    const Tensor loss = x.square().mean();
    Tensors out = loss.gradient(weights);
    out.push_back(loss);
    return out;
  }
};

TEST_P(AutogradFunction, ACheckpointHasTheSameGradients) {
  const Chain chain(GetParam());
  const Tensors kept = chain.gradients(false), again = chain.gradients(true);
  Tensor::realize(kept);
  Tensor::realize(again);
  for (size_t i = 0; i < kept.size(); i++)
    EXPECT_EQ(kept[i].to_vector<float>(), again[i].to_vector<float>()) << i;
}

// Sums of products with what is masked may be other kernels; where nothing is added up all bits are
// the same.
TEST_P(AutogradFunction, ACheckpointDrawsTheSameNumbers) {
  const Chain chain(GetParam());
  const Tensors kept = chain.gradients(false, 0.4);
  Tensor::realize(kept);
  const Tensors again = chain.gradients(true, 0.4);
  Tensor::realize(again);
  for (size_t i = 0; i < kept.size(); i++) {
    const Floats a = kept[i].to_vector<float>(), b = again[i].to_vector<float>();
    float largest = 0;
    for (float v : a) largest = std::max(largest, std::abs(v));
    for (size_t k = 0; k < a.size(); k++) EXPECT_NEAR(a[k], b[k], 2e-6 * largest) << i << " " << k;
  }
  const Tensor x = Tensor::rand({1000}, here()).realize();
  const auto gradient = [&](bool is_again) {
    const TrainingMode on;
    Tensor::manual_seed(8);
    const auto f = [](const Tensor& y) { return y.exp().dropout(0.3).sin().dropout(0.2); };
    const Tensor y = is_again ? checkpoint(f, x) : f(x);
    const Tensor g = y.gradient({x})[0];
    Tensor::realize({y, g});
    return std::pair(g.to_vector<float>(), y.to_vector<float>());
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST_P(AutogradFunction, ACheckpointHoldsLess) {
  const Chain chain(GetParam());
  for (const double p : {0.0, 0.4}) {
    const uint64_t kept = temporary_bytes(chain.gradients(false, p)),
                   again = temporary_bytes(chain.gradients(true, p));
    EXPECT_LT(again * 10, kept * 7) << "p " << p;
    RecordProperty(p == 0 ? "kept" : "kept with dropout", int(kept));
    RecordProperty(p == 0 ? "computed again" : "computed again with dropout", int(again));
  }
}

TEST_P(AutogradFunction, ACheckpointCostsNothingWithoutGradients) {
  const Tensor x = leaf({1, 2, 3});
  const auto f = [](const Tensor& y) { return y.exp() + 1; };
  (x + 1).realize();  // and random states of tests before
  const int64_t plain = kernels_of({f(x * 2) * 3});
  EXPECT_EQ(kernels_of({checkpoint(f, x * 3) * 2}), plain);
}

TEST_P(AutogradFunction, CheckpointsInTrainingSteps) {
  // Weights are overwritten in the schedule that computes activations of them again.
  const auto trained = [&](bool again) {
    Tensor w = Tensor::from({0.5, -1, 2, 0.25}, {2, 2}, here()).realize();
    const Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2}, here()).realize();
    w.set_requires_grad();
    for (int step = 0; step < 3; step++) {
      const auto f = [&](const Tensor& y) { return y.matmul(w).sigmoid().matmul(w).sigmoid(); };
      const Tensor y = again ? checkpoint(f, x) : f(x);
      const Tensor z = again ? checkpoint(f, y) : f(y);
      w.set_grad({});
      z.square().sum().backward();
      const NoGradGuard off;
      w.assign(w - w.grad() * 0.1).realize();
    }
    return w.to_vector<float>();
  };
  EXPECT_EQ(trained(true), trained(false));
}

TEST_P(AutogradFunction, CheckpointsInsideOfOthersAndOfFunctions) {
  const auto inner = [](const Tensor& y) { return kTenfold({y.exp()})[0]; };
  const auto outer = [&](bool again) {
    return [=](const Tensor& y) {
      return (again ? checkpoint(inner, y * 0.5) : inner(y * 0.5)) + y;
    };
  };
  const Tensor x = leaf({0.25, -0.5, 1});
  const Tensor plain = outer(false)(x), again = checkpoint(outer(true), x);
  const Tensor first = plain.gradient({x})[0], first_again = again.gradient({x})[0];
  const Tensor second = first.gradient({x})[0], second_again = first_again.gradient({x})[0];
  EXPECT_EQ(first.to_vector<float>(), first_again.to_vector<float>());
  EXPECT_EQ(second.to_vector<float>(), second_again.to_vector<float>());
}

TEST_P(AutogradFunction, CheckpointsOfSeveralResults) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 5});
  const auto f = [](const Tensors& in) {
    return Tensors{in[0] * in[1], in[0].exp() + in[1], in[0].cast(DType::I32)};
  };
  const auto gradients = [&](const Tensors& out) {
    EXPECT_EQ(out[2].to_vector<int32_t>(), (std::vector<int32_t>{1, 2}));
    const Tensors g = (out[0] * out[1]).sum().gradient({x, y});
    return std::pair(g[0].to_vector<float>(), g[1].to_vector<float>());
  };
  EXPECT_EQ(gradients(checkpoint(f, {x, y})), gradients(f({x, y})));
}

}  // namespace
}  // namespace tuff::test

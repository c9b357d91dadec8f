// State: assign, random numbers, Jit, zero-sized tensors, long reductions, the printed form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>
#include "base/check.h"
#include "base/error_of.h"
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;

class OnDevice : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on() const { return {.device = GetParam()}; }
  Tensor from(const Floats& v, const Sizes& s) const { return Tensor::from(v, s, on()); }
};

class Assign : public OnDevice {};

TEST_P(Assign, OldReadersSeeOldValuesAndLaterOnesTheNew) {
  Tensor x = from({1, 2, 3}, {3});
  const Tensor before = x * 10;
  x.assign(x + 1);
  const Tensor after = x * 10;
  EXPECT_EQ(after.to_vector<float>(), (Floats{20, 30, 40}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{10, 20, 30}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{2, 3, 4}));
}

TEST_P(Assign, Chains) {
  Tensor x = from({1, 2}, {2});
  for (int i = 0; i < 5; i++) x.assign(x * 2 + 1);
  EXPECT_EQ(x.to_vector<float>(), (Floats{63, 95}));
  for (int i = 0; i < 3; i++) {
    x.assign(x - 1);
    x.realize();
  }
  EXPECT_EQ(x.to_vector<float>(), (Floats{60, 92}));
}

TEST_P(Assign, Swaps) {
  Tensor x = from({1, 2}, {2}), y = from({3, 4}, {2});
  const Tensor old_x = x.detach();
  x.assign(y);
  y.assign(old_x);
  Tensor::realize({x, y});
  EXPECT_EQ(x.to_vector<float>(), (Floats{3, 4}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 2}));
}

TEST_P(Assign, ReadsAcrossElementsAreNotOvertakenByTheWrites) {
  Floats v(1000);
  std::iota(v.begin(), v.end(), 0.0f);
  Tensor x = from(v, {1000});
  x.assign(x.flip({0}) + x);
  EXPECT_EQ(x.to_vector<float>(), Floats(1000, 999));
  Tensor m = from(v, {10, 100});
  m.assign(m - m.sum({1}, true));
  const Floats got = m.to_vector<float>();
  EXPECT_EQ(got[0], -4950);
  EXPECT_EQ(got[999], 999 - 94950.0f);
}

// A row kernel may keep exponentials where it stores its row: not where it still reads.
TEST_P(Assign, RowKernelsStoreWhatTheyStillRead) {
  Floats v(64 * 256);
  for (size_t i = 0; i < v.size(); i++) v[i] = float(i * 37 % 101) / 25 - 2;
  using Rows = std::function<Tensor(const Tensor&)>;
  for (const Rows& rows : {Rows([](const Tensor& t) { return t + t.softmax(1); }),
                           Rows([](const Tensor& t) { return t.softmax(1) * t.exp() - t; }),
                           Rows([](const Tensor& t) { return t.softmax(1); })}) {
    const Floats expected = rows(from(v, {64, 256})).to_vector<float>();
    Tensor x = from(v, {64, 256});
    x.assign(rows(x));
    const Floats got = x.to_vector<float>();
    for (size_t i = 0; i < v.size(); i++) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
  }
}

// Equal values are one node of the graph, and one memory until one of them is written.
TEST_P(Assign, EqualTensorsAreNotWrittenTogether) {
  Tensor a = Tensor::zeros({4}, on()), b = Tensor::zeros({4}, on());
  a.assign(a + 1);
  EXPECT_EQ(a.to_vector<float>(), Floats(4, 1));
  EXPECT_EQ(b.to_vector<float>(), Floats(4, 0));

  Tensor c = Tensor::zeros({4}, on()), d = Tensor::zeros({4}, on());
  Tensor::realize({c, d});
  c.assign(c + 1);
  c.realize();
  d.assign(d + 5);
  EXPECT_EQ(c.to_vector<float>(), Floats(4, 1));
  EXPECT_EQ(d.to_vector<float>(), Floats(4, 5));

  const Tensor x = from({1, 2}, {2});
  Tensor y = x * 2, z = x * 2;
  y.realize();
  const float fresh[2] = {7, 8};
  y.copy_from(fresh, sizeof fresh);
  EXPECT_EQ(y.to_vector<float>(), (Floats{7, 8}));
  EXPECT_EQ(z.to_vector<float>(), (Floats{2, 4}));
}

TEST_P(Assign, NumbersComputedOnOneDeviceTakeNoPlaceInGraphsOfAnother) {
  const Tensor x = from({1, 2, 3, 4}, {2, 2});
  Tensor eye = Tensor::eye(2, {DType::F32, "CPU"}), here = Tensor::eye(2, on());
  const Tensor product = here.matmul(x).contiguous() + here;
  Tensor::realize({eye, here});
  EXPECT_EQ(eye.to_vector<float>(), (Floats{1, 0, 0, 1}));
  EXPECT_EQ(here.to_vector<float>(), (Floats{1, 0, 0, 1}));
  eye.assign(eye + 1);
  EXPECT_EQ(product.to_vector<float>(), (Floats{2, 2, 3, 5}));
  EXPECT_EQ(eye.to_vector<float>(), (Floats{2, 1, 1, 2}));
}

TEST_P(Assign, ReshapedTensorsKeepTheOldContents) {
  Tensor x = from({1, 2, 3, 4}, {4});
  const Tensor before = x.reshape({2, 2});
  for (int i = 0; i < 3; i++) {
    x.assign(x + 1);
    x.realize();
  }
  EXPECT_EQ(x.to_vector<float>(), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2, 3, 4}));
}

TEST_P(Assign, CopyFromLeavesPendingReadersTheirValues) {
  Tensor x = from({1, 2}, {2});
  const Tensor pending = x + 0.5;
  const float fresh[2] = {7, 8};
  x.copy_from(fresh, sizeof fresh);
  EXPECT_EQ(pending.to_vector<float>(), (Floats{1.5, 2.5}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{7, 8}));
}

class Random : public OnDevice {};

// As index_put_() does: a graph that was built of it would lose its gradient.
TEST_P(Assign, RefusesATensorThatHasAGradient) {
  Tensor p = Tensor::ones({3}, on()).realize().set_requires_grad();
  const Tensor y = p * 2;
  EXPECT_THROW(p.assign(p + 1), InvalidArgument);
  y.sum().backward();
  EXPECT_EQ(p.grad().to_vector<float>(), (Floats{2, 2, 2}));
  {
    const NoGradGuard off;
    p.assign(p + 1);
  }
  EXPECT_EQ(p.to_vector<float>(), (Floats{2, 2, 2}));
  EXPECT_TRUE(p.requires_grad());
}

TEST_P(Random, SeedsReproduceAndDrawsDiffer) {
  Tensor::manual_seed(42);
  const Floats a = Tensor::rand({100}, on()).to_vector<float>(),
               b = Tensor::rand({100}, on()).to_vector<float>();
  Tensor::manual_seed(42);
  EXPECT_EQ(Tensor::rand({100}, on()).to_vector<float>(), a);
  EXPECT_EQ(Tensor::rand({100}, on()).to_vector<float>(), b);
  EXPECT_NE(a, b);
  Tensor::manual_seed(43);
  EXPECT_NE(Tensor::rand({100}, on()).to_vector<float>(), a);
}

TEST_P(Random, GoesOnFromAKeptState) {
  Tensor::manual_seed(42);
  const Floats a = Tensor::rand({100}, on()).to_vector<float>();
  const Tensor pending = Tensor::rand({7}, on());  // drawn, not computed yet
  const Tensor state = Tensor::get_rng_state(GetParam());
  const Floats b = Tensor::rand({100}, on()).to_vector<float>();
  EXPECT_NE(a, b);
  Tensor::manual_seed(1);
  const Floats elsewhere = Tensor::rand({5}, on()).to_vector<float>();
  Tensor::manual_seed(1);
  const Tensor other = Tensor::rand({5}, on());
  Tensor::set_rng_state(state, GetParam());
  EXPECT_EQ(Tensor::rand({100}, on()).to_vector<float>(), b);
  EXPECT_EQ(other.to_vector<float>(), elsewhere);  // drawn before
  EXPECT_EQ(Tensor::get_rng_state(GetParam()).to_vector<uint32_t>()[2], 207u);
  EXPECT_EQ(state.to_vector<uint32_t>()[2], 107u);
}

// Without a name it is the generator of the device that the state is on.
TEST_P(Random, AStateKnowsItsDevice) {
  Tensor::manual_seed(9);
  const Tensor state = Tensor::get_rng_state(GetParam());
  const Floats first = Tensor::rand({20}, on()).to_vector<float>();
  Tensor::set_rng_state(state);
  EXPECT_EQ(Tensor::rand({20}, on()).to_vector<float>(), first);
}

TEST_P(Random, CapturedFunctionsGoOnFromAKeptState) {
  Jit draw(
      [&](const std::vector<Tensor>&) { return std::vector<Tensor>{Tensor::rand({10}, on())}; });
  Tensor::manual_seed(3);
  for (int i = 0; i < 3; i++) draw({});
  const Tensor state = Tensor::get_rng_state(GetParam());
  const Floats next = draw({})[0].to_vector<float>();
  EXPECT_NE(draw({})[0].to_vector<float>(), next);
  Tensor::set_rng_state(state, GetParam());
  EXPECT_EQ(draw({})[0].to_vector<float>(), next);
}

TEST_P(Random, HowDrawsAreBatchedDoesNotMatter) {
  Tensor::manual_seed(5);
  const Floats whole = Tensor::rand({60}, on()).to_vector<float>();
  Tensor::manual_seed(5);
  const Tensor x = Tensor::rand({20}, on()), y = Tensor::rand({40}, on());
  Tensor::realize({x, y});
  Floats parts = x.to_vector<float>();
  const Floats rest = y.to_vector<float>();
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
}

TEST_P(Random, SameBitsOnEveryDevice) {
  Tensor::manual_seed(7);
  const Floats here = Tensor::rand({1000}, on()).to_vector<float>();
  const std::vector<int32_t> dice =
      Tensor::randint(-5, 100, {500}, {DType::I32, GetParam()}).to_vector<int32_t>();
  Tensor::manual_seed(7);
  EXPECT_EQ(Tensor::rand({1000}, {.device = "CPU"}).to_vector<float>(), here);
  EXPECT_EQ(Tensor::randint(-5, 100, {500}, {DType::I32, "CPU"}).to_vector<int32_t>(), dice);
  // Normal numbers go through log2, sin and sqrt: computed the same way on every device.
  Tensor::manual_seed(5);
  const std::vector<float> normal = Tensor::randn({20000}, on()).to_vector<float>();
  Tensor::manual_seed(5);
  EXPECT_EQ(Tensor::randn({20000}, {DType::F32, "CPU"}).to_vector<float>(), normal);
}

struct Moments {
  double mean = 0, variance = 0, low = 1e9, high = -1e9;
};
Moments moments_of(const Floats& v) {
  Moments m;
  for (float x : v) {
    m.mean += x / double(v.size());
    m.low = std::min(m.low, double(x));
    m.high = std::max(m.high, double(x));
  }
  for (float x : v) m.variance += (x - m.mean) * (x - m.mean) / double(v.size());
  return m;
}

// Allowed: four standard errors at n = 40,000.
TEST_P(Random, Moments) {
  Tensor::manual_seed(11);
  const Moments u = moments_of(Tensor::rand({40000}, on()).to_vector<float>());
  EXPECT_NEAR(u.mean, 0.5, 4 * 0.2887 / 200);
  EXPECT_NEAR(u.variance, 1.0 / 12, 4 * 0.0745 / 200);
  EXPECT_GE(u.low, 0);
  EXPECT_LT(u.high, 1);
  const Moments n = moments_of(Tensor::randn({40000}, on()).to_vector<float>());
  EXPECT_NEAR(n.mean, 0, 4.0 / 200);
  EXPECT_NEAR(n.variance, 1, 4 * 1.4142 / 200);
  const Moments r = moments_of(Tensor::uniform({40000}, -3, 5, on()).to_vector<float>());
  EXPECT_NEAR(r.mean, 1, 4 * 2.309 / 200);
  EXPECT_GE(r.low, -3);
  EXPECT_LE(r.high, 5);
}

TEST_P(Random, AJitDrawsNewNumbersAtEachReplay) {
  Tensor::manual_seed(3);
  Jit draw([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{Tensor::rand({16}, on()) + in[0]};
  });
  const Tensor zero = from({0}, {1});
  std::vector<Floats> seen;
  for (int i = 0; i < 5; i++) seen.push_back(draw({zero})[0].to_vector<float>());
  EXPECT_TRUE(draw.captured());
  Tensor::manual_seed(3);
  for (size_t i = 0; i < seen.size(); i++)
    EXPECT_EQ(Tensor::rand({16}, on()).to_vector<float>(), seen[i]) << i;
}

// A small network with everything that changes from step to step: dropout, learning rate, step
// count.
struct Training {
  nn::Linear first, second;
  optim::AdamW optimizer;

  explicit Training(const TensorOptions& o)
      : first(6, 16, true, o), second(16, 3, true, o), optimizer(all(), {.lr = 1e-2}) {}
  std::vector<Tensor> all() const { return {first.weight, first.bias, second.weight, second.bias}; }
  std::vector<Tensor> step(const std::vector<Tensor>& in) {
    TrainingMode on;
    const Tensor loss = second(first(in[0]).relu().dropout(0.2)).cross_entropy(in[1]);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step({loss});
    return {loss};
  }
  Floats parameters() const {
    Floats out;
    for (const Tensor& p : all()) {
      const Floats v = p.to_vector<float>();
      out.insert(out.end(), v.begin(), v.end());
    }
    return out;
  }
};

struct Batches {
  std::vector<std::vector<Tensor>> of;
  explicit Batches(const std::string& device) {
    for (int b = 0; b < 3; b++) {
      Floats x(8 * 6);
      std::vector<int32_t> y(8);
      for (size_t i = 0; i < x.size(); i++) x[i] = float((i * 37 + size_t(b) * 11) % 19) / 9 - 1;
      for (size_t i = 0; i < y.size(); i++) y[i] = int32_t((i + size_t(b)) % 3);
      of.push_back(
          {Tensor::from(x, {8, 6}, {.device = device}), Tensor::from(y, {8}, {.device = device})});
    }
  }
};

Floats train(const std::string& device, bool jit, Floats& losses) {
  Tensor::manual_seed(123);
  Training t({.device = device});
  const Batches batches(device);
  Jit step([&](const std::vector<Tensor>& in) { return t.step(in); });
  for (size_t i = 0; i < 50; i++) {
    t.optimizer.set_lr(1e-2 * (1 - double(i) / 60));
    const std::vector<Tensor>& in = batches.of[i % 3];
    losses.push_back(float((jit ? step(in) : t.step(in)).at(0).item()));
  }
  EXPECT_EQ(step.captured(), jit);
  return t.parameters();
}

class Jits : public OnDevice {};

TEST_P(Jits, FiftyStepsGiveTheBitsOfThePlainLoop) {
  Floats plain_losses, jit_losses;
  const Floats plain = train(GetParam(), false, plain_losses),
               jit = train(GetParam(), true, jit_losses);
  EXPECT_EQ(plain_losses, jit_losses);
  EXPECT_EQ(plain, jit);
  EXPECT_LT(plain_losses.back(), 0.8 * plain_losses.front());
}

TEST_P(Jits, InputsMayBeOtherBuffersAtEveryCall) {
  Jit twice([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2 + in[1]}; });
  for (int i = 0; i < 6; i++) {
    const Tensor a = from({float(i), 1}, {2}), b = from({100, float(-i)}, {2});
    EXPECT_EQ(twice({a, b})[0].to_vector<float>(),
              (Floats{2.0f * float(i) + 100, 2.0f - float(i)}));
  }
  EXPECT_TRUE(twice.captured());
  EXPECT_EQ(twice.stats().submits_per_replay, 1u);
}

TEST_P(Jits, AResultThatIsStateIsShownAsItIsAfterEachReplay) {
  Tensor w = from({1, 2}, {2});
  Jit step([&](const std::vector<Tensor>& in) {
    w.assign(w + in[0]);
    return std::vector<Tensor>{w.reshape({2, 1})};
  });
  const Tensor one = from({1, 1}, {2});
  Floats expected{1, 2};
  for (int i = 0; i < 6; i++) {
    if (i == 4) {  // outside of the captured step
      w.assign(w * 10);
      w.realize();
      for (float& v : expected) v *= 10;
    }
    for (float& v : expected) v += 1;
    EXPECT_EQ(step({one})[0].to_vector<float>(), expected) << i;
    EXPECT_EQ(w.to_vector<float>(), expected) << i;
  }
}

TEST_P(Jits, AChangedArgumentIsNamed) {
  Jit f([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1].sum()}; });
  const Tensor a = from({1, 2}, {2}), b = from({1}, {1});
  for (int i = 0; i < 3; i++) f({a, b});
  EXPECT_NE(error_of<InvalidArgument>([&] {
              f({a, from({1, 2}, {2})});
            }).find("argument 1 was float32 (1,)"),
            std::string::npos);
  const Tensor integer = Tensor::from(std::vector<int32_t>{1, 2}, {2}, on());
  EXPECT_NE(error_of<InvalidArgument>([&] { f({integer, b}); }).find("argument 0 was float32"),
            std::string::npos);
  EXPECT_NE(error_of<InvalidArgument>([&] {
              f({Tensor::from({1, 2}, {2}, {.device = "NULL"}), b});
            }).find("is float32 (2,) on NULL"),
            std::string::npos);
  EXPECT_NE(
      error_of<InvalidArgument>([&] { f({a}); }).find("captured with 2 arguments, called with 1"),
      std::string::npos);
  EXPECT_NE(error_of<InvalidArgument>([&] { f({a + 1, b}); }).find("argument 0 is not realized"),
            std::string::npos);
  EXPECT_EQ(f({a, b})[0].to_vector<float>(), (Floats{2, 3}));
}

class Edge : public OnDevice {};

TEST_P(Edge, ZeroSizedTensors) {
  const Tensor none = from({}, {0, 3});
  EXPECT_EQ((none + 1).to_vector<float>(), Floats{});
  EXPECT_EQ(none.sum().item(), 0);
  EXPECT_EQ(none.sum({0}).to_vector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(none.prod({0}).to_vector<float>(), (Floats{1, 1, 1}));
  EXPECT_EQ(Tensor::cat({none, from({1, 2, 3}, {1, 3})}).to_vector<float>(), (Floats{1, 2, 3}));
  EXPECT_EQ(from({}, {2, 0}).matmul(none).to_vector<float>(), Floats(6, 0));
  EXPECT_EQ(none.T().sizes(), (Sizes{3, 0}));
}

TEST_P(Edge, AHundredThousandElementsInOneRow) {
  const int64_t n = 100000;
  const Tensor index = Tensor::arange(0, n, 1, {DType::I32, GetParam()});
  const Tensor row = (index & 7).cast(DType::F32).contiguous().realize();
  double want = 0;
  for (int64_t i = 0; i < n; i++) want += double(i & 7);
  EXPECT_EQ(row.sum().item(), want);
  EXPECT_EQ(row.reshape({1, n}).expand({3, n}).sum({1}).to_vector<float>(), Floats(3, float(want)));
  EXPECT_EQ(row.reshape({1, n}).max({1}).item(), 7);
  EXPECT_EQ(index.sum().to_vector<int64_t>(), std::vector<int64_t>{n * (n - 1) / 2});
}

class Printing : public OnDevice {};

TEST_P(Printing, LooksLikeNumPy) {
  const std::string end = ", device=" + GetParam() + ")";
  EXPECT_EQ(from({1, 2.5, -3, 4}, {2, 2}).str(),
            "tensor([[ 1., 2.5],\n        [-3.,  4.]], shape=(2, 2), dtype=float32" + end);
  EXPECT_EQ(Tensor::arange(0, 3, 1, {DType::I32, GetParam()}).str(),
            "tensor([0, 1, 2], shape=(3,), dtype=int32" + end);
  EXPECT_EQ(Tensor::full({}, true, {DType::Bool, GetParam()}).str(),
            "tensor(True, shape=(), dtype=bool" + end);
  EXPECT_EQ(from({}, {0}).str(), "tensor([], shape=(0,), dtype=float32" + end);
  EXPECT_EQ(from({NAN, -INFINITY}, {2}).str(),
            "tensor([ nan, -inf], shape=(2,), dtype=float32" + end);
  EXPECT_EQ(Tensor::arange(0, 2000, 1, {DType::I32, GetParam()}).str(),
            "tensor([   0,    1,    2, ..., 1997, 1998, 1999], shape=(2000,), dtype=int32" + end);
  EXPECT_EQ(Tensor().str(), "Tensor(undefined)");
}

std::string suite_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char ch) { return !isalnum(static_cast<unsigned char>(ch)); },
      '_');
  return name;
}
#define TUFF_ON_DEVICES(suite) \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, testing::ValuesIn(devices()), suite_name)
TUFF_ON_DEVICES(Assign);
TUFF_ON_DEVICES(Random);
TUFF_ON_DEVICES(Jits);
TUFF_ON_DEVICES(Edge);
TUFF_ON_DEVICES(Printing);

}  // namespace
}  // namespace tuff::test

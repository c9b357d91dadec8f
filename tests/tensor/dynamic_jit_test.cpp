// A Jit with axes that vary: one captured graph gives what eager execution gives, at every extent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>
#include "engine/device.h"
#include "tensor/devices.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;

// Kernels of symbolic extent add up in another order: what sums of a few hundred terms of size 1
// may differ by.
constexpr double kTolerance = 1e-5;

class DynamicJit : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on() const { return {.device = GetParam()}; }
  Tensor floats(const Sizes& sizes, uint32_t seed) const {
    std::mt19937 random(seed);
    Floats v(size_t(int64_t(detail::product(sizes))));
    for (float& x : v) x = float(random() % 2001) / 1000 - 1;
    return Tensor::from(v, sizes, on());
  }
  Tensor integers(const Sizes& sizes, int32_t below, uint32_t seed) const {
    std::mt19937 random(seed);
    std::vector<int32_t> v(size_t(int64_t(detail::product(sizes))));
    for (int32_t& x : v) x = int32_t(random() % uint32_t(below));
    return Tensor::from(v, sizes, on());
  }
  static Floats values(const Tensor& t) { return t.cast(DType::F32).to_vector<float>(); }

  static void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what) {
    ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
    const Floats a = values(got), b = values(wanted);
    for (size_t i = 0; i < a.size(); i++) {
      const double allowed = kTolerance * std::max(1.0, std::abs(double(b[i])));
      ASSERT_NEAR(a[i], b[i], allowed) << what << ", element " << i;
    }
  }

  // Captures at the middle of the lengths, then goes down and up through all of them.
  void check(const Jit::Function& f, const std::function<Tensors(int64_t)>& arguments,
             const JitOptions& options, const std::vector<int64_t>& lengths) const {
    Jit jit(f, options);
    std::vector<int64_t> order{lengths[lengths.size() / 2], lengths[lengths.size() / 2]};
    order.insert(order.end(), lengths.rbegin(), lengths.rend());
    order.insert(order.end(), lengths.begin(), lengths.end());
    for (const int64_t n : order) {
      const Tensors in = arguments(n);
      const Tensors& got = jit(in);
      const Tensors wanted = f(in);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); i++)
        expect_close(got[i], wanted[i], "result " + std::to_string(i) + " at " + std::to_string(n));
      if (HasFailure()) return;
    }
    EXPECT_EQ(jit.stats().replays, order.size() - 2);
  }
};

const std::vector<int64_t> kLengths{1, 2, 3, 7, 8};

// Where a product may have one row, that is another kernel of the same graph on a CPU.
// Bounds that come from a model may leave one value: an axis of it is as any other.
TEST_P(DynamicJit, AnAxisOfOneValue) {
  for (const int64_t n : {1, 3}) {
    Jit jit([](const Tensors& in) { return Tensors{in[0].unsqueeze(0).expand({4, in[0].size(0)}) + 1}; },
            {.dynamic = {{.argument = 0, .axis = 0, .name = "N", .min = n, .max = n}}});
    for (uint32_t call = 0; call < 4; call++) {
      const Tensor x = floats({n}, call);
      expect_close(jit({x})[0], x.unsqueeze(0).expand({4, n}) + 1, "of one value");
    }
    EXPECT_GT(jit.stats().replays, 0u);
    EXPECT_THROW(jit({floats({n + 1}, 1)}), InvalidArgument);
  }
}

TEST_P(DynamicJit, ProductsOfOneRowAndOfMore) {
  const Tensor w = floats({128, 64}, 1), b = floats({128}, 2), kernels = floats({64, 24, 3}, 3);
  const auto f = [&](const Tensors& in) {
    const Size t = in[0].size(0);
    const Tensor rows = in[0].reshape({t, 144}).narrow(1, 0, 64);
    return Tensors{
        rows.linear(w, b).relu(),
        rows.linear(w, b).sum({0}),
        in[0].conv1d(kernels, {}, 1, 1),
    };
  };
  check(f, [&](int64_t n) { return Tensors{floats({n, 24, 6}, uint32_t(n))}; },
        {.dynamic = {{0, 0, "t", 1, 8}}}, kLengths);
}

TEST_P(DynamicJit, MovementsAndElements) {
  const auto f = [](const Tensors& in) {
    const Tensor& x = in[0];
    const Size t = x.size(1);
    const Tensor position = Tensor::arange(0, t, 1, {DType::F32, x.device()}).unsqueeze(-1);
    return Tensors{
        (x * 2 + position).relu(),
        x.transpose(1, 2).contiguous(),
        x.reshape({-1, 3}),
        x.flip({1}).pad({0, 0, 1, 2}, 5),
        Tensor::cat({x, x.exp(), position.expand({2, t, 3})}, 1),
        x.slice(1, 1).sum({1}),
        x.select(1, -1),
        x.repeat({1, 2, 1}),
        x.unsqueeze(0).expand({2, 2, t, 3}),
        Tensor::where(x > 0, x, x.full_like(7)).tril(),
    };
  };
  check(
      f, [&](int64_t n) { return Tensors{floats({2, n, 3}, uint32_t(n))}; },
      {.dynamic = {{.argument = 0, .axis = 1, .name = "T", .min = 1, .max = 8}}}, kLengths);
}

TEST_P(DynamicJit, ReductionsAndProducts) {
  const Tensor weight = floats({5, 3}, 99).realize();
  const auto f = [&](const Tensors& in) {
    const Tensor& x = in[0];
    return Tensors{x.sum(),
                   x.mean(),
                   x.mean({1}),
                   x.var({0, 1}, false, 0),
                   x.max({1}, true),
                   x.argmax(1),
                   x.softmax(1),
                   x.logsumexp({1}),
                   x.cumsum(1),
                   x.layernorm({3}),
                   x.linear(weight),
                   x.matmul(x.transpose(1, 2)),
                   Tensor::einsum("btc,bsc->bts", {x, x}),
                   Tensor::scaled_dot_product_attention(x, x, x, {}, 0, true)};
  };
  check(
      f, [&](int64_t n) { return Tensors{floats({2, n, 3}, uint32_t(n))}; },
      {.dynamic = {{.argument = 0, .axis = -2, .name = "T", .min = 1, .max = 8}}}, kLengths);
}

// Queries over pages of keys and values whose number varies: few, whose rows a GPU cuts into parts,
// and more than it has cores for. Rows see up to a position of their own, so that pages are masked
// as a whole. Beside the CPU's values: devices compile one kernel, not one for each length.
TEST_P(DynamicJit, AttentionOverPages) {
  constexpr int64_t kHeads = 2, kPage = 16, kWidth = 16;
  for (const int64_t rows : {3, 72}) {
    const auto f = [&](const Tensors& in) {
      const Tensor& q = in[0];
      const Size length = in[1].size(1) * kPage;
      const auto read = [&](const Tensor& x) { return x.reshape({kHeads, length, kWidth}); };
      const Tensor row = Tensor::arange(0, rows, 1, {DType::I32, q.device()}).unsqueeze(-1);
      const Tensor seen = Tensor::arange(0, length, 1, {DType::I32, q.device()}) <= row * 2 + 1;
      return Tensors{
          Tensor::scaled_dot_product_attention(q, read(in[1]), read(in[2]), seen) + 1};
    };
    Jit jit(f, {.dynamic = {{1, 1, "pages", 1, 8}, {2, 1, "pages", 1, 8}}});
    for (const int64_t n : {2, 2, 1, 8, 3}) {
      const Tensors in{floats({kHeads, rows, kWidth}, 1),
                       floats({kHeads, n, kPage, kWidth}, uint32_t(n)),
                       floats({kHeads, n, kPage, kWidth}, uint32_t(n + 100))};
      Tensors on_cpu;
      for (const Tensor& x : in) on_cpu.push_back(x.to("CPU"));
      expect_close(jit(in)[0], f(on_cpu)[0], fmt::format("{} rows of {} pages", rows, n));
    }
    EXPECT_EQ(jit.stats().replays, 3);
  }
}

// As long as tiles and slabs of products are.
TEST_P(DynamicJit, LongProducts) {
  const Tensor weight = floats({48, 40}, 5).realize();
  const auto f = [&](const Tensors& in) {
    const Tensor x = in[0].matmul(weight);
    const Tensor scores = x.matmul(x.transpose(1, 2));
    return Tensors{x, scores.softmax(-1).matmul(x), x.transpose(1, 2).matmul(in[0])};
  };
  check(f, [&](int64_t n) { return Tensors{floats({2, n, 48}, uint32_t(n))}; },
        {.dynamic = {{.argument = 0, .axis = 1, .name = "T", .min = 1, .max = 96}}},
        {1, 95, 96});
}

TEST_P(DynamicJit, IndicesAndLosses) {
  const Tensor table = floats({11, 4}, 1).realize();
  const auto f = [&](const Tensors& in) {
    const Tensor x = Tensor::embedding(table, in[0]);  // (2, T, 4)
    return Tensors{x,
                   x.gather(2, in[0].unsqueeze(-1) % 4),
                   in[0].one_hot(11),
                   x.index_select(1, in[0].select(0, 0) * 0),
                   x.reshape({-1, 4}).cross_entropy(in[0].reshape({-1}) % 4),
                   x.mse_loss(x * 0.5)};
  };
  check(
      f, [&](int64_t n) { return Tensors{integers({2, n}, 11, uint32_t(n))}; },
      {.dynamic = {{.argument = 0, .axis = 1, .name = "T", .min = 1, .max = 8}}}, kLengths);
}

TEST_P(DynamicJit, ImagesOfABatch) {
  const Tensor weight = floats({4, 2, 3, 3}, 7).realize();
  const auto f = [&](const Tensors& in) {
    const Tensor x = in[0].conv2d(weight, {}, 1, 1);
    return Tensors{x.batchnorm({}, {}, {}, {}, true).relu().max_pool2d(2),
                   x.avg_pool2d(2).flatten(1)};
  };
  const auto upwards = [&](const Tensors& in) {
    const Tensor x = in[0].conv_transpose2d(weight.permute({1, 0, 2, 3}), {}, 2, 1, 1);
    return Tensors{x.adaptive_avg_pool2d({3, 8}), x.interpolate({5, 16}, {}, "bilinear"),
                   x.max_pool2d_with_indices(3, 2, 1).second};
  };
  check(f, [&](int64_t n) { return Tensors{floats({n, 2, 4, 4}, uint32_t(n))}; },
        {.dynamic = {{.argument = 0, .axis = 0, .name = "N", .min = 1, .max = 3}}}, {1, 2, 3});
  check(upwards, [&](int64_t n) { return Tensors{floats({n, 2, 4, 4}, uint32_t(n))}; },
        {.dynamic = {{.argument = 0, .axis = 0, .name = "N", .min = 1, .max = 3}}}, {1, 2, 3});
}

// Images whose width varies, and with it how many windows there are.
TEST_P(DynamicJit, WindowsOfWidthsThatVary) {
  struct Case {
    int64_t kernel, stride, padding, dilation;
  };
  for (const Case c : {Case{3, 1, 1, 1}, {3, 2, 1, 1}, {2, 2, 0, 1}, {1, 2, 0, 1}, {4, 2, 1, 1},
                       {3, 1, 2, 2}, {3, 3, 1, 2}, {2, 3, 0, 1}, {5, 4, 2, 1}}) {
    const Tensor weight = floats({3, 2, 2, c.kernel}, 7).realize();
    const auto f = [&](const Tensors& in) {
      const PerAxis stride{1, c.stride}, dilation{1, c.dilation};
      const Tensor& x = in[0];
      const Tensor y = x.conv2d(weight, {}, stride, Padding({{0, 0}, {c.padding, c.padding}}),
                                dilation);
      return Tensors{y, (y * y).sum({0, 1, 3})};
    };
    check(f, [&](int64_t n) { return Tensors{floats({2, 2, 3, n}, uint32_t(n))}; },
          {.dynamic = {{.argument = 0, .axis = 3, .name = "W", .min = 5, .max = 23}}},
          {5, 6, 7, 8, 13, 22, 23});
    if (HasFailure()) FAIL() << c.kernel << ", stride " << c.stride << ", padding " << c.padding
                             << ", dilation " << c.dilation;
  }
}

TEST_P(DynamicJit, PoolsAndTransposedWindowsOfWidthsThatVary) {
  const Tensor up = floats({2, 3, 4}, 7).realize(), kernel = floats({2, 1, 3}, 8).realize();
  const auto f = [&](const Tensors& in) {
    const Tensor& x = in[0];
    return Tensors{x.max_pool1d(3, 2, 1),
                   x.avg_pool1d(3, 2, 1, false, false),
                   x.avg_pool1d(2),
                   x.lp_pool1d(2, 2),
                   x.unfold(2, 3, 2).sum({-1}),
                   x.im2col(3, 1, 1, 2),
                   x.conv1d(kernel, {}, 2, 1, 1, 2).relu().conv1d(kernel, {}, 2, 1, 1, 2).mean({2}),
                   x.conv_transpose1d(up, {}, 2, 1)};
  };
  check(f, [&](int64_t n) { return Tensors{floats({2, 2, n}, uint32_t(n))}; },
        {.dynamic = {{.argument = 0, .axis = 2, .name = "W", .min = 3, .max = 17}}},
        {3, 4, 5, 8, 16, 17});
}

TEST_P(DynamicJit, BothAxesOfAnImageVary) {
  const Tensor weight = floats({3, 2, 3, 3}, 7).realize();
  Jit jit([&](const Tensors& in) {
            return Tensors{in[0].conv2d(weight, {}, 2, 1).relu().max_pool2d(2)};
          },
          {.dynamic = {{0, 2, "H", 4, 12}, {0, 3, "W", 4, 12}}});
  const std::vector<std::pair<int64_t, int64_t>> extents{{8, 8},  {8, 8}, {4, 12},
                                                         {12, 4}, {5, 7}, {11, 10}};
  for (const auto& [h, w] : extents) {
    const Tensor x = floats({2, 2, h, w}, uint32_t(h * w));
    expect_close(jit({x})[0], x.conv2d(weight, {}, 2, 1).relu().max_pool2d(2),
                 std::to_string(h) + "x" + std::to_string(w));
  }
  EXPECT_EQ(jit.stats().replays, extents.size() - 2);
}

TEST_P(DynamicJit, TrainsOnWidthsThatVary) {
  const auto f = [&](const Tensors& in) {
    const Tensor &scale = in[1], &weight = in[2];
    const Tensor x = in[0] * scale;
    const Tensor y = x.conv2d(weight, {}, 2, 1).relu().max_pool2d(2, 2);
    return y.square().sum().gradient({scale, weight});
  };
  check(f,
        [&](int64_t n) {
          return Tensors{floats({2, 2, 8, n}, uint32_t(n)),
                         floats({2, 8, 1}, 4).set_requires_grad(),
                         floats({3, 2, 3, 3}, 5).set_requires_grad()};
        },
        {.dynamic = {{.argument = 0, .axis = 3, .name = "W", .min = 4, .max = 15}}},
        {4, 5, 8, 14, 15});
}

// More elements than one axis of a grid has workgroups, along a single axis that varies.
TEST_P(DynamicJit, LongVectors) {
  constexpr int64_t kMost = 200'000;
  const bool limited = std::getenv("TUFF_VK_LIMIT") != nullptr;
  const int64_t most = limited ? 10'000 : kMost;
  Jit jit([](const Tensors& in) { return Tensors{in[0] * 2 + 1}; },
          {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .min = 1, .max = most}}});
  for (int64_t n : {most, most, int64_t(1), most / 2 + 1, most - 1}) {
    const Tensor x = floats({n}, uint32_t(n));
    const Tensors& out = jit({x});
    Floats wanted = values(x);
    for (float& v : wanted) v = v * 2 + 1;
    EXPECT_EQ(values(out[0]), wanted) << n;
  }
}

TEST_P(DynamicJit, TwoAxesOfTwoArguments) {
  const auto f = [](const Tensors& in) {
    const Tensor product = in[0].matmul(in[1]);  // (B, T) x (T, 3)
    return Tensors{product, product.mean() + in[1].sum(), in[0].sum({1}) / in[0].size(1)};
  };
  Jit jit(f, {.dynamic = {{.argument = 0, .axis = 0, .name = "B", .min = 1, .max = 4},
                          {.argument = 0, .axis = 1, .name = "T", .min = 2, .max = 6},
                          {.argument = 1, .axis = 0, .name = "T", .min = 2, .max = 6}}});
  for (const auto& [b, t] : std::vector<std::pair<int64_t, int64_t>>{
           {4, 6}, {2, 3}, {1, 2}, {4, 2}, {1, 6}, {3, 5}, {4, 6}}) {
    const Tensors in{floats({b, t}, uint32_t(b)), floats({t, 3}, uint32_t(t))};
    const Tensors& got = jit(in);
    const Tensors wanted = f(in);
    for (size_t i = 0; i < got.size(); i++)
      expect_close(got[i], wanted[i], std::to_string(b) + ", " + std::to_string(t));
  }
  EXPECT_EQ(jit.stats().replays, 5u);
}

TEST_P(DynamicJit, ResultsAreKeptForWhoeverHoldsThem) {
  const auto f = [](const Tensors& in) { return Tensors{in[0] * 2, in[0].sum()}; };
  Jit jit(f, {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .min = 1, .max = 16}}});
  std::vector<Tensors> kept;
  std::vector<Tensor> lazy, given;
  for (int64_t i = 0; i < 24; i++) {
    given.push_back(floats({1 + i * 7 % 16}, uint32_t(i)));
    const Tensors& out = jit({given.back()});  // several are in flight, none is waited for
    if (i % 3 == 0) kept.push_back(out);
    lazy.push_back(out[0] + 1);
  }
  for (size_t i = 0; i < lazy.size(); i++) {
    expect_close(lazy[i], given[i] * 2 + 1, "lazy " + std::to_string(i));
    if (i % 3) continue;
    expect_close(kept[i / 3][0], given[i] * 2, "kept " + std::to_string(i));
    expect_close(kept[i / 3][1], given[i].sum(), "kept sum " + std::to_string(i));
  }
}

TEST_P(DynamicJit, ResultsMayBeTheNextArgumentsAndArgumentsResults) {
  Jit jit([](const Tensors& in) { return Tensors{in[0] + 1, in[0]}; },
          {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .min = 1, .max = 9}}});
  for (int64_t n : {4, 4, 9, 1, 6}) {
    Tensor x = floats({n}, uint32_t(n));
    const Floats first = values(x);
    for (int i = 0; i < 4; i++) {
      const Tensors& out = jit({x});
      expect_close(out[1], x, "the argument itself");
      x = out[0];
    }
    const Floats last = values(x);
    for (size_t i = 0; i < last.size(); i++) EXPECT_NEAR(last[i], first[i] + 4, 1e-5);
  }
}

// Compact memory in front of values that would be seen.
TEST_P(DynamicJit, ReadsNothingBehindASmallerArgument) {
  Jit jit(
      [](const Tensors& in) {
        return Tensors{in[0].sum(), in[0].max({0}), in[0].transpose(0, 1).softmax(-1),
                       in[0].matmul(in[0].transpose(0, 1))};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .min = 1, .max = 32}}});
  for (int64_t n : {32, 32, 5, 1, 17, 31}) {
    const Tensor all = Tensor::full({32 * 4}, NAN, on()).realize();
    const auto view = engine::Buffer::view(detail::buffer_of(all), DType::F32, n * 4, 0);
    const Floats ones(size_t(n * 4), 1.0f);
    view->copyin(ones.data());
    const Tensor x =
        detail::derive(all, ir::reshape(ir::buffer(view), {ir::Dim(n), ir::Dim(4)}));
    const Tensors& out = jit({x});
    EXPECT_EQ(out[0].item(), double(4 * n));
    EXPECT_EQ(values(out[1]), Floats(4, 1.0f));
    for (const float v : values(out[2])) EXPECT_NEAR(v, 1.0f / float(n), 1e-6);
    EXPECT_EQ(values(out[3]), Floats(size_t(n * n), 4.0f));
  }
}

class Network {
 public:
  explicit Network(const TensorOptions& o)
      : first_(6, 16, true, o), second_(16, 4, true, o), optimizer_(parameters(), {.lr = 1e-2}) {
    Tensor::realize(parameters());
  }
  Tensors step(const Tensors& in) {
    TrainingMode on;
    const Tensor logits = second_(first_(in[0]).gelu("tanh").layernorm({16}));
    const Tensor loss = logits.cross_entropy(in[1]);
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step({loss});
    return {loss, logits};
  }
  Tensors parameters() const { return {first_.weight, first_.bias, second_.weight, second_.bias}; }

 private:
  nn::Linear first_, second_;
  optim::AdamW optimizer_;
};

TEST_P(DynamicJit, ATrainingStepTakesEveryBatchSize) {
  Tensor::manual_seed(5);
  Network eager(on());
  Tensor::manual_seed(5);
  Network captured(on());
  Jit step([&](const Tensors& in) { return captured.step(in); },
           {.dynamic = {{.argument = 0, .axis = 0, .name = "N", .min = 1, .max = 4},
                        {.argument = 1, .axis = 0, .name = "N", .min = 1, .max = 4}}});
  const int64_t sizes[] = {4, 3, 1, 2, 4, 3, 1, 2, 2, 1, 4};
  for (size_t i = 0; i < std::size(sizes); i++) {
    const Tensors in{floats({sizes[i], 6}, uint32_t(i)), integers({sizes[i]}, 4, uint32_t(i))};
    const Tensors wanted = eager.step(in);
    const Tensors& got = step(in);
    expect_close(got[0], wanted[0], "loss of step " + std::to_string(i));
    ASSERT_EQ(got[1].sizes(), (Sizes{sizes[i], 4}));
  }
  EXPECT_EQ(step.stats().replays, std::size(sizes) - 2);
  const Tensors a = eager.parameters(), b = captured.parameters();
  for (size_t i = 0; i < a.size(); i++) {
    const Floats x = values(a[i]), y = values(b[i]);
    // AdamW's first steps are about lr times the gradient's sign: one close to 0 magnifies what
    // rounding leaves of it.
    for (size_t k = 0; k < x.size(); k++) ASSERT_NEAR(x[k], y[k], 1e-3) << i << ", " << k;
  }
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(e.kind()) + ": " + e.what();
  }
  return "nothing was refused";
}

TEST_P(DynamicJit, RefusesByName) {
  const auto twice = [](const Tensors& in) { return Tensors{in[0] * 2}; };
  EXPECT_EQ(refusal([&] { Jit(twice, {.dynamic = {{0, 1, "T", 0, 4}}}); }),
            "InvalidArgument: Jit: axis 1 of argument 0 (T) varies in 0..4: 1 <= min <= max is "
            "needed");
  EXPECT_EQ(refusal([&] { Jit(twice, {.dynamic = {{0, 1, "T", 1, 4}, {1, 0, "T", 1, 5}}}); }),
            "InvalidArgument: Jit: T is in 1..4 and, at axis 0 of argument 1, in 1..5");
  EXPECT_EQ(refusal([&] { Jit(twice, {.dynamic = {{1, 0, "T", 1, 4}}})({floats({2}, 1)}); }),
            "InvalidArgument: Jit: axis 0 of argument 1 varies (T), but 1 arguments are given");
  Jit sum([](const Tensors& in) { return Tensors{in[0] + in[1]}; },
          {.dynamic = {{0, 1, "T", 2, 4}, {1, 1, "T", 2, 4}}});
  const auto call = [&](const Sizes& a, const Sizes& b) {
    return refusal([&] { sum({floats(a, 1), floats(b, 2)}); });
  };
  const std::string high = "InvalidArgument: Jit: axis 1 of argument 0 is 5, outside T in 2..4",
                    low = "InvalidArgument: Jit: axis 1 of argument 1 is 1, outside T in 2..4",
                    differ =
                        "InvalidArgument: Jit: T is 3 (axis 1 of argument 0) and 4 (axis 1 of "
                        "argument 1)";
  for (int phase = 0; phase < 3; phase++) {  // eager, capturing, captured
    EXPECT_EQ(call({2, 5}, {2, 4}), high);
    EXPECT_EQ(call({2, 2}, {2, 1}), low);
    EXPECT_EQ(call({2, 3}, {2, 4}), differ);
    EXPECT_EQ(call({2, 3}, {2, 3}), "nothing was refused");
  }
  EXPECT_EQ(call({3, 3}, {3, 3}), "InvalidArgument: Jit: argument 0 was float32 (2, 3) on " +
                                      GetParam() + " when captured and is float32 (3, 3) on " +
                                      GetParam() + " now");
  // A refused call has run nothing and left no trace.
  const Tensor a = floats({2, 4}, 3), b = floats({2, 4}, 4);
  expect_close(sum({a, b})[0], a + b, "after refusals");
}

INSTANTIATE_TEST_SUITE_P(Devices, DynamicJit, testing::ValuesIn(test::devices()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace tuff

// What has no stored value to compare with: fresh memory, random numbers and their distributions,
// initializations; and what indexing and reductions promise beyond their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <tuff/tensor.h>
#include "base/check.h"
#include "engine/program/program_cache.h"
#include "engine/device.h"
#include "engine/stats.h"
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

class Creation : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on(DType t = DType::F32) const { return {t, GetParam()}; }
};

struct Spread {
  double mean = 0, deviation = 0, low = 1e30, high = -1e30;
  explicit Spread(const Tensor& t) {
    const Floats v = t.cast(DType::F32).to_vector<float>();
    for (const float x : v) {
      mean += x / double(v.size());
      low = std::min(low, double(x));
      high = std::max(high, double(x));
    }
    for (const float x : v) deviation += (x - mean) * (x - mean) / double(v.size());
    deviation = std::sqrt(deviation);
  }
};

TEST_P(Creation, LikeAnotherTensor) {
  const Tensor x = Tensor::zeros({2, 3}, on(DType::I32));
  for (const Tensor& t : {x.empty_like(), x.full_like(7), x.zeros_like(), x.ones_like()}) {
    EXPECT_EQ(t.sizes(), x.sizes());
    EXPECT_EQ(t.dtype(), x.dtype());
    EXPECT_EQ(t.device(), x.device());
  }
  EXPECT_TRUE(x.empty_like().is_realized());
  EXPECT_EQ(x.full_like(7).to_vector<int32_t>(), Ints(6, 7));
  const Tensor f = x.cast(DType::F32);
  EXPECT_NE(f.rand_like().to_vector<float>(), f.rand_like().to_vector<float>());
  EXPECT_EQ(f.randn_like().sizes(), f.sizes());
  EXPECT_EQ(Tensor::from_bytes("\x01\x00\x01", {3}, on(DType::Bool)).to_vector<bool>(),
            (std::vector<bool>{true, false, true}));
}

// Four standard errors at n = 40,000.
TEST_P(Creation, NormalNumbersHaveTheirMoments) {
  Tensor::manual_seed(17);
  const Spread s(Tensor::normal(3, 0.5, {40000}, on()));
  EXPECT_NEAR(s.mean, 3, 4 * 0.5 / 200);
  EXPECT_NEAR(s.deviation, 0.5, 4 * 0.5 / std::sqrt(80000.0));
}

// Narrow floats get no more bits than they hold: nothing is rounded up to 1.
TEST_P(Creation, UniformNumbersStayBelowOne) {
  Tensor::manual_seed(18);
  for (const DType t : {DType::F16, DType::BF16}) {
    const Spread s(Tensor::rand({40000}, on(t)));
    EXPECT_GE(s.low, 0) << name(t);
    EXPECT_LT(s.high, 1) << name(t);
    EXPECT_NEAR(s.mean, 0.5, 4 * 0.2887 / 200 + 0x1p-8) << name(t);
  }
}

// kaiming: gain sqrt(2 / (1 + a^2)) over the root of the fan; glorot: the mean of both fans.
TEST_P(Creation, InitializationsHaveTheirSpread) {
  Tensor::manual_seed(19);
  const Sizes w{100, 40, 2, 2};
  const double kaiming_in = std::sqrt(2.0 / 160), kaiming_out = std::sqrt(2.0 / 1.25 / 400),
               glorot = 3 * std::sqrt(2.0 / 560);
  EXPECT_NEAR(Spread(Tensor::kaiming_normal(w, 0, FanMode::In, on())).deviation, kaiming_in, 3e-3);
  const Spread u(Tensor::kaiming_uniform(w, 0.5, FanMode::Out, on()));
  EXPECT_NEAR(u.deviation, kaiming_out, 3e-3);
  EXPECT_LE(u.high, std::sqrt(3.0) * kaiming_out + 1e-6);
  EXPECT_NEAR(Spread(Tensor::glorot_normal(w, 3, on())).deviation, glorot, 5e-3);
  const Spread g(Tensor::glorot_uniform(w, 3, on()));
  EXPECT_NEAR(g.deviation, glorot, 5e-3);
  EXPECT_GE(g.low, -std::sqrt(3.0) * glorot - 1e-6);
}

// A gradient adds up where an element was picked twice.
TEST_P(Creation, GradientsOfRepeatedIndicesAddUp) {
  Tensor x = Tensor::from({1, 2, 3}, {3}, on()).set_requires_grad();
  const Tensor at = Tensor::from(Ints{2, 0, 2}, {3}, on());
  (x.index({at}) * Tensor::from({1, 10, 100}, {3}, on())).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{10, 0, 101}));
}

TEST_P(Creation, CountersAndConstantsReduceWhereTheyBelong) {
  const Tensor x = Tensor::from({1, 2}, {2}, on());
  const Tensor total = Tensor::arange(0, 5, 1, {DType::F32, GetParam()}).sum();
  EXPECT_EQ((x + total).to_vector<float>(), (Floats{11, 12}));
  EXPECT_EQ((x * Tensor::ones({3}, on()).cumsum(0).max()).to_vector<float>(), (Floats{3, 6}));
}

TEST_P(Creation, RunningSumsOfLongAxes) {
  const int64_t n = 70001;
  const Tensor ones = Tensor::ones({n}, on(DType::I32)).contiguous().realize();
  EXPECT_EQ((ones.cumsum(0) - Tensor::arange(1, n + 1, 1, on(DType::I32))).abs().max().item(), 0);
}

using Longs = std::vector<int64_t>;
using UnsignedLongs = std::vector<uint64_t>;

TEST_P(Creation, SumsOfIntegersAre64BitsWide) {
  const int64_t n = 1 << 17;
  const Tensor count = Tensor::arange(0, n, 1, on(DType::I32)).contiguous().realize();
  EXPECT_EQ(count.sum().to_vector<int64_t>(), Longs{n * (n - 1) / 2});
  EXPECT_EQ((count % 2 == 1).sum().to_vector<int64_t>(), Longs{n / 2});
  EXPECT_EQ(count.reshape({2, n / 2}).sum({1}, true).sizes(), (Sizes{2, 1}));
  const auto full = [&](Number v, DType t) { return Tensor::full({n}, v, on(t)).contiguous(); };
  EXPECT_EQ(full(-32768, DType::I16).sum().to_vector<int64_t>(), Longs{-32768 * n});
  EXPECT_EQ(full(-128, DType::I8).sum().to_vector<int64_t>(), Longs{-128 * n});
  EXPECT_EQ(full(65535, DType::U16).sum().to_vector<uint64_t>(),
            UnsignedLongs{65535 * uint64_t(n)});
  EXPECT_EQ(full(UINT32_MAX, DType::U32).sum().to_vector<uint64_t>(),
            UnsignedLongs{UINT32_MAX * uint64_t(n)});
  const Tensor factors = Tensor::from(Ints{65536, 65536, -3}, {3}, on());
  EXPECT_EQ(factors.prod().to_vector<int64_t>(), Longs{-3 * (int64_t(1) << 32)});
  EXPECT_EQ((factors > 0).prod().to_vector<int64_t>(), Longs{0});
}

TEST_P(Creation, RunningSumsAndMeansOfIntegersAreExact) {
  const Tensor high = Tensor::from(Ints{INT32_MAX, INT32_MAX, -5}, {3}, on());
  EXPECT_EQ(high.cumsum(0).to_vector<int64_t>(),
            (Longs{INT32_MAX, 2 * int64_t(INT32_MAX), 2 * int64_t(INT32_MAX) - 5}));
  const int64_t n = 5000;
  const Longs sums = Tensor::full({n}, 1 << 20, on(DType::I32)).cumsum(0).to_vector<int64_t>();
  for (int64_t i = 0; i < n; i++) ASSERT_EQ(sums[size_t(i)], (i + 1) << 20);
  const Ints apart{(1 << 30) + 1, -(1 << 30), 4};
  EXPECT_EQ(Tensor::from(apart, {3}, on()).mean().to_vector<float>(), Floats{5 * (1.0f / 3)});
  EXPECT_EQ((Tensor::from(apart, {3}, on()) > 0).mean({0}, true).to_vector<float>(),
            Floats{2 * (1.0f / 3)});
}

// One dtype for products of matrices, whatever their operands are.
TEST_P(Creation, ProductsOfIntegerMatricesKeepTheirDtype) {
  const Tensor x = Tensor::from(Ints{1, 2, 3, 4}, {2, 2}, on());
  EXPECT_EQ(x.matmul(x).to_vector<int32_t>(), (Ints{7, 10, 15, 22}));
  EXPECT_EQ(Tensor::einsum("ij->i", {x}).to_vector<int32_t>(), (Ints{3, 7}));
}

TEST_P(Creation, CountersBeyond32Bits) {
  const int64_t far = int64_t(1) << 31;
  const TensorOptions any{DType::Void, GetParam()};
  EXPECT_EQ(Tensor::arange(far - 2, far, 1, any).dtype(), DType::I32);
  EXPECT_EQ(Tensor::arange(far, far + 3, 1, any).to_vector<int64_t>(),
            (Longs{far, far + 1, far + 2}));
  EXPECT_EQ(Tensor::arange(-2, -far - 5, -far, any).to_vector<int64_t>(), (Longs{-2, -2 - far}));
  EXPECT_EQ(Tensor::arange(-far, -far + 2, 1, any).to_vector<int32_t>(),
            (Ints{INT32_MIN, INT32_MIN + 1}));
  const Tensor numbers = Tensor::arange(0, 2 * far + 9, 1, any);
  const Tensor at = Tensor::from(Longs{2 * far + 8, 3, -1, far}, {4}, on());
  const Longs wanted{2 * far + 8, 3, 2 * far + 8, far};
  EXPECT_EQ(numbers.take(at).to_vector<int64_t>(), wanted);
  EXPECT_EQ(numbers.index_select(0, Tensor::from(Ints{3, 5}, {2}, on())).to_vector<int64_t>(),
            (Longs{3, 5}));
  const Tensor parts = Tensor::cat({numbers, numbers.narrow(0, 0, 3)});
  EXPECT_EQ(parts.slice(0, 2 * far + 8).to_vector<int64_t>(), (Longs{2 * far + 8, 0, 1, 2}));
  EXPECT_EQ(numbers.argmax().dtype(), DType::I64);
  EXPECT_EQ(numbers.slice(0, far, far + 3).argmax().dtype(), DType::I32);
}

// A GPU's counters are its invocations' numbers, which a driver may compare as 64 bits wrongly.
TEST_P(Creation, WideCountersAreCompared) {
  for (const DType t : {DType::I64, DType::U64}) {
    if (!test::computes(GetParam(), t)) continue;
    for (const int64_t n : {4, 6, 64, 100}) {
      const Tensor i = Tensor::arange(0, n, 1, on(t)), own = Tensor::ones({n, 3}, on()).contiguous();
      for (const int64_t c : {0, 1, 3, 5}) {
        std::vector<float> above, equal;
        for (int64_t k = 0; k < n; k++) {
          above.push_back(k > c ? 7.0f : 3.0f);
          equal.push_back(k == c ? 7.0f : 3.0f);
        }
        EXPECT_EQ(Tensor::where(i > c, 7.0f, own.sum({1})).to_vector<float>(), above) << n << c;
        EXPECT_EQ(Tensor::where(i == c, 7.0f, own.sum({1})).to_vector<float>(), equal) << n << c;
      }
    }
    const Tensor rows = Tensor::arange(0, 4, 1, on(t)).reshape({4, 1});
    const Tensor hidden = Tensor::arange(0, 6, 1, on(t)).reshape({1, 6}) > rows;
    const Tensor product = Tensor::ones({4, 8}, on()).matmul(Tensor::ones({8, 6}, on()));
    std::vector<float> want;
    for (int k = 0; k < 24; k++) want.push_back(k % 6 > k / 6 ? 5.0f : 8.0f);
    EXPECT_EQ(Tensor::where(hidden, 5.0f, product).to_vector<float>(), want);
  }
}

TEST_P(Creation, ScalarsAreReducedAsIfTheyHadAnAxis) {
  const Tensor x = Tensor::full({}, 3, on());
  for (const int64_t d : {0, -1}) {
    for (const Tensor& t : {x.sum({d}), x.prod({d}), x.max({d}), x.min({d}), x.mean({d}),
                            x.logsumexp({d}), x.sum({d}, true), x.cumsum(d)}) {
      EXPECT_EQ(t.sizes(), Sizes{});
      EXPECT_EQ(t.item(), 3);
    }
    EXPECT_EQ(x.argmax(d, true).item(), 0);
    EXPECT_EQ(x.argmin(d).sizes(), Sizes{});
    EXPECT_TRUE(x.any({d}).item() && x.all({d}).item());
    EXPECT_EQ(x.var({d}, false, 0).item() + x.std({d}, true, 0).item(), 0);
  }
}

TEST_P(Creation, ExtremesOfAllElementsKeepTheirAxes) {
  const Tensor x = Tensor::from({1, 5, 2, 0}, {2, 2}, on());
  EXPECT_EQ(x.argmax({}, true).sizes(), (Sizes{1, 1}));
  EXPECT_EQ(x.argmin({}, true).to_vector<int32_t>(), Ints{3});
  EXPECT_EQ(x.argmax().sizes(), Sizes{});
  EXPECT_EQ(x.flip().to_vector<float>(), (Floats{0, 2, 5, 1}));
}

TEST_P(Creation, FactsAndPlainFills) {
  const Tensor x = Tensor::ones({2, 3}, on()), y = Tensor::zeros({6}, on());
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_FALSE(x.is_realized());
  EXPECT_EQ((x.view({6}) + y).neg().to_vector<float>(), Floats(6, -1));
}

// 2^62 elements of four bytes are 2^64 bytes, which 64 bits call 0.
TEST_P(Creation, MoreBytesThanAreCounted) {
  const int64_t n = int64_t{1} << 62;
  EXPECT_THROW(Tensor::empty({n}, on()), OutOfMemory);
  EXPECT_THROW(Tensor::zeros({n}, on()).realize(), OutOfMemory);
  EXPECT_THROW(Tensor::from({1}, {1}, on()).expand({n / 2}).contiguous().realize(), OutOfMemory);
}

TEST_P(Creation, MovesBetweenDevices) {
  const Tensor x = Tensor::from({1, 2, 3}, {3}, on());
  EXPECT_EQ((x + 1).to("CPU").to(GetParam()).to_vector<float>(), (Floats{2, 3, 4}));
  EXPECT_EQ(x.to("CPU").device(), "CPU");
}

// Every part is read and written a few times, and what is compiled does not grow with their number.
TEST_P(Creation, ManyPartsAreJoinedByAFewKernels) {
  std::vector<Tensor> parts;
  Floats expected;
  for (int i = 0; i < 1000; i++) {
    const Floats values = {float(i), float(-i), 0.5f, float(i % 7)};
    expected.insert(expected.end(), values.begin(), values.end());
    parts.push_back(Tensor::from(values, {2, 2}, on()));
  }
  Tensor::realize(parts);
  const engine::GlobalCounters& counted = engine::counters();
  const size_t before = engine::Device::get(GetParam())->programs().size();
  const uint64_t bytes = counted.bytes;
  EXPECT_EQ(Tensor::cat(parts).to_vector<float>(), expected);
  EXPECT_LE(engine::Device::get(GetParam())->programs().size() - before, 6u);
  EXPECT_LE(counted.bytes - bytes, 8 * 4 * expected.size());
}

TEST_P(Creation, ManyPartsOfOtherSizesAndDtypesAreJoined) {
  std::vector<Tensor> parts;
  std::vector<double> rows[2];
  for (int64_t i = 0; i < 100; i++) {
    const DType t = i % 3 == 0 ? DType::I32 : i == 50 ? DType::F32 : DType::F16;
    parts.push_back(Tensor::arange(0, 2 * (i % 4), 1, on(DType::I32)).reshape({2, i % 4}).cast(t));
    for (int64_t k = 0; k < 2 * (i % 4); k++) rows[k >= i % 4].push_back(double(k));
  }
  parts[1] = Tensor::from(Floats{0, 1}, {2, 1}, on()).set_requires_grad(true);
  const Tensor all = Tensor::cat(parts, 1);
  EXPECT_EQ(all.dtype(), DType::F32);
  rows[0].insert(rows[0].end(), rows[1].begin(), rows[1].end());
  EXPECT_EQ(all.to("CPU").cast(DType::F64).to_vector<double>(), rows[0]);
  (all * 3).sum().backward();
  EXPECT_EQ(parts[1].grad().cast(DType::F32).to_vector<float>(), Floats(2, 3));
}

// One kernel, in which each step has the last one's result three times: compilers take a time in
// proportion to its steps, not twice as long for each.
TEST_P(Creation, LongChainsOfChoicesCompile) {
  Tensor a = Tensor::from(Ints{6765, 17, 0}, {3}, on()).contiguous(),
         b = Tensor::from(Ints{4181, 51, 5}, {3}, on()).contiguous();
  for (int i = 0; i < 32; i++) {
    const Tensor done = b == 0, rest = Tensor::where(done, b, a % b);
    a = Tensor::where(done, a, b);
    b = rest;
  }
  EXPECT_EQ(a.to_vector<int32_t>(), (Ints{1, 17, 5}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Creation, testing::ValuesIn(devices()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char ch) { return !isalnum(static_cast<unsigned char>(ch)); },
      '_');
  return name;
});

}  // namespace
}  // namespace tuff::test

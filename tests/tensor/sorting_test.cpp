// Order, selection, counts and draws on every device: what the table of functions cannot compare
// (bits, each axis of a cube, Jits, numbers of elements that depend on data, random draws).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <tuff/jit.h>
#include <tuff/tensor.h>

#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

class Sorting : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on(DType t = DType::F32) const { return {.dtype = t, .device = GetParam()}; }
  Tensor floats(const Floats& v) const { return Tensor::from(v, {int64_t(v.size())}, on()); }
  Tensor ints(const Ints& v) const { return Tensor::from(v, {int64_t(v.size())}, on()); }
  bool is_cpu() const { return GetParam() == "CPU"; }
};
INSTANTIATE_TEST_SUITE_P(Devices, Sorting, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

Floats some_floats(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> between(-100, 100);
  Floats v(n);
  for (float& x : v) x = between(random);
  return v;
}
std::vector<uint32_t> bits_of(const Floats& v) {
  std::vector<uint32_t> out;
  for (float x : v) out.push_back(std::bit_cast<uint32_t>(x));
  return out;
}

// The bits stay, of -0 and of NaN too.
TEST_P(Sorting, MovesBits) {
  const float nan = std::bit_cast<float>(0x7fc00123u), negative = std::bit_cast<float>(0xffc00456u);
  const Floats v{nan, 0.0f, 3, -INFINITY, -0.0f, negative, INFINITY, -1};
  const Floats up{-INFINITY, -1, 0.0f, -0.0f, 3, INFINITY, nan, negative};
  const Floats down{nan, negative, INFINITY, 3, 0.0f, -0.0f, -1, -INFINITY};
  const auto [sorted, at] = floats(v).sort();
  EXPECT_EQ(bits_of(sorted.to_vector<float>()), bits_of(up));
  EXPECT_EQ(at.to_vector<int32_t>(), (Ints{3, 7, 1, 4, 2, 6, 0, 5}));
  EXPECT_EQ(bits_of(floats(v).sort(0, true).first.to_vector<float>()), bits_of(down));
}

// Every axis of a cube, against rows that are sorted one by one.
TEST_P(Sorting, SortsEachAxis) {
  const Sizes sizes{3, 33, 5};
  const Floats v = some_floats(3 * 33 * 5, 11);
  const Tensor x = Tensor::from(v, sizes, on());
  for (int64_t d = 0; d < 3; d++) {
    const Tensor sorted = x.sort(d).first.movedim(d, 2), rows = x.movedim(d, 2);
    Floats want = rows.to_vector<float>();
    const auto n = int64_t(sizes[size_t(d)]);
    for (auto row = want.begin(); row != want.end(); row += n) std::sort(row, row + n);
    EXPECT_EQ(sorted.to_vector<float>(), want) << d;
    const Tensor most = x.topk(2, d).first.movedim(d, 2);
    Floats two;
    for (auto row = want.begin(); row != want.end(); row += n)
      two.insert(two.end(), {row[n - 1], row[n - 2]});
    EXPECT_EQ(most.to_vector<float>(), two) << d;
  }
}

TEST_P(Sorting, TakesTheFirstOfALongAxis) {
  const int64_t n = is_cpu() ? 40'000 : 3'000;
  const Floats v = some_floats(size_t(n), 12);
  Floats sorted = v;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t k : {1, 7, 128, 200, 1025}) {
    EXPECT_EQ(floats(v).topk(k, 0, false).first.to_vector<float>(),
              Floats(sorted.begin(), sorted.begin() + k))
        << k;
    EXPECT_EQ(floats(v).kthvalue(k).first.item(), sorted[size_t(k) - 1]) << k;
  }
  EXPECT_EQ(floats(v).median().item(), sorted[size_t(n - 1) / 2]);
}

TEST_P(Sorting, GradientsGoToWhatWasChosen) {
  const Floats v{5, 1, 4, 2, 3};
  const auto gradient = [&](const std::function<Tensor(const Tensor&)>& f) {
    Tensor x = floats(v).set_requires_grad();
    const Tensor y = f(x);
    (y * Tensor::arange(1, y.numel() + 1, 1, on())).sum().backward();
    return x.grad().to_vector<float>();
  };
  EXPECT_EQ(gradient([](const Tensor& x) { return x.sort().first; }), (Floats{5, 1, 4, 2, 3}));
  EXPECT_EQ(gradient([](const Tensor& x) { return x.topk(2).first; }), (Floats{1, 0, 2, 0, 0}));
  EXPECT_EQ(gradient([](const Tensor& x) { return x.median().reshape({1}); }),
            (Floats{0, 0, 0, 0, 1}));
  EXPECT_EQ(gradient([](const Tensor& x) { return x.cummax(0).first; }),
            (Floats{15, 0, 0, 0, 0}));
  EXPECT_EQ(gradient([](const Tensor& x) { return x.cummin(0).first; }),
            (Floats{1, 14, 0, 0, 0}));
}

TEST_P(Sorting, IsCapturedByAJit) {
  Jit step([](const std::vector<Tensor>& in) {
    const auto [sorted, at] = in[0].sort();
    return std::vector<Tensor>{sorted, at, in[0].topk(3).first, in[0].median(),
                               in[0].histc(4, -100, 100)};
  });
  for (uint64_t seed = 0; seed < 5; seed++) {
    const Floats v = some_floats(300, seed);
    Floats sorted = v;
    std::sort(sorted.begin(), sorted.end());
    const std::vector<Tensor> out = step({floats(v).realize()});
    EXPECT_EQ(out[0].to_vector<float>(), sorted) << seed;
    const Ints at = out[1].to_vector<int32_t>();
    for (size_t i = 0; i < v.size(); i++) EXPECT_EQ(v[size_t(at[i])], sorted[i]);
    EXPECT_EQ(out[2].to_vector<float>(), Floats(sorted.rbegin(), sorted.rbegin() + 3)) << seed;
    EXPECT_EQ(out[3].item(), sorted[149]) << seed;
    Floats counts(4);
    for (float x : v) counts[std::min(size_t((x + 100) / 50), size_t(3))]++;
    EXPECT_EQ(out[4].to_vector<float>(), counts) << seed;
  }
  EXPECT_TRUE(step.captured());
}

TEST_P(Sorting, FindsWhatIsDifferent) {
  for (size_t n : {1, 2, 300, 1000}) {
    std::mt19937_64 random(n);
    Ints v(n);
    for (int32_t& x : v) x = int32_t(random() % 40) - 20;
    std::map<int32_t, int32_t> counts;
    for (int32_t x : v) counts[x]++;
    const UniqueElements u = ints(v).unique();
    const Ints values = u.values.to_vector<int32_t>(), inverse = u.inverse.to_vector<int32_t>();
    Ints want, times;
    for (const auto& [value, count] : counts) {
      want.push_back(value);
      times.push_back(count);
    }
    EXPECT_EQ(values, want);
    EXPECT_EQ(u.counts.to_vector<int32_t>(), times);
    for (size_t i = 0; i < n; i++) EXPECT_EQ(values[size_t(inverse[i])], v[i]);
  }
}

TEST_P(Sorting, UniqueOfNaNAndZeros) {
  const UniqueElements u =
      floats({NAN, -0.0f, 2, 0.0f, NAN, -INFINITY, 2}).reshape({1, 7}).unique();
  EXPECT_EQ(bits_of(u.values.to_vector<float>()),
            bits_of({-INFINITY, -0.0f, 2, NAN, NAN}));
  EXPECT_EQ(u.inverse.to_vector<int32_t>(), (Ints{3, 1, 2, 1, 4, 0, 2}));
  EXPECT_EQ(u.inverse.dim(), 2);
  EXPECT_EQ(u.counts.to_vector<int32_t>(), (Ints{1, 2, 2, 1, 1}));
  EXPECT_EQ(floats({}).unique().values.numel(), 0);
  EXPECT_EQ(floats({}).unique().counts.numel(), 0);
}

TEST_P(Sorting, RunsOfEqualNeighbours) {
  const UniqueElements u = ints({4, 4, 1, 4, 4, 4, 0}).unique_consecutive();
  EXPECT_EQ(u.values.to_vector<int32_t>(), (Ints{4, 1, 4, 0}));
  EXPECT_EQ(u.inverse.to_vector<int32_t>(), (Ints{0, 0, 1, 2, 2, 2, 3}));
  EXPECT_EQ(u.counts.to_vector<int32_t>(), (Ints{2, 1, 3, 1}));
  EXPECT_EQ(ints({7}).unique_consecutive().values.to_vector<int32_t>(), (Ints{7}));
}

TEST_P(Sorting, CountsValues) {
  EXPECT_EQ(ints({3, 0, 3, 1, 3}).bincount().to_vector<int32_t>(), (Ints{1, 1, 0, 3}));
  EXPECT_EQ(ints({3, 0}).bincount(6).to_vector<int32_t>(), (Ints{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(ints({}).bincount(2).to_vector<int32_t>(), (Ints{0, 0}));
  EXPECT_EQ(ints({2, 0, 2}).bincount(floats({0.5f, 2, 4})).to_vector<float>(),
            (Floats{2, 0, 4.5f}));
  EXPECT_THROW((ints({2, 1}) * ints({-1, 1})).bincount(), IndexError);
  std::mt19937_64 random(5);
  Ints v(700), want(2000, 0);
  for (int32_t& x : v) want[size_t(x = int32_t(random() % 2000))]++;
  EXPECT_EQ(ints(v).bincount(2000).to_vector<int32_t>(), want);
}

TEST_P(Sorting, HistogramsOfWhatThereIs) {
  EXPECT_EQ(floats({1, 2, 4, 5, NAN, INFINITY, 0}).histc(4, 1, 5).to_vector<float>(),
            (Floats{1, 1, 0, 2}));
  EXPECT_EQ(floats({1, 2, 3, 3}).histc(2).to_vector<float>(), (Floats{1, 3}));
  EXPECT_EQ(floats({7, 7}).histc(2).to_vector<float>(), (Floats{0, 2}));
  EXPECT_EQ(floats({}).histc(2).to_vector<float>(), (Floats{0, 0}));
}

TEST_P(Sorting, WhatWaitsIsRefusedByAJit) {
  for (const auto& f : {+[](const Tensor& x) { return x.unique().values; },
                        +[](const Tensor& x) { return x.unique_consecutive().values; },
                        +[](const Tensor& x) { return x.bincount(); }}) {
    Jit step([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; });
    const std::vector<Tensor> in{ints({1, 2, 1}).realize()};
    EXPECT_THROW(
        {
          for (int i = 0; i < 3; i++) step(in);
        },
        InvalidArgument);
  }
}

TEST_P(Sorting, PermutationsHaveGradientsWhereTheyAreFloats) {
  TensorOptions o = on(DType::F32);
  o.requires_grad = true;
  EXPECT_TRUE(Tensor::randperm(4, o).requires_grad());
  o.dtype = DType::U8;
  EXPECT_THROW(Tensor::randperm(4, o), InvalidArgument);
}

TEST_P(Sorting, PermutationsAreSeeded) {
  for (int64_t n : {0, 1, 2, 50, 1000}) {
    Tensor::manual_seed(4);
    const Ints first = Tensor::randperm(n, on(DType::I32)).to_vector<int32_t>();
    const Ints other = Tensor::randperm(n, on(DType::I32)).to_vector<int32_t>();
    Tensor::manual_seed(4);
    EXPECT_EQ(Tensor::randperm(n, on(DType::I32)).to_vector<int32_t>(), first);
    if (n >= 50) {
      EXPECT_NE(other, first);
    }
    Ints sorted = first, all(static_cast<size_t>(n));
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
  }
}

// The six orders of three are equally likely: 600 each of 3,600 are within five standard deviations
// of 22.4.
TEST_P(Sorting, PermutationsAreFair) {
  Tensor::manual_seed(9);
  std::map<Ints, int> seen;
  Jit draw([&](const std::vector<Tensor>&) {
    std::vector<Tensor> rows;
    for (int i = 0; i < 36; i++) rows.push_back(Tensor::randperm(3, on(DType::I32)));
    return std::vector<Tensor>{Tensor::stack(rows)};
  });
  for (int i = 0; i < 100; i++) {
    const Ints all = draw({})[0].to_vector<int32_t>();
    for (size_t r = 0; r < all.size(); r += 3) seen[{all[r], all[r + 1], all[r + 2]}]++;
  }
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 600, 112);
}

// Against the weights, within five standard deviations.
TEST_P(Sorting, DrawsByWeight) {
  Tensor::manual_seed(2);
  const Tensor weights = Tensor::from({1, 0, 3, 4, 0, 0, 0, 5}, {2, 4}, on());
  const int64_t count = 4000;
  const Ints drawn = weights.multinomial(count, true).to_vector<int32_t>();
  Floats share(4);
  for (int64_t i = 0; i < count; i++) share[size_t(drawn[size_t(i)])]++;
  const double p[] = {1.0 / 8, 0, 3.0 / 8, 4.0 / 8};
  for (size_t i = 0; i < 4; i++)
    EXPECT_NEAR(share[i], double(count) * p[i], 5 * std::sqrt(double(count) * p[i] * (1 - p[i])));
  EXPECT_TRUE(std::all_of(drawn.begin() + count, drawn.end(), [](int32_t i) { return i == 3; }));
}

// A position is one of the axis whatever the weights are, and none that does not count.
TEST_P(Sorting, DrawsNoWeightsThatDoNotCount) {
  Tensor::manual_seed(3);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Tensor weights = Tensor::from({-5, 1, kNan}, {3}, on());
  EXPECT_EQ(weights.multinomial(64, true).to_vector<int32_t>(), Ints(64, 1));
  for (int i = 0; i < 16; i++) EXPECT_EQ(weights.multinomial(1).to_vector<int32_t>(), Ints{1});
  for (const float w : {0.0f, -1.0f, kNan, std::numeric_limits<float>::infinity()}) {
    for (const bool again : {false, true}) {
      const Tensor all = Tensor::from({w, w, w}, {3}, on());
      for (const int32_t i : all.multinomial(3, again).to_vector<int32_t>()) {
        EXPECT_GE(i, 0) << w;
        EXPECT_LT(i, 3) << w;
      }
    }
  }
}

TEST_P(Sorting, DrawsOnceWithoutReplacement) {
  Tensor::manual_seed(6);
  const Tensor weights = Tensor::from({1, 0, 3, 4, 2}, {5}, on()).expand({500, 5}).contiguous();
  const Ints drawn = weights.multinomial(4).to_vector<int32_t>();
  Floats first(5);
  for (size_t r = 0; r < drawn.size(); r += 4) {
    EXPECT_EQ(std::set<int32_t>(drawn.begin() + ptrdiff_t(r), drawn.begin() + ptrdiff_t(r) + 4),
              (std::set<int32_t>{0, 2, 3, 4}));
    first[size_t(drawn[r])]++;
  }
  const double p[] = {0.1, 0, 0.3, 0.4, 0.2};
  for (size_t i = 0; i < 5; i++)
    EXPECT_NEAR(first[i], 500 * p[i], 5 * std::sqrt(500 * p[i] * (1 - p[i])));
}

}  // namespace
}  // namespace tuff::test

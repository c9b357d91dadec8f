// Stores by index on every device, against elements that are put one by one; gradients of picking
// and putting; what is written and what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include <tuff/jit.h>
#include <tuff/tensor.h>
#include "engine/device.h"
#include "engine/stats.h"
#include "ir/op.h"
#include "tensor/scatter_segments.h"
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
using indexing::Slice;
using testing::HasSubstr;

class Scatter : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on(DType t = DType::F32) const { return {t, GetParam()}; }
  Tensor ints(const Ints& v, const Sizes& sizes) const { return Tensor::from(v, sizes, on()); }
  Tensor floats(const Floats& v, const Sizes& sizes) const {
    return Tensor::from(v, sizes, on());
  }
  // Whole numbers, whose sums of a few do not round in any dtype.
  Floats whole(size_t n) {
    Floats out(n);
    for (float& v : out) v = float(int(random_() % 9) - 4);
    return out;
  }
  Ints places(size_t n, int64_t extent) {
    Ints out(n);
    for (int32_t& v : out) v = int32_t(random_() % uint64_t(extent));
    return out;
  }
  std::mt19937 random_{5};
};
INSTANTIATE_TEST_SUITE_P(Devices, Scatter, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

size_t count_of(const std::vector<int64_t>& shape) {
  size_t n = 1;
  for (int64_t d : shape) n *= size_t(d);
  return n;
}
Sizes sizes_of(const std::vector<int64_t>& shape) { return {shape.begin(), shape.end()}; }

// x after f(x, value) has been stored at index along axis d, one after the other.
Floats one_by_one(Floats x, const std::vector<int64_t>& shape, size_t d, const Ints& index,
                  const Floats& value, const std::vector<int64_t>& of,
                  const std::function<float(float, float)>& f) {
  std::vector<int64_t> at(of.size(), 0);
  for (size_t i = 0; i < index.size(); i++) {
    int64_t place = 0;
    for (size_t a = 0; a < shape.size(); a++)
      place = place * shape[a] + (a == d ? index[i] : at[a]);
    x[size_t(place)] = f(x[size_t(place)], value[i]);
    for (size_t a = of.size(); a-- > 0;) {
      if (++at[a] < of[a]) break;
      at[a] = 0;
    }
  }
  return x;
}

float sum_of(float a, float b) { return a + b; }
float largest_of(float a, float b) { return std::max(a, b); }
float least_of(float a, float b) { return std::min(a, b); }
float last_of(float, float b) { return b; }

TEST_P(Scatter, RandomShapesWithDuplicates) {
  const auto extent = [&](int64_t n) { return int64_t(random_() % uint64_t(n)) + 1; };
  for (int round = 0; round < 12; round++) {
    std::vector<int64_t> shape{extent(5), extent(7), extent(6)}, of = shape;
    const size_t d = size_t(round) % 3;
    of[d] = extent(11);
    for (size_t a = 0; a < 3; a++) of[a] = a == d ? of[a] : extent(shape[a]);
    const Floats x = whole(count_of(shape)), v = whole(count_of(of));
    const Ints i = places(v.size(), shape[d]);
    const Tensor tx = floats(x, sizes_of(shape)), tv = floats(v, sizes_of(of)),
                 ti = ints(i, sizes_of(of));
    const auto want = [&](auto f) { return one_by_one(x, shape, d, i, v, of, f); };
    const auto axis = int64_t(d);
    EXPECT_EQ(tx.scatter_add(axis, ti, tv).to_vector<float>(), want(sum_of));
    EXPECT_EQ(tx.scatter(axis, ti, tv).to_vector<float>(), want(last_of));
    EXPECT_EQ(tx.scatter_reduce(axis, ti, tv, "amax").to_vector<float>(), want(largest_of));
    EXPECT_EQ(tx.scatter_reduce(axis, ti, tv, "amin").to_vector<float>(), want(least_of));
    Tensor memory = floats(x, sizes_of(shape)).realize(), lazy = tx * 1;
    memory.scatter_add_(axis, ti, tv);
    lazy.scatter_add_(axis, ti, tv);
    EXPECT_EQ(memory.to_vector<float>(), want(sum_of));
    EXPECT_EQ(lazy.to_vector<float>(), want(sum_of));
  }
}

TEST_P(Scatter, AllDTypes) {
  const Ints at{2, 0, 2, 1, 2, 2};
  const Floats x{1, 2, 3, 4}, v{1, 2, 3, 1, 2, 1};
  for (const DType t : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32,
                        DType::I64, DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64}) {
    if (!test::computes(GetParam(), t)) continue;
    const Tensor tx = floats(x, {4}).cast(t), tv = floats(v, {6}).cast(t), ti = ints(at, {6});
    const auto values = [](const Tensor& y) { return y.cast(DType::F32).to_vector<float>(); };
    EXPECT_EQ(values(tx.scatter_add(0, ti, tv)), (Floats{3, 3, 10, 4})) << name(t);
    EXPECT_EQ(values(tx.scatter(0, ti, tv)), (Floats{2, 1, 1, 4})) << name(t);
    EXPECT_EQ(values(tx.scatter_reduce(0, ti, tv, "prod")), (Floats{2, 2, 18, 4})) << name(t);
    EXPECT_EQ(values(tx.scatter_reduce(0, ti, tv, "amin", false)), (Floats{2, 1, 1, 4}))
        << name(t);
    EXPECT_EQ(values(tx.scatter_reduce(0, ti, tv, "mean", false)),
              (Floats{2, 1, is_float(t) ? 1.75f : 1.0f, 4}))
        << name(t);
    EXPECT_EQ(values(tx.index_fill(0, ti, 9)), (Floats{9, 9, 9, 4})) << name(t);
  }
  const Tensor bools = (floats(x, {4}) > 2), all = floats(v, {6}) > 1;
  EXPECT_EQ(bools.scatter(0, ints(at, {6}), all).to_vector<bool>(),
            (std::vector<bool>{true, false, false, true}));
  EXPECT_THROW(bools.scatter_add(0, ints(at, {6}), all), InvalidArgument);
}

// Sums of narrow floats are rounded once: 2048 + 1 is 2048 in f16.
TEST_P(Scatter, NarrowSumsAreRoundedOnce) {
  const Tensor x = Tensor::full({1}, 2048, on(DType::F16)), ones = Tensor::ones({64}, on(DType::F16));
  const Tensor at = Tensor::zeros({64}, on(DType::I32));
  EXPECT_EQ(x.scatter_add(0, at, ones).item(), 2112);
}

TEST_P(Scatter, IndexDTypesAndPositionsFromTheEnd) {
  const Tensor x = Tensor::zeros({200}, on()), one = Tensor::ones({3}, on());
  for (const DType t : {DType::I8, DType::U8, DType::I16, DType::I32, DType::I64}) {
    const Tensor at = ints({3, 100, 3}, {3}).cast(t).realize();
    Floats want(200, 0.0f);
    want[3] = 2, want[100] = 1;
    EXPECT_EQ(x.index_add(0, at, one).to_vector<float>(), want) << name(t);
  }
  Floats want(200, 0.0f);
  want[199] = 2, want[0] = 1;
  EXPECT_EQ(x.index_add(0, ints({-1, -200, -1}, {3}), one).to_vector<float>(), want);
  EXPECT_EQ(x.put(ints({-1, -200, -1}, {3}), one, true).to_vector<float>(), want);
  EXPECT_EQ(floats({1, 2, 3}, {3}).gather(0, ints({-1, -3}, {2})).to_vector<float>(),
            (Floats{3, 1}));
}

TEST_P(Scatter, WhatIsOutsideIsAnErrorWhereTheHostKnowsIt) {
  const Tensor x = floats({1, 2, 3}, {3}), v = floats({5, 6, 7}, {3});
  EXPECT_THROW(x.scatter(0, ints({0, 3, 1}, {3}), v), IndexError);
  EXPECT_THROW(x.index_add(0, ints({0, -4, 1}, {3}), v), IndexError);
  // Where a device has computed them they put nothing.
  const Tensor computed = floats({0, 3, -4}, {3}).cast(DType::I32);
  EXPECT_EQ(x.scatter(0, computed, v).to_vector<float>(), (Floats{5, 2, 3}));
  EXPECT_EQ(x.scatter_add(0, computed, v).to_vector<float>(), (Floats{6, 2, 3}));
  EXPECT_EQ(x.index_copy(0, computed, v).to_vector<float>(), (Floats{5, 2, 3}));
}

TEST_P(Scatter, NothingToStoreAndNowhereTo) {
  const Tensor x = floats({1, 2, 3, 4}, {2, 2});
  const Tensor none = Tensor::zeros({0, 2}, on(DType::I32)), nothing = Tensor::zeros({0, 2}, on());
  EXPECT_EQ(x.scatter_add(0, none, nothing).to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(x.index_add(0, Tensor::zeros({0}, on(DType::I32)), nothing).to_vector<float>(),
            (Floats{1, 2, 3, 4}));
  EXPECT_EQ(x.put(none, nothing).to_vector<float>(), (Floats{1, 2, 3, 4}));
  const Tensor empty = Tensor::zeros({3, 0}, on());
  EXPECT_EQ(empty.scatter(0, Tensor::zeros({2, 0}, on(DType::I32)), empty).numel(), 0);
  EXPECT_EQ(empty.index_fill(0, ints({1}, {1}), 3).numel(), 0);
  const Tensor scalar = floats({3}, {});
  EXPECT_EQ(scalar.scatter_add(0, ints({0}, {}), floats({4}, {})).item(), 7);
  EXPECT_EQ(scalar.index_fill(0, ints({0}, {1}), 5).item(), 5);
  Tensor memory = floats({1, 2}, {2});
  memory.scatter_add_(0, Tensor::zeros({0}, on(DType::I32)), Tensor::zeros({0}, on()));
  EXPECT_EQ(memory.to_vector<float>(), (Floats{1, 2}));
}

TEST_P(Scatter, MasksAndSmallerIndices) {
  const Tensor x = floats({0, 0, 0, 0, 0, 0}, {2, 3});
  const Tensor mask = floats({1, 0, 1, 0, 1, 1}, {2, 3}) > 0;
  EXPECT_EQ(x.masked_scatter(mask, floats({1, 2, 3, 4, 5}, {5})).to_vector<float>(),
            (Floats{1, 0, 2, 0, 3, 4}));
  EXPECT_EQ(x.masked_scatter(mask.slice(0, 0, 1), floats({1, 2, 3, 4}, {4})).to_vector<float>(),
            (Floats{1, 0, 2, 3, 0, 4}));
  // The first column alone.
  EXPECT_EQ(x.scatter(0, ints({1}, {1, 1}), floats({7, 8}, {1, 2})).to_vector<float>(),
            (Floats{0, 0, 0, 7, 0, 0}));
  EXPECT_EQ(x.index_put({ints({1, 1}, {2}), Slice{1, 3}}, 2, true).to_vector<float>(),
            (Floats{0, 0, 0, 0, 4, 4}));
  EXPECT_EQ(x.index_put({mask}, floats({1, 2, 3, 4}, {4}), true).to_vector<float>(),
            (Floats{1, 0, 2, 0, 3, 4}));
  EXPECT_EQ((x + 1).index_put({mask}, 5, true).to_vector<float>(), (Floats{6, 1, 6, 1, 6, 6}));
  EXPECT_EQ((x + 1).index_put({Slice{1, 2}}, 5, true).to_vector<float>(),
            (Floats{1, 1, 1, 6, 6, 6}));
}

// The same bits on every run, however much comes to one place.
// Segments inside of blocks, across many of them and of nothing; several levels. What is nowhere is
// no number.
TEST_P(Scatter, SortedSegmentsAreWhatOwnersStore) {
  struct Case {
    int64_t n, places;
    uint64_t distinct;  // places that are named
  };
  const auto add = [](float a, float b) { return a + b; };
  const auto multiply = [](float a, float b) { return a * b; };
  const auto most = [](float a, float b) { return std::max(a, b); };
  for (const auto [n, places, distinct] :
       {Case{1, 3, 3}, Case{64, 10, 10}, Case{65, 5, 1}, Case{1000, 300, 300}, Case{1000, 20, 3},
        Case{4200, 70, 2}}) {
    Ints index = this->places(size_t(n), int64_t(distinct));
    Floats value = whole(size_t(n));
    Floats signs(size_t(n), 1.0f);
    for (size_t i = 0; i < signs.size(); i += 3) signs[i] = -1;
    if (n > 100) {
      index[7] = -1, index[50] = int32_t(places);
      value[7] = value[50] = signs[7] = signs[50] = NAN;
    }
    const Floats before = whole(size_t(places));
    const Tensor x = floats(before, {1, places, 1}), at = ints(index, {1, n});
    const auto want = [&](const Floats& of, const auto& f) {
      Floats out = before;
      for (size_t i = 0; i < index.size(); i++)
        if (index[i] >= 0 && index[i] < places) {
          float& y = out[size_t(index[i])];
          y = f(y, of[i]);
        }
      return out;
    };
    const std::string what = fmt::format("{} into {}", n, places);
    EXPECT_EQ(detail::scattered_sorted(x, floats(value, {1, n, 1}), at, ir::Op::Add).to_vector<float>(),
              want(value, add)) << what;
    EXPECT_EQ(detail::scattered_sorted(x, floats(signs, {1, n, 1}), at, ir::Op::Mul).to_vector<float>(),
              want(signs, multiply)) << what;
    EXPECT_EQ(detail::scattered_sorted(x, floats(value, {1, n, 1}), at, ir::Op::Max).to_vector<float>(),
              want(value, most)) << what;
  }
}

TEST_P(Scatter, SortedSegmentsHaveTheGradientsOfAScatter) {
  const int64_t n = 150, places = 12;
  const Tensor at = ints(this->places(size_t(n), places), {n});
  const Floats values = whole(size_t(n)), own = whole(size_t(places));
  for (const ir::Op op : {ir::Op::Add, ir::Op::Max}) {
    const auto all = [&](bool sorted) {
      const Tensor x = floats(own, {places}), y = floats(values, {n});
      const Tensor out =
          sorted ? detail::scattered_sorted(x.reshape({1, places, 1}), y.reshape({1, n, 1}),
                                            at.reshape({1, n}), op).reshape({places})
                 : x.scatter_reduce(0, at, y, op == ir::Op::Add ? "sum" : "amax");
      const auto g = (out * out * 0.5f).sum().gradient({x, y});
      return std::pair(g[0].to_vector<float>(), g[1].to_vector<float>());
    };
    EXPECT_EQ(all(true), all(false)) << int(op);
  }
}

TEST_P(Scatter, SortedSegmentsOfRows) {
  const int64_t n = 300, places = 40, beside = 5;
  const Ints index = this->places(size_t(n), places);
  const Floats value = whole(size_t(n * beside)), own = whole(size_t(places * beside));
  const auto all = [&](bool sorted) {
    const Tensor x = floats(own, {places, beside}), y = floats(value, {n, beside});
    const Tensor at = ints(index, {n});
    const Tensor out = sorted ? detail::scattered_sorted(x.unsqueeze(0), y.unsqueeze(0),
                                                         at.unsqueeze(0), ir::Op::Add).squeeze(0)
                              : x.index_add(0, at, y);
    const auto g = (out * out * 0.5f).sum().gradient({x, y});
    return std::vector{out.to_vector<float>(), g[0].to_vector<float>(), g[1].to_vector<float>()};
  };
  EXPECT_EQ(all(true), all(false));
}

// Gradients of long picks are summed in sorted order on GPUs, in the same for every run.
TEST_P(Scatter, GradientsOfLongPicks) {
  const int64_t n = 140'000, rows = 5'000;
  Ints index = places(size_t(n), rows);
  index[5] = -2;
  const Floats scale = whole(size_t(n));
  Floats want(size_t(rows), 0.0f);
  for (size_t i = 0; i < index.size(); i++)
    want[size_t(index[i] < 0 ? index[i] + rows : index[i])] += scale[i];
  const Tensor at = ints(index, {n}), s = floats(scale, {n});
  const auto gradient = [&](const auto& pick) {
    Tensor x = Tensor::ones({rows}, on());
    x.realize();
    return (pick(x) * s).sum().gradient({x})[0].template to_vector<float>();
  };
  EXPECT_EQ(gradient([&](const Tensor& x) { return x.gather(0, at); }), want);
  EXPECT_EQ(gradient([&](const Tensor& x) { return x.index_select(0, at); }), want);
  EXPECT_EQ(gradient([&](const Tensor& x) { return x.index({at}); }), want);
  EXPECT_EQ(gradient([&](const Tensor& x) { return x.take(at.reshape({2, n / 2})).reshape({n}); }),
            want);
  index[5] = 0;  // no negative numbers in an embedding
  want[size_t(rows - 2)] -= scale[5];
  want[0] += scale[5];
  EXPECT_EQ(gradient([&](const Tensor& x) {
              return Tensor::embedding(x.reshape({rows, 1}), ints(index, {n / 4, 4})).reshape({n});
            }),
            want);
}

// What GPUs combine in any order, by atomics; others in order as ever.
class AnyOrder : public Scatter {
 protected:
  AnyOrder() { use_deterministic_algorithms(false); }
  ~AnyOrder() override { use_deterministic_algorithms(true); }
  bool has_atomics() const {
    const Target& t = engine::Device::get(GetParam())->target();
    return t.has_local && t.features.atomics;
  }
  // Whether one kernel adds to memory that is there: else it would be a loop in order.
  size_t kernels_of(Tensor& x) const {
    const uint64_t before = engine::counters().kernels;
    x.realize();
    return engine::counters().kernels - before;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, AnyOrder, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

TEST_P(AnyOrder, CombinesAllThatComesToAPlace) {
  EXPECT_FALSE(are_deterministic_algorithms_enabled());
  const int64_t n = 5000, places = 1500;
  Ints index = this->places(size_t(n), places);
  for (size_t i = 0; i < 700; i++) index[i] = 3;  // at one place, more than a workgroup
  index[900] = -1;  // the last one
  for (const DType t : {DType::F32, DType::I32, DType::U32, DType::F16, DType::I16, DType::I64}) {
    if (!test::computes(GetParam(), t)) continue;
    Floats value = whole(size_t(n)), own = whole(size_t(places));
    if (t == DType::U32)
      for (float* v = value.data(); v != value.data() + n; v++) *v = std::abs(*v);
    if (t == DType::U32)
      for (float& v : own) v = std::abs(v);
    const Tensor x = floats(own, {places}).cast(t), v = floats(value, {n}).cast(t);
    const auto want = [&](auto f) {
      Floats out = own;
      for (size_t i = 0; i < index.size(); i++) {
        float& y = out[size_t(index[i] < 0 ? index[i] + places : index[i])];
        y = f(y, value[i]);
      }
      return out;
    };
    const auto values = [](const Tensor& y) { return y.cast(DType::F32).to_vector<float>(); };
    const Tensor at = ints(index, {n});
    EXPECT_EQ(values(x.scatter_add(0, at, v)), want(sum_of)) << name(t);
    EXPECT_EQ(values(x.scatter_reduce(0, at, v, "amax")), want(largest_of)) << name(t);
    EXPECT_EQ(values(x.scatter_reduce(0, at, v, "amin")), want(least_of)) << name(t);
    Tensor memory = (x * 1).realize();
    memory.scatter_add_(0, at, v);
    EXPECT_EQ(values(memory), want(sum_of)) << name(t);
  }
}

// A loop that neither place nor value looks at counts all the same.
TEST_P(AnyOrder, CountsWhatIsTheSame) {
  const int64_t n = 300, places = 40, beside = 30;
  const Tensor x = Tensor::ones({places, beside}, on()).realize();
  const Tensor one = ints({7}, {1}).realize(), two = floats({2}, {1}).realize();
  Floats want(size_t(places * beside), 1.0f);
  for (int64_t i = 0; i < beside; i++) want[size_t(7 * beside + i)] += 2.0f * float(n);
  const Tensor value = two.reshape({1, 1}).expand({n, beside});
  EXPECT_EQ(x.index_add(0, one.expand({n}), value).to_vector<float>(), want);
  EXPECT_EQ(x.index_add(0, Tensor::full({n}, 7, on(DType::I32)), value).to_vector<float>(), want);
  const Floats most = x.index_reduce(0, one.expand({n}), value, "amax").to_vector<float>();
  EXPECT_EQ(most[size_t(7 * beside)], 2.0f);
  EXPECT_EQ(most[0], 1.0f);
}

TEST_P(AnyOrder, NotANumberStays) {
  const int64_t places = 1200;
  Floats own(size_t(places), 0.0f);
  own[1] = NAN, own[2] = -INFINITY, own[3] = -0.0f;
  const Tensor x = floats(own, {places}), at = ints({0, 1, 2, 3, 4, 4}, {6});
  const Tensor v = floats({NAN, 5, -7, 0, INFINITY, -INFINITY}, {6});
  const Floats most = x.scatter_reduce(0, at, v, "amax").to_vector<float>();
  EXPECT_TRUE(std::isnan(most[0]) && std::isnan(most[1]));
  EXPECT_EQ(most[2], -7.0f);
  EXPECT_EQ(most[4], INFINITY);
  const Floats sum = x.scatter_add(0, at, v).to_vector<float>();
  EXPECT_TRUE(std::isnan(sum[0]) && std::isnan(sum[1]) && std::isnan(sum[4]));
  EXPECT_EQ(sum[2], -INFINITY);
}

// Gradients of what is picked are stored by index where sums were walked before.
TEST_P(AnyOrder, GradientsOfWhatIsPicked) {
  const int64_t rows = 300, beside = 24, n = 400;
  const Tensor at = ints(places(size_t(n), rows), {n});
  const Floats values = whole(size_t(rows * beside)), scale = whole(size_t(n * beside));
  const auto gradient = [&] {
    const Tensor w = floats(values, {rows, beside}).realize();
    Tensor g = (Tensor::embedding(w, at) * floats(scale, {n, beside})).sum().gradient({w})[0];
    return g.to_vector<float>();
  };
  const Floats any = gradient();
  use_deterministic_algorithms(true);
  EXPECT_EQ(any, gradient());
}

TEST_P(AnyOrder, IsOneKernelOverAllOfALongIndex) {
  const int64_t n = 140'000, places = 5'000;
  const Tensor at = ints(this->places(size_t(n), places), {n}).realize();
  const Floats value = whole(size_t(n));
  const Tensor v = floats(value, {n}).realize();
  Tensor x = Tensor::ones({places}, on());
  x.realize();
  x.index_add_(0, at, v);
  const size_t kernels = kernels_of(x);
  EXPECT_TRUE(!has_atomics() || kernels == 1) << kernels;
  use_deterministic_algorithms(true);
  Tensor y = Tensor::ones({places}, on());
  y.realize();
  y.index_add_(0, at, v);
  EXPECT_TRUE(!has_atomics() || kernels_of(y) > 1);
  EXPECT_EQ(x.to_vector<float>(), y.to_vector<float>());
}

// Recorded as it was decided, and added once by each replay.
TEST_P(AnyOrder, Replays) {
  const int64_t n = 3000, places = 1100;
  const Tensor at = ints(this->places(size_t(n), places), {n}).realize();
  Tensor x = Tensor::zeros({places}, on());
  x.realize();
  Jit add([&](const std::vector<Tensor>& in) {
    x.index_add_(0, in[0], Tensor::ones({n}, on()));
    return std::vector<Tensor>{x};
  });
  for (int i = 0; i < 5; i++) add({at});
  Floats want(size_t(places), 0.0f);
  for (const int32_t i : at.to_vector<int32_t>()) want[size_t(i)] += 5;
  EXPECT_EQ(x.to_vector<float>(), want);
}

// Of so long an index GPUs sort, and others walk.
TEST_P(Scatter, LongIndices) {
  Target gpu;
  gpu.has_local = true;
  gpu.cores = 132;
  gpu.subgroup_size = 32;
  EXPECT_FALSE(detail::is_faster_sorted(gpu, 100'000'000, 1000));
  EXPECT_FALSE(detail::is_faster_sorted(gpu, 10'000, 10'000));
  EXPECT_TRUE(detail::is_faster_sorted(gpu, 10'000'000, 1'000'000));
  EXPECT_TRUE(detail::is_faster_sorted(gpu, 1'000'000, 100'000, 64));
  EXPECT_FALSE(detail::is_faster_sorted(gpu, 4'096, 50'257, 768));
  EXPECT_FALSE(detail::is_faster_sorted(Target(), 10'000'000, 1'000'000));
  const int64_t n = 140'000, places = 5'000;
  const Target& own = engine::Device::get(GetParam())->target();
  ASSERT_EQ(detail::is_faster_sorted(own, n, places), own.has_local);
  const Ints index = this->places(size_t(n), places);
  const Floats value = whole(size_t(n));
  Floats want(size_t(places), 1.0f);
  for (size_t i = 0; i < value.size(); i++) want[size_t(index[i])] += value[i];
  Tensor x = Tensor::ones({places}, on());
  x.realize();
  x.index_add_(0, ints(index, {n}), floats(value, {n}));
  EXPECT_EQ(x.to_vector<float>(), want);
}

TEST_P(Scatter, TheSameBitsOnEveryRun) {
  const size_t n = 3000;
  Floats v(n);
  for (float& f : v) f = float(random_() % 100003) / 977.0f;
  const Tensor tv = floats(v, {int64_t(n)}).realize(),
               ti = ints(places(n, 3), {int64_t(n)}).realize();
  const Tensor x = Tensor::zeros({50}, on()).realize();
  const Floats first = x.index_add(0, ti, tv).to_vector<float>();
  for (int run = 0; run < 3; run++)
    EXPECT_EQ(x.index_add(0, ti, tv).to_vector<float>(), first);
}

// Rows cost the same however large what they are written to is.
TEST_P(Scatter, InPlaceStoresTheRowsAlone) {
  std::vector<uint64_t> bytes;
  for (const int64_t rows : {int64_t(1) << 10, int64_t(1) << 14}) {
    Tensor x = Tensor::zeros({rows, 8}, on()).realize();
    const Tensor at = ints({3, 5, 3}, {3}).realize(), v = Tensor::ones({3, 8}, on()).realize();
    const uint64_t kernels = engine::counters().kernels, before = engine::counters().bytes;
    x.index_add_(0, at, v);
    x.realize();
    bytes.push_back(engine::counters().bytes - before);
    EXPECT_LE(engine::counters().kernels - kernels, 2u);  // positions, and what comes to them
    x.index_put_({ints({-1}, {1})}, Tensor::full({1, 8}, 7, on()));
    EXPECT_EQ(x.sum().item(), 3 * 8 + 7 * 8);
    EXPECT_EQ(x.select(0, 3).to_vector<float>(), Floats(8, 2.0f));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

// A product reads rows where they lie, by their index: there is no copy of them.
TEST_P(Scatter, RowsThatAreMultipliedAreNotCopied) {
  Tensor memory = Tensor::zeros({24, 32}, {DType::F16, GetParam()}).realize();
  memory.index_put_({ints({3, 20, 7}, {3})}, Tensor::arange(0, 96, 1, on()).reshape({3, 32}) / 64);
  memory.realize();
  const Tensor at = ints({7, 3, 20, 20, 3, 0, 7, 3}, {2, 4}).realize();
  const Tensor x = Tensor::arange(0, 192, 1, on()).reshape({2, 3, 32}).sin().contiguous().realize();
  const Tensor copied = Tensor::embedding(memory, at).contiguous().realize();
  const auto product = [&](const Tensor& rows) {
    return x.matmul(rows.to(DType::F32).transpose(1, 2));
  };
  const uint64_t before = engine::counters().kernels;
  const Tensor got = product(Tensor::embedding(memory, at)).realize();
  EXPECT_EQ(engine::counters().kernels - before, 1u);
  const Floats a = got.to_vector<float>(), b = product(copied).to_vector<float>();
  for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-4f) << i;
}

// Nor is a packed table decoded as a whole for a few of its rows, also where it is multiplied by.
TEST_P(Scatter, RowsOfAPackedTableAreDecodedAlone) {
  const int64_t rows = 512, width = 64, group = 32;
  const Tensor bytes = Tensor::arange(0, rows * width, 1, on()).remainder(251).to(DType::U8)
                           .reshape({rows, width}).contiguous().realize();
  const Tensor scales = Tensor::arange(1, rows * width / group + 1, 1, on())
                            .reshape({rows, width / group, 1}).reciprocal().contiguous().realize();
  const Tensor table = ((bytes.to(DType::F32).reshape({rows, width / group, group}) - 128) * scales)
                           .reshape({rows, width});
  const Tensor at = ints({7, 500, 0, 7, 9, 1, 2, 3}, {8}).realize();
  const uint64_t before = engine::counters().bytes;
  const Tensor picked = Tensor::embedding(table, at).realize();
  EXPECT_LT(engine::counters().bytes - before, uint64_t(rows * width) * sizeof(float));
  const Tensor both = Tensor::embedding(table, at).contiguous().linear(table).realize();
  const Tensor decoded = table.contiguous().realize();
  const Floats a = both.to_vector<float>(),
               b = decoded.index_select(0, at).linear(decoded).to_vector<float>();
  for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-3f * (1 + std::abs(b[i])));
  EXPECT_EQ(picked.to_vector<float>(), decoded.index_select(0, at).to_vector<float>());
}

TEST_P(Scatter, FunctionsInPlaceAreThoseWithout) {
  const Tensor at = ints({2, 0, 2}, {3}), v = floats({5, 6, 7}, {3});
  const auto same = [&](const Tensor& want, const std::function<void(Tensor&)>& write) {
    Tensor memory = floats({1, 2, 3, 4}, {4}), lazy = memory * 1;
    write(memory);
    write(lazy);
    EXPECT_EQ(memory.to_vector<float>(), want.to_vector<float>());
    EXPECT_EQ(lazy.to_vector<float>(), want.to_vector<float>());
  };
  const Tensor x = floats({1, 2, 3, 4}, {4});
  same(x.scatter(0, at, v), [&](Tensor& y) { y.scatter_(0, at, v); });
  same(x.scatter(0, at, 9), [&](Tensor& y) { y.scatter_(0, at, 9); });
  same(x.scatter_add(0, at, v), [&](Tensor& y) { y.scatter_add_(0, at, v); });
  same(x.scatter_reduce(0, at, v, "mean", false),
       [&](Tensor& y) { y.scatter_reduce_(0, at, v, "mean", false); });
  same(x.index_add(0, at, v, -1), [&](Tensor& y) { y.index_add_(0, at, v, -1); });
  same(x.index_copy(0, at, v), [&](Tensor& y) { y.index_copy_(0, at, v); });
  same(x.index_fill(0, at, 9), [&](Tensor& y) { y.index_fill_(0, at, 9); });
  same(x.index_reduce(0, at, v, "prod"), [&](Tensor& y) { y.index_reduce_(0, at, v, "prod"); });
  same(x.put(at, v, true), [&](Tensor& y) { y.put_(at, v, true); });
  same(x.index_put({at}, v, true), [&](Tensor& y) { y.index_put_({at}, v, true); });
  same(x.masked_scatter(x > 2, v), [&](Tensor& y) { y.masked_scatter_(x > 2, v); });
  const Tensor table = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(table.take_along_dim(ints({2, 0}, {1, 2}), 1).to_vector<float>(),
            (Floats{3, 1, 6, 4}));
  EXPECT_EQ(table.take_along_dim(ints({-1, 1}, {2})).to_vector<float>(), (Floats{6, 2}));
}

TEST_P(Scatter, OthersKeepWhatTheyRead) {
  Tensor x = floats({1, 2, 3, 4}, {4});
  const Tensor before = x * 10, same = x.reshape({2, 2});
  x.scatter_add_(0, ints({1, 1}, {2}), x.slice(0, 2));
  const Tensor between = x.sum();
  x.scatter_(0, ints({0}, {1}), between.reshape({1}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{17, 9, 3, 4}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{10, 20, 30, 40}));
  EXPECT_EQ(same.to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(between.item(), 17);
  Tensor turned = floats({1, 2, 3, 4}, {4});
  turned.scatter_(0, ints({0, 1, 2, 3}, {4}), turned.flip());
  EXPECT_EQ(turned.to_vector<float>(), (Floats{4, 3, 2, 1}));
}

// Of elements that come to one place the last is left, and it alone has a gradient.
TEST_P(Scatter, GradientsOfWhatIsReplaced) {
  Tensor x = floats({1, 2, 3}, {3}), v = floats({4, 5, 6}, {3});
  x.set_requires_grad();
  v.set_requires_grad();
  (x.index_copy(0, ints({1, 0, 1}, {3}), v) * floats({1, 10, 100}, {3})).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 0, 100}));
  EXPECT_EQ(v.grad().to_vector<float>(), (Floats{0, 1, 10}));
}

// Linear in what is written: a sum over all places and all positions would be 10^10 terms.
TEST(ScatterOnTheCpu, GradientsOfWhatIsPickedAreStoredByIndex) {
  const int64_t places_count = 100000, n = 100000;
  std::mt19937 random(3);
  Ints at(static_cast<size_t>(n));
  for (int32_t& i : at) i = int32_t(random() % places_count);
  Tensor w = Tensor::zeros({places_count, 1}, {.device = "CPU"}).realize().set_requires_grad();
  Floats want(size_t(places_count), 0.0f);
  for (int32_t i : at) want[size_t(i)] += 1;
  for (const DType t : {DType::I32, DType::I64}) {
    const Tensor index = Tensor::from(at, {n}, {.device = "CPU"}).cast(t).realize();
    Tensor::embedding(w, index).sum().backward();
    EXPECT_EQ(w.grad().to_vector<float>(), want);
    w.set_grad({});
    w.index_select(0, index).sum().backward();
    EXPECT_EQ(w.grad().to_vector<float>(), want);
    w.set_grad({});
  }
}

// A replayed step: rows of a table move towards a target, each by its own gradient.
TEST_P(Scatter, AJitTrainsAnEmbedding) {
  Tensor table = Tensor::zeros({300, 4}, on()).realize();
  Jit step([&](const std::vector<Tensor>& in) {
    Tensor w = table.detach().set_requires_grad();
    const Tensor loss = (Tensor::embedding(w, in[0]) - in[1]).square().sum() * 0.5;
    const Tensor g = loss.gradient({w}).at(0);
    table.assign(table - g * 0.5);
    return std::vector<Tensor>{loss};
  });
  std::vector<Floats> want(300, Floats(4, 0.0f));
  for (int32_t round = 0; round < 5; round++) {
    const Ints at = places(80, 300);
    const Tensor goal = Tensor::full({80, 4}, round, on()).realize();
    step({ints(at, {80}), goal});
    std::vector<Floats> next = want;
    for (int32_t i : at) {
      for (size_t c = 0; c < 4; c++)
        next[size_t(i)][c] -= 0.5f * (want[size_t(i)][c] - float(round));
    }
    want = next;
  }
  EXPECT_GE(step.stats().replays, 3u);
  const Floats got = table.to_vector<float>();
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], want[i / 4][i % 4], 1e-4) << i;
}

TEST_P(Scatter, AJitWritesByIndexInPlace) {
  Tensor state = Tensor::zeros({6, 2}, on()).realize();
  Jit step([&](const std::vector<Tensor>& in) {
    state.index_add_(0, in[0], in[1]);
    return std::vector<Tensor>{state.sum()};
  });
  Floats want(12, 0.0f);
  for (int32_t round = 0; round < 5; round++) {
    const Ints at{round, 5, round};
    const Tensor v = Tensor::full({3, 2}, round + 1, on()).realize();
    step({ints(at, {3}), v});
    for (int32_t i : at) {
      for (size_t c = 0; c < 2; c++) want[size_t(2 * i) + c] += float(round + 1);
    }
    EXPECT_EQ(state.to_vector<float>(), want) << round;
  }
}

// As many rows as an argument has.
TEST_P(Scatter, AJitAddsAsManyRowsAsThereAre) {
  Tensor state = Tensor::zeros({8, 3}, on()).realize();
  Jit step(
      [&](const std::vector<Tensor>& in) {
        state.index_add_(0, in[0], in[1].reshape({1, 3}).expand({in[0].size(0), 3}));
        return std::vector<Tensor>{state.sum()};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = 1, .max = 20}}});
  Floats want(24, 0.0f);
  for (int64_t round = 0; round < 6; round++) {
    const Ints at = places(size_t(1 + round * 3), 8);
    step({ints(at, {int64_t(at.size())}), floats({1, 2, float(round)}, {3})});
    for (int32_t i : at) {
      want[size_t(3 * i)] += 1;
      want[size_t(3 * i + 1)] += 2;
      want[size_t(3 * i + 2)] += float(round);
    }
    EXPECT_EQ(state.to_vector<float>(), want) << round;
  }
  EXPECT_GE(step.stats().replays, 4u);
}

}  // namespace
}  // namespace tuff::test

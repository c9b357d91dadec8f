// index_put() and masks on every device, against elements that are put one by one.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include <tuff/jit.h>
#include <tuff/tensor.h>
#include "engine/stats.h"
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;

class IndexAssignment : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions options(DType t = DType::F32) const { return {t, GetParam()}; }
  Tensor ints(const Ints& v, const Sizes& sizes) const { return Tensor::from(v, sizes, options()); }
  // 0, 1, 2, ... as memory.
  Tensor counted(const Sizes& sizes) const {
    int64_t n = 1;
    for (const Size& s : sizes) n *= int64_t(s);
    Floats v(static_cast<size_t>(n));
    std::iota(v.begin(), v.end(), 0.0f);
    return Tensor::from(v, sizes, options());
  }
  // What indices pick is found by picking from the numbers of the elements.
  void check(const Sizes& sizes, const std::vector<Index>& indices,
             const Sizes& value_sizes) const {
    const Tensor x = counted(sizes), places = x.index(indices), value = -1 - counted(value_sizes);
    const Floats at = places.to_vector<float>(),
                 put = value.expand(places.sizes()).to_vector<float>();
    Floats want = x.to_vector<float>();
    for (size_t i = 0; i < at.size(); i++) want[size_t(at[i])] = put[i];
    EXPECT_EQ(x.index_put(indices, value).to_vector<float>(), want);
    Tensor memory = counted(sizes), lazy = memory * 1;
    memory.index_put_(indices, value);
    lazy.index_put_(indices, value);
    EXPECT_EQ(memory.to_vector<float>(), want);
    EXPECT_EQ(lazy.to_vector<float>(), want);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, IndexAssignment, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

TEST_P(IndexAssignment, NumbersSlicesAndNewAxes) {
  check({4, 5}, {2, -1}, {});
  check({4, 5}, {Slice{1, 3}}, {2, 5});
  check({4, 5}, {Slice{}, Slice{{}, {}, -2}}, {1, 3});
  check({4, 5}, {Slice{3, 0, -2}, Slice{1, {}, 3}}, {2, 2});
  check({2, 3, 4}, {Ellipsis, None, Slice{-3, -1}}, {3, 1, 2});
  check({2, 3, 4}, {1, Ellipsis}, {4});
  check({3}, {Slice{2, 1}}, {1});
}

TEST_P(IndexAssignment, StepsBeyondTheAxisTakeOneElement) {
  for (const int64_t step : {int64_t(5), int64_t(1) << 40, INT64_MAX}) {
    check({4, 5}, {Slice{}, Slice{{}, {}, step}}, {4, 1});
    check({4, 5}, {Slice{1, 3, step}}, {1, 5});
    EXPECT_EQ(counted({5}).slice(0, 2, {}, step).to_vector<float>(), (Floats{2}));
  }
  for (const int64_t step : {int64_t(-5), -(int64_t(1) << 40), INT64_MIN}) {
    check({4, 5}, {Slice{}, Slice{{}, {}, step}}, {4, 1});
    EXPECT_EQ(counted({5}).slice(0, {}, {}, step).to_vector<float>(), (Floats{4}));
  }
}

TEST_P(IndexAssignment, IntegerTensorsSideBySideAndApart) {
  check({4, 5}, {ints({3, 0, -2}, {3})}, {3, 5});
  check({4, 5}, {Slice{}, ints({1, 4}, {2})}, {4, 1});
  check({4, 5}, {ints({3, 0, 1, 2}, {2, 2}), ints({1, 4}, {2})}, {2, 1});
  check({3, 2, 3, 4}, {ints({2, 1, -3}, {3}), Slice{}, ints({2, 1, 0}, {3})}, {3, 2, 4});
  check({3, 2, 4}, {ints({1}, {1}), None, Slice{}, ints({3, 0}, {2})}, {2, 1, 2});
  check({4, 5}, {Slice{1, {}, 2}, ints({}, {0})}, {});
}

TEST_P(IndexAssignment, TheLastOfEqualPositionsCounts) {
  check({4}, {ints({1, 1, 3, 1}, {4})}, {4});
}

TEST_P(IndexAssignment, Masks) {
  const Tensor x = counted({3, 4}), odd = x.index({0}) % 2 == 1, large = x > 6;
  EXPECT_EQ(x.index({large}).to_vector<float>(), (Floats{7, 8, 9, 10, 11}));
  EXPECT_EQ(x.index({Slice{}, odd}).to_vector<float>(), (Floats{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(large.nonzero().to_vector<int32_t>(), (Ints{1, 3, 2, 0, 2, 1, 2, 2, 2, 3}));
  check({3, 4}, {large}, {});
  check({3, 4}, {large}, {5});
  check({3, 4}, {Slice{}, odd}, {3, 1});
  check({3, 4}, {Slice{}, odd}, {2});
  check({2, 3, 4}, {1, large}, {1});
  check({3, 4}, {x < 0}, {});
}

TEST_P(IndexAssignment, WritesTheMemoryThatOthersRead) {
  Tensor x = counted({4}), same = x;
  const Tensor before = x + 0;
  x.index_put_({1}, 50);
  x.index_put_({Slice{2, {}}}, -1);
  EXPECT_EQ(same.to_vector<float>(), (Floats{0, 50, -1, -1}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{0, 1, 2, 3}));
}

// A row costs the same however large what it is written to is.
TEST_P(IndexAssignment, StoresTheRowAlone) {
  std::vector<uint64_t> bytes;
  for (const int64_t rows : {int64_t(1) << 10, int64_t(1) << 16}) {
    Tensor cache = Tensor::zeros({rows, 64}, options()).realize();
    const Tensor row = counted({1, 64});
    const auto& counted_bytes = engine::counters().bytes;
    const uint64_t kernels = engine::counters().kernels, before = counted_bytes;
    cache.index_put_({Slice{7, 8}}, row);
    cache.realize();
    bytes.push_back(counted_bytes - before);
    EXPECT_EQ(engine::counters().kernels - kernels, 1u);
    EXPECT_EQ(cache.index({7}).to_vector<float>(), row.to_vector<float>());
    EXPECT_EQ(cache.sum().item(), 63 * 32);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_LE(bytes[0], 4 * 64 * sizeof(float));  // with what TUFF_CHECK_OOB reports
}

TEST_P(IndexAssignment, PartsOfTheSameMemoryOverlap) {
  for (const int64_t shift : {1, -1, 3}) {
    Tensor x = counted({12, 4});
    Floats want = x.to_vector<float>(), old = want;
    for (int64_t i = 0; i < 6 * 4; i++)
      want[size_t(3 * 4 + i)] = old[size_t((3 + shift) * 4 + i)] * 2;
    x.index_put_({Slice{3, 9}}, x.index({Slice{3 + shift, 9 + shift}}) * 2);
    EXPECT_EQ(x.to_vector<float>(), want) << shift;
  }
  Tensor x = counted({6});
  x.index_put_({Slice{}}, x.flip());
  x.index_put_({Slice{0, 3}}, x.index({Slice{0, 3}}) + x.sum());
  EXPECT_EQ(x.to_vector<float>(), (Floats{20, 19, 18, 2, 1, 0}));
}

TEST_P(IndexAssignment, VersionsAreReadAsTheyWere) {
  Tensor x = counted({4, 2});
  const Tensor before = x.sum({0});
  x.index_put_({0}, 10);
  const Tensor between = x.sum({0});
  x.index_put_({Slice{2, 4}, 1}, x.index({Slice{0, 2}, 1}) - 100);
  const Tensor mixed = between.unsqueeze(0) + x;
  x.index_put_({3}, mixed.index({1}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{10, 10, 2, 3, 4, -90, 24, 28}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{12, 16}));
  EXPECT_EQ(between.to_vector<float>(), (Floats{22, 25}));
}

TEST_P(IndexAssignment, APartMayComeFromAnotherDevice) {
  Tensor x = counted({4, 2});
  const Tensor row = Tensor::from({7, 8}, {2}).realize();
  x.index_put_({2}, row.to(GetParam()));
  x.index_put_({0}, (row * 2).to(GetParam()));
  EXPECT_EQ(x.to_vector<float>(), (Floats{14, 16, 2, 3, 7, 8, 6, 7}));
}

TEST_P(IndexAssignment, APartThatWasTakenKeepsItsValues) {
  Tensor x = counted({4, 2}), row = x[1], all = x.reshape({8});
  row.assign(row * 0);
  x.index_put_({2}, -1);
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 0, 0, -1, -1, 6, 7}));
  EXPECT_EQ(row.to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(all.to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Positions that vary: one graph for all of them.
TEST_P(IndexAssignment, AJitWritesWhereItsVariableSays) {
  constexpr int64_t kRows = 100;
  Tensor cache = Tensor::zeros({2, kRows, 3}, options()).realize();
  Jit step(
      [&](const std::vector<Tensor>& in) {
        const Size seen = in[0].size(0);
        cache.index_put_({Slice{}, Slice{seen - 1, seen}}, in[1].reshape({2, 1, 3}));
        return std::vector<Tensor>{cache.index({Slice{}, Slice{0, seen}}).sum({1})};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = 1, .max = kRows}}});
  Floats want(2 * kRows * 3), sums(6);
  for (int64_t i = 0; i < kRows; i++) {
    const int64_t at = (i * 37) % kRows;  // in any order
    Tensor row = counted({6}) + double(i);
    const Floats got = step({counted({at + 1}), row.realize()}).at(0).to_vector<float>();
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t k = 0; k < 6; k++) {
      want[size_t(k / 3 * kRows * 3 + at * 3 + k % 3)] = float(k + i);
      for (int64_t t = 0; t <= at; t++)
        sums[size_t(k)] += want[size_t(k / 3 * kRows * 3 + t * 3 + k % 3)];
    }
    ASSERT_EQ(got, sums) << i;
  }
  EXPECT_EQ(step.stats().replays, uint64_t(kRows - 2));
  EXPECT_EQ(cache.to_vector<float>(), want);
}

// What a replay does not write is what was there, whoever wrote it.
TEST_P(IndexAssignment, AJitKeepsWhatStandsAroundAPart) {
  Tensor state = Tensor::zeros({4}, options()).realize();
  Jit step([&](const std::vector<Tensor>& in) {
    Tensor own = in[0] * 1;
    state.index_put_({Slice{1, 2}}, 5);
    return std::vector<Tensor>{state + own};
  });
  for (int32_t i = 0; i < 5; i++) {
    state.copy_from(Floats(4, float(i)).data(), 4 * sizeof(float));
    const Floats got = step({counted({4})}).at(0).to_vector<float>();
    EXPECT_EQ(got, (Floats{float(i), 6, float(i) + 2, float(i) + 3}));
  }
}

// The rest still is what the argument made it.
TEST_P(IndexAssignment, AJitDoesNotReadAfterAPartWhatDependsOnItsArgument) {
  Jit step([&](const std::vector<Tensor>& in) {
    Tensor own = Tensor::zeros({2}, options()).realize();
    own.index_put_({Slice{0, 1}}, in[0]);
    own.realize();
    own.index_put_({Slice{1, 2}}, 5);
    own.realize();
    EXPECT_EQ(own.to_vector<float>(), (Floats{7, 5}));
    return std::vector<Tensor>{own * 2};
  });
  const Tensor x = Tensor::full({1}, 7, options()).realize();
  step({x});
  EXPECT_THROW(step({x}), InvalidArgument);
}

TEST_P(IndexAssignment, AJitWritesAPartOfItsArgument) {
  Jit step([&](const std::vector<Tensor>& in) {
    Tensor x = in[0];
    x.index_put_({Slice{1, 3}}, in[1]);
    return std::vector<Tensor>{x * 2};
  });
  for (int32_t i = 0; i < 5; i++) {
    Tensor x = counted({4});
    const Tensor part = Tensor::full({2}, i, options()).realize();
    EXPECT_EQ(step({x, part}).at(0).to_vector<float>(),
              (Floats{0, 2.0f * float(i), 2.0f * float(i), 6}));
    EXPECT_EQ(x.to_vector<float>(), (Floats{0, float(i), float(i), 3}));
  }
}

TEST_P(IndexAssignment, IsCapturedByAJit) {
  Tensor cache = Tensor::zeros({3, 2}, options()).realize();
  Jit step([&](const std::vector<Tensor>& in) {
    cache.index_put_({in[1]}, in[0]);
    return std::vector<Tensor>{cache * 2};
  });
  for (int32_t i = 0; i < 5; i++) {
    const Tensor x = Tensor::full({1, 2}, i + 1, options()).realize();
    const Tensor out = step({x, ints({i % 3}, {1})}).at(0);
    EXPECT_EQ(out.index({i % 3}).to_vector<float>(), Floats(2, 2.0f * float(i + 1)));
  }
  EXPECT_EQ(cache.to_vector<float>(), (Floats{4, 4, 5, 5, 3, 3}));
  Jit picks([](const std::vector<Tensor>& in) { return std::vector{in[0].index({in[0] > 1})}; });
  const Tensor x = counted({3});
  picks({x});
  EXPECT_THROW(picks({x}), InvalidArgument);
}

TEST_P(IndexAssignment, GradientsGoToWhatIsLeftAndToWhatWasPut) {
  Tensor x = counted({4}).set_requires_grad(), v = counted({2}).set_requires_grad();
  const Tensor weights = Tensor::from({1, 10, 100, 1000}, {4}, options());
  for (const std::vector<Index>& at :
       {std::vector<Index>{Slice{0, 4, 2}}, {ints({0, 2}, {2})}, {x % 2 == 0}}) {
    x.set_grad({});
    v.set_grad({});
    Tensor y = x * 2;
    y.index_put_(at, v * 3);
    (y * weights).sum().backward();
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 20, 0, 2000}));
    EXPECT_EQ(v.grad().to_vector<float>(), (Floats{3, 300}));
  }
}

TEST(NoGrad, DetachesWhatIsComputed) {
  Tensor x = Tensor::from({1, 2}, {2}, {.device = "CPU"}).set_requires_grad();
  Tensor y;
  EXPECT_TRUE(is_grad_enabled());
  {
    const NoGradGuard outer;
    {
      const NoGradGuard inner;
      y = x * 3;
    }
    EXPECT_FALSE(is_grad_enabled());
    EXPECT_EQ(x.reshape({2, 1}).data_ptr(), x.data_ptr());
  }
  EXPECT_TRUE(is_grad_enabled());
  (x * y).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 6}));
}

TEST(NoGrad, LetsParametersBeWritten) {
  Tensor w = Tensor::from({1, 2}, {2}, {.device = "CPU"}).set_requires_grad();
  EXPECT_THROW(w.index_put_({0}, 5), InvalidArgument);
  {
    const NoGradGuard guard;
    w.index_put_({0}, 5);
    w.assign(w * 2);
  }
  EXPECT_EQ(w.to_vector<float>(), (Floats{10, 4}));
  w.square().sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{20, 8}));
}

TEST(Detach, IsOfTheSameMemory) {
  Tensor w = Tensor::from({1, 2}, {2}, {.device = "CPU"}).set_requires_grad();
  Tensor d = w.detach().reshape({2, 1});
  EXPECT_TRUE(d.is_realized());
  EXPECT_EQ(d.data_ptr(), w.data_ptr());
  const Tensor before = w + 0;
  d.assign(d + 1);
  d.realize();
  EXPECT_EQ(w.to_vector<float>(), (Floats{2, 3})) << "is written through what it was taken of";
  EXPECT_EQ(d.to_vector<float>(), (Floats{2, 3}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2}));
}

}  // namespace
}  // namespace tuff::test

// index_put() and masks on every device, against elements that are put one by one.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include <tuff/jit.h>
#include <tuff/tensor.h>
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
  EXPECT_EQ(w.to_vector<float>(), (Floats{1, 2})) << "of the version that w stands for";
  EXPECT_EQ(d.to_vector<float>(), (Floats{2, 3}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2}));
}

}  // namespace
}  // namespace tuff::test

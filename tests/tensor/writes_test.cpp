// Functions in place on every device: memory and what is still to be computed, in a Jit and out of
// it; and that clones are apart.
#include <gtest/gtest.h>

#include <tuff/jit.h>
#include <tuff/tensor.h>
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

class Writes : public testing::TestWithParam<std::string> {
 protected:
  Tensor floats(const Floats& v) const {
    return Tensor::from(v, {int64_t(v.size())}, {.device = GetParam()});
  }
  Tensor ints(const Ints& v) const {
    return Tensor::from(v, {int64_t(v.size())}, {.device = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Writes, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

TEST_P(Writes, OperatorsOnMemoryAndOnWhatIsToBeComputed) {
  const auto written = [&](Tensor x) {
    const Tensor held = x, before = x * 1, y = floats({2, 4, 8});
    x += y;
    x -= 1;
    x *= y;
    x /= 2;
    x %= 7;
    EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2, 3}));
    EXPECT_EQ(y.to_vector<float>(), (Floats{2, 4, 8}));
    return held.to_vector<float>();
  };
  const Floats want = {2, 3, 5};  // (1+2-1)*2/2 % 7, (2+4-1)*4/2 % 7, (3+8-1)*8/2 % 7
  EXPECT_EQ(written(floats({1, 2, 3})), want);
  EXPECT_EQ(written(floats({0, 1, 2}) + 1), want);

  Tensor n = ints({12, 10, 7});
  n &= 14;
  n |= ints({1, 0, 1});
  n ^= 3;
  n <<= 2;
  n >>= 1;
  EXPECT_EQ(n.to_vector<int32_t>(), (Ints{28, 18, 8}));
}

TEST_P(Writes, Functions) {
  Tensor x = floats({1, -2, 3});
  EXPECT_EQ(&x.add_(floats({10})), &x);
  x.sub_(1).mul_(2).div_(4);
  EXPECT_EQ(x.to_vector<float>(), (Floats{5, 3.5, 6}));
  EXPECT_EQ(x.clamp_(4, 5.5).to_vector<float>(), (Floats{5, 4, 5.5}));
  EXPECT_EQ(x.masked_fill_(x == 4, -1).to_vector<float>(), (Floats{5, -1, 5.5}));
  EXPECT_EQ(x.copy_(ints({7})).to_vector<float>(), (Floats{7, 7, 7}));
  EXPECT_EQ(x.copy_(Tensor::from({1, 2, 3}, {3}, {.device = "CPU"})).to_vector<float>(),
            (Floats{1, 2, 3}));
  EXPECT_EQ(x.fill_(2.5).to_vector<float>(), (Floats{2.5, 2.5, 2.5}));
  EXPECT_EQ(x.zero_().to_vector<float>(), (Floats{0, 0, 0}));
  Tensor n = ints({1, 2});
  EXPECT_EQ(n.fill_(3).dtype(), DType::I32);
}

TEST_P(Writes, WhatWasWrittenFromStaysApart) {
  const Tensor y = floats({1, 2}).realize();
  Tensor x = Tensor::zeros({2}, {.device = GetParam()});  // no memory yet: 0 + y is y
  x += y;
  x += 1;
  x.realize();
  x.mul_(10).realize();
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{20, 30}));
  Tensor lazy = y * 2 + 1, other = Tensor::zeros({2}, {.device = GetParam()});
  other.copy_(lazy);
  Tensor::realize({lazy, other});
  other.zero_().realize();
  EXPECT_EQ(lazy.to_vector<float>(), (Floats{3, 5}));
}

TEST_P(Writes, ClonesAreApartAndHaveGradients) {
  Tensor x = floats({1, 2});
  x.realize().set_requires_grad();
  const Tensor y = x.clone();
  (y * floats({3, 5})).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 5}));
  Tensor kept = floats({1, 2}).realize(), lazy = floats({1, 2}).contiguous();
  Tensor copies[] = {kept.clone(), kept.clone(), lazy.clone(), lazy};
  Tensor::realize({copies[0], copies[1], copies[2], copies[3]});
  kept.add_(10).realize();
  copies[1].add_(20).realize();
  copies[3].add_(30).realize();
  EXPECT_EQ(copies[0].to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(copies[1].to_vector<float>(), (Floats{21, 22}));
  EXPECT_EQ(copies[2].to_vector<float>(), (Floats{1, 2}));
}

TEST_P(Writes, GradientsOfWhatBecomesTheResult) {
  const Tensor x = floats({1, 2, 3}).set_requires_grad();
  Tensor y = x * 2;
  y *= x;
  y += 1;
  y.masked_fill_(x > 2, 0);
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{4, 8, 0}));
}

TEST_P(Writes, StateOfAJitIsWrittenByReplays) {
  Tensor count = floats({0}).realize();
  Jit step([&](const std::vector<Tensor>& in) {
    count += in[0];
    Tensor own = in[0] * 2;
    own.add_(count);
    return std::vector<Tensor>{own};
  });
  Floats got;
  for (int i = 1; i <= 5; i++) {
    const Tensor given = floats({float(i)}).realize();
    got.push_back(step({given})[0].to_vector<float>()[0]);
  }
  EXPECT_EQ(got, (Floats{3, 7, 12, 18, 25}));  // 2i + (1 + ... + i)
  EXPECT_EQ(count.to_vector<float>(), Floats{15});
}

TEST_P(Writes, WhatIsRefused) {
  Tensor n = ints({1, 2}), x = floats({1, 2}), leaf = floats({1}).set_requires_grad();
  EXPECT_THROW(n /= 2, InvalidArgument);
  EXPECT_THROW(n += 0.5, InvalidArgument);
  EXPECT_THROW(x += Tensor::zeros({3, 2}, {.device = GetParam()}), ShapeError);
  EXPECT_THROW(x.copy_(Tensor::zeros({3}, {.device = GetParam()})), ShapeError);
  EXPECT_THROW(leaf += 1, InvalidArgument);
  {
    const NoGradGuard guard;
    leaf += 1;
  }
  EXPECT_EQ(leaf.to_vector<float>(), Floats{2});
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2}));
}

}  // namespace
}  // namespace tuff::test

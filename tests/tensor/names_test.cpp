// Functions that are made of others, under PyTorch's names, by exact values on every device; those
// of floats are rows of apps/check/functions_special.cpp.
#include <gtest/gtest.h>

#include <limits>

#include <tuff/tensor.h>
#include "tensor/devices.h"

namespace tuff {
namespace {

using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

class Names : public ::testing::TestWithParam<std::string> {
 protected:
  TensorOptions on(DType t = DType::F32) const { return {.dtype = t, .device = GetParam()}; }
  Tensor ints(const Ints& v, const Sizes& s) const { return Tensor::from(v, s, on()); }
  Tensor floats(const Floats& v, const Sizes& s) const { return Tensor::from(v, s, on()); }
  Tensor counted(const Sizes& s, int64_t n) const {
    return Tensor::arange(0, n, 1, on(DType::I32)).reshape(s);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Names, ::testing::ValuesIn(test::devices()),
                         [](const auto& info) { return test::named_by_device(info); });

std::vector<Ints> values(const std::vector<Tensor>& parts) {
  std::vector<Ints> out;
  for (const Tensor& t : parts) out.push_back(t.to_vector<int32_t>());
  return out;
}

TEST_P(Names, Bits) {
  const Tensor a = ints({6, -1, 5}, {3}), b = ints({3, 8, -2}, {3});
  EXPECT_EQ(a.bitwise_and(b).to_vector<int32_t>(), (Ints{2, 8, 4}));
  EXPECT_EQ(a.bitwise_or(b).to_vector<int32_t>(), (Ints{7, -1, -1}));
  EXPECT_EQ(a.bitwise_xor(b).to_vector<int32_t>(), (Ints{5, -9, -5}));
  EXPECT_EQ(a.bitwise_and(4).to_vector<int32_t>(), (Ints{4, 4, 4}));
}

TEST_P(Names, Numbers) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(floats({-kInf, kInf, 0, NAN}, {4}).isneginf().to_vector<bool>(),
            (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(floats({0.75f, -3}, {2}).ldexp(ints({3, -1}, {2})).to_vector<float>(),
            (Floats{6, -1.5f}));
  EXPECT_EQ(floats({3, 4}, {2}).dist(floats({0, 0}, {2})).to_vector<float>(), Floats{5});
  const Floats powers = Tensor::logspace(0, 3, 4, 2, on()).to_vector<float>();
  for (size_t i = 0; i < 4; i++) EXPECT_NEAR(powers[i], float(1 << i), 1e-5f);
  if (test::computes(GetParam(), DType::F64)) {
    const Tensor p = ints({2, 3}, {2}).float_power(2);
    EXPECT_EQ(p.dtype(), DType::F64);
    EXPECT_NEAR(p.to_vector<double>()[1], 9.0, 1e-12);
  }
}

TEST_P(Names, PartsOfAxes) {
  const Tensor x = counted({2, 4}, 8), cube = counted({1, 2, 4}, 8);
  EXPECT_EQ(values(x.hsplit(2)), (std::vector<Ints>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(values(x.hsplit_at({1})), (std::vector<Ints>{{0, 4}, {1, 2, 3, 5, 6, 7}}));
  EXPECT_EQ(values(x.vsplit(2)), (std::vector<Ints>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(values(x.vsplit_at({1})), (std::vector<Ints>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(values(cube.dsplit(2)), values(x.hsplit(2)));
  EXPECT_EQ(values(cube.dsplit_at({1})), values(x.hsplit_at({1})));
}

TEST_P(Names, Shapes) {
  const Tensor x = counted({2, 3}, 6);
  EXPECT_EQ(x.t().to_vector<int32_t>(), (Ints{0, 3, 1, 4, 2, 5}));
  const std::vector<Tensor> both =
      Tensor::broadcast_tensors({counted({3, 1}, 3), counted({1, 2}, 2)});
  EXPECT_EQ(values(both), (std::vector<Ints>{{0, 0, 1, 1, 2, 2}, {0, 1, 0, 1, 0, 1}}));
  EXPECT_EQ(ints({1, 2}, {2}).diagflat(1).to_vector<int32_t>(),
            (Ints{0, 1, 0, 0, 0, 2, 0, 0, 0}));
}

TEST_P(Names, PlacesAndSelections) {
  const auto at = [](const Tensor& t) { return t.cast(DType::I32).to_vector<int32_t>(); };
  EXPECT_EQ(at(Tensor::tril_indices(2, 3, 0, GetParam())), (Ints{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(at(Tensor::triu_indices(2, 3, 1, GetParam())), (Ints{0, 0, 1, 1, 2, 2}));
  const std::vector<Tensor> places = ints({0, 5, 3}, {3}).unravel_index({2, 3});
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(at(places[0]), (Ints{0, 1, 1}));
  EXPECT_EQ(at(places[1]), (Ints{0, 2, 0}));
  const Tensor x = counted({5}, 5);
  EXPECT_EQ(x.masked_select(x > 2).to_vector<int32_t>(), (Ints{3, 4}));
  EXPECT_EQ(x.masked_select(x > 9).numel(), 0);
}

}  // namespace
}  // namespace tuff

// Layers: shapes, initialization and what they compute.
#include <gtest/gtest.h>

#include <tuff/nn.h>

#include <algorithm>
#include <cmath>

namespace tuff::nn {
namespace {

const TensorOptions kCpu{.device = "CPU"};

double largest(const Tensor& t) {
  double m = 0;
  for (float v : t.to_vector<float>()) m = std::max(m, std::abs(double(v)));
  return m;
}

TEST(Layers, LinearIsProductAndBias) {
  const Linear l(4, 3, true, kCpu);
  EXPECT_EQ(l.weight.sizes(), (Sizes{3, 4}));
  EXPECT_EQ(l.parameters().size(), 2u);
  EXPECT_LE(largest(l.weight), 0.5);  // 1/sqrt(4)
  const Tensor x = Tensor::rand({5, 4}, kCpu).realize();
  EXPECT_LT(largest(l(x) - (x.matmul(l.weight.T()) + l.bias)), 1e-6);
  EXPECT_THROW(l(Tensor::zeros({5, 3}, kCpu)), ShapeError);
}

TEST(Layers, ConvolutionOfOnesCountsTheWindow) {
  Conv2d c(2, 1, 3, 1, 1, false, kCpu);
  c.weight.assign(Tensor::ones({1, 2, 3, 3}, kCpu));
  const std::vector<float> y = c(Tensor::ones({1, 2, 3, 3}, kCpu)).to_vector<float>();
  EXPECT_EQ(y, (std::vector<float>{8, 12, 8, 12, 18, 12, 8, 12, 8}));
}

TEST(Layers, LayerNormStandardizes) {
  const LayerNorm n(64, 1e-5, kCpu);
  const Tensor y = n(Tensor::rand({8, 64}, kCpu) * 5 + 3).realize();
  EXPECT_LT(largest(y.mean({-1})), 1e-5);
  EXPECT_LT(largest(y.var({-1}, false, 0) - 1.0), 1e-3);
}

TEST(Layers, EmbeddingPicksRows) {
  const Embedding e(6, 4, kCpu);
  const Tensor index = Tensor::from(std::vector<int32_t>{5, 0, 5}, {3}, kCpu);
  const std::vector<float> rows = e(index).to_vector<float>(), all = e.weight.to_vector<float>();
  for (size_t i = 0; i < 4; i++) {
    EXPECT_EQ(rows[i], all[20 + i]);
    EXPECT_EQ(rows[4 + i], all[i]);
    EXPECT_EQ(rows[8 + i], all[20 + i]);
  }
}

}  // namespace
}  // namespace tuff::nn

// Products by the matrix registers of a CPU, against those of floats.
#include "language/split_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/device.h"

namespace tuff::language {
namespace {

bool has_registers() { return !engine::Device::get("CPU")->target().matrix_shapes.empty(); }

Tensor drawn(const Sizes& shape, uint64_t seed) {
  Tensor::manual_seed(seed);
  return Tensor::randn(shape, {.device = "CPU"}).contiguous();
}

// 16 bits of each factor: errors of 2^-17, more or less at random, whatever the size of the numbers.
// Where there are no registers nothing is split.
TEST(SplitProduct, IsThatOfFloats) {
  struct Row {
    int64_t rows, in, out;
    double size = 1, weight = 1;
  };
  const NoGradGuard reading;
  for (const auto& [rows, in, out, size, weight] :
       {Row{128, 32, 32}, Row{256, 96, 64}, Row{128, 2080, 96}, Row{128, 64, 32, 1e-20, 1e25}}) {
    const Tensor x = drawn({rows, in}, 1) * size, weights = drawn({out, in}, 2) * weight;
    const Tensor y = split_product(x, weights);
    ASSERT_EQ(y.defined(), has_registers());
    if (!y.defined()) continue;
    const double difference = (y - x.linear(weights)).abs().amax().item();
    EXPECT_LT(difference, 1e-4 * std::sqrt(double(in)) * size * weight) << in;
  }
}

TEST(SplitProduct, WhatDoesNotFitIsNotSplit) {
  const auto splits = [](int64_t rows, int64_t in, int64_t out) {
    return split_product(drawn({rows, in}, 5), drawn({out, in}, 6)).defined();
  };
  EXPECT_FALSE(splits(128, 64, 64));  // may be trained through, whatever its own leaves are
  const NoGradGuard reading;
  EXPECT_EQ(splits(128, 64, 64), has_registers());
  EXPECT_FALSE(splits(32, 64, 64));  // few rows
  EXPECT_FALSE(splits(144, 64, 64));
  EXPECT_FALSE(splits(128, 48, 64));
  EXPECT_FALSE(splits(128, 64, 48));
}

}  // namespace
}  // namespace tuff::language

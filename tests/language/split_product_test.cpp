// Products by the matrix registers of a CPU, against those of floats.
#include "language/split_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/env.h"
#include "engine/device.h"

namespace tuff::language {
namespace {

bool has_registers() { return !engine::Device::get("CPU")->target().matrix_shapes.empty(); }

Tensor drawn(const Sizes& shape, uint64_t seed) {
  Tensor::manual_seed(seed);
  return Tensor::randn(shape, {.device = "CPU"}).contiguous();
}

// Where there are no registers nothing is split.
TEST(SplitProduct, IsThatOfFloats) {
  for (const auto& [rows, in, out] : {std::tuple(128, 32, 32), {256, 96, 64}, {128, 2080, 96}}) {
    const Tensor x = drawn({rows, in}, 1), weights = drawn({out, in}, 2);
    const Tensor y = split_product(x, weights);
    ASSERT_EQ(y.defined(), has_registers());
    if (!y.defined()) continue;
    // 16 bits of each factor: errors of 2^-17, more or less at random.
    const Tensor difference = (y - x.linear(weights)).abs().amax();
    EXPECT_LT(difference.item(), 1e-4 * std::sqrt(double(in))) << in;
  }
}

TEST(SplitProduct, SmallAndLargeNumbers) {
  if (!has_registers()) return;
  const Tensor x = drawn({128, 64}, 3) * 1e-20, weights = drawn({32, 64}, 4) * 1e25;
  const Tensor want = x.linear(weights);
  const double scale = want.abs().amax().item();
  EXPECT_LT((split_product(x, weights) - want).abs().amax().item(), 1e-4 * scale);
}

TEST(SplitProduct, WhatDoesNotFitIsNotSplit) {
  const auto splits = [](int64_t rows, int64_t in, int64_t out) {
    return split_product(drawn({rows, in}, 5), drawn({out, in}, 6)).defined();
  };
  EXPECT_EQ(splits(128, 64, 64), has_registers());
  EXPECT_FALSE(splits(32, 64, 64));  // few rows
  EXPECT_FALSE(splits(144, 64, 64));
  EXPECT_FALSE(splits(128, 48, 64));
  EXPECT_FALSE(splits(128, 64, 48));
  Tensor trained = drawn({64, 64}, 7);
  trained.set_requires_grad(true);
  EXPECT_FALSE(split_product(drawn({128, 64}, 8), trained).defined());
}

}  // namespace
}  // namespace tuff::language

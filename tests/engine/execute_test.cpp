// How bound calls are cut into submissions.
#include <gtest/gtest.h>

#include <tuff/tensor.h>

#include "engine/device.h"

namespace tuff {
namespace {

std::vector<Tensor> many_different_kernels() {
  std::vector<Tensor> out;
  for (int64_t n = 1; n <= 20; n++) out.push_back(Tensor::ones({100 + n}, {.device = "NULL"}) * 2);
  return out;
}

// Drivers that compile at the first dispatch must be seen to make progress between kernels.
TEST(Execute, NewKernelsAreSubmittedAFewAtATime) {
  hcq::Queue& queue = engine::Device::get("NULL")->queue();
  const uint64_t before = queue.last_submitted();
  Tensor::realize(many_different_kernels());
  const uint64_t first = queue.last_submitted() - before;
  EXPECT_GE(first, 3u);
  Tensor::realize(many_different_kernels());
  EXPECT_EQ(queue.last_submitted() - before - first, 1u);
}

}  // namespace
}  // namespace tuff

// How bound calls are cut into submissions.
#include <gtest/gtest.h>

#include <tuff/tensor.h>

#include "engine/device.h"
#include "engine/jit/capture.h"

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

// A buffer of less than a word has a word of memory; a view of as many elements has not.
TEST(Execute, CopiesOfLessThanAWordAreCaptured) {
  using engine::Buffer;
  const std::shared_ptr<engine::Device> device = engine::Device::get("NULL");
  const auto three = make_ref<Buffer>(device, DType::I16, 3),
             one = make_ref<Buffer>(device, DType::I16, 1);
  const auto view = make_ref<Buffer>(three, DType::I16, 1, 2);
  const int16_t values[] = {5, 6, 7};
  int16_t got = 0, all[3] = {};
  three->copyin(values);
  engine::CapturedGraph there({engine::BoundCopy{one, view}}, {});
  there.replay({});
  one->copyout(&got);
  EXPECT_EQ(got, 6);
  one->copyin(&values[2]);
  engine::CapturedGraph back({engine::BoundCopy{view, one}}, {});
  back.replay({});
  three->copyout(all);
  EXPECT_EQ(all[1], 7);
  EXPECT_EQ(all[2], 7);
  EXPECT_EQ(all[0], 5);
}

}  // namespace
}  // namespace tuff

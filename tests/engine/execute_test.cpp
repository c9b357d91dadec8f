// How bound calls are cut into submissions.
#include <gtest/gtest.h>

#include <tuff/tensor.h>

#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/jit/captured_graph.h"

namespace tuff {
namespace {

// Products are kernels of their own, whatever stands beside them.
std::vector<Tensor> many_different_kernels() {
  std::vector<Tensor> out;
  for (int64_t n = 1; n <= 20; n++) {
    const Tensor x = Tensor::empty({100 + n, 7}, {.device = "NULL"});
    out.push_back(x.matmul(Tensor::empty({7, 3}, {.device = "NULL"})));
  }
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
  const auto three = Buffer::make(device, DType::I16, 3),
             one = Buffer::make(device, DType::I16, 1);
  const auto view = Buffer::view(three, DType::I16, 1, 2);
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

TEST(GroupUse, IsTheLastUseOfItsMembersAndStaysWithThem) {
  using engine::Buffer;
  const std::shared_ptr<engine::Device> device = engine::Device::get("NULL");
  const auto make = [&] { return Buffer::make(device, DType::F32, 8); };
  const auto a = make(), b = make(), other = make();
  const auto part = Buffer::view(a, DType::F32, 4, 16);
  a->uses().until(3);
  {
    engine::GroupUse first({a, part, b});
    EXPECT_EQ(first.members().size(), 2u);
    engine::GroupUse second({part});
    first.until(2);
    EXPECT_EQ(a->uses().last(), 3u);
    EXPECT_EQ(b->uses().last(), 2u);
    second.until(7);
    first.until(5);
    first.until(4);
    EXPECT_EQ(part->uses().last(), 7u);
    EXPECT_EQ(b->uses().last(), 5u);
  }
  EXPECT_EQ(a->uses().last(), 7u);
  EXPECT_EQ(part->uses().last(), 7u);
  EXPECT_EQ(b->uses().last(), 5u);
  EXPECT_EQ(other->uses().last(), 0u);
}

}  // namespace
}  // namespace tuff

// TUFF_CHECK_OOB (set by CMake for this program): an access out of bounds is left out, named, and
// what follows goes on; kernels that stay inside are what they were.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include <tuff/jit.h>
#include <tuff/tensor.h>

#include "engine/realize/bounds.h"
#include "ir/uop.h"
#include "kernel/ast_builder.h"
#include "tensor/devices.h"

namespace tuff::engine {
namespace {

using namespace ir;
using kernel::testing::AstBuilder;
using kernel::testing::kernel_of;
using kernel::testing::load;
using kernel::testing::reduce_over;
using kernel::testing::store;

// A kernel with memory for every Param: floats 1, 2, 3 ..., or the integers given.
class KernelRun {
 public:
  KernelRun(const std::string& device, const UOp& ast) : device_(Device::get(device)) {
    call_.kernel = device_->programs().get({&ast, 1}).at(0);
    for (const auto& a : call_.kernel->buffers) {
      const bool report = a.slot == call_.kernel->bounds.slot;
      call_.buffers.push_back(report ? bounds_report(*call_.kernel, device_)
                                     : Buffer::make(device_, a.dtype, a.count));
      if (!report) fill(a.slot);
    }
    for (size_t i = 0; i < 3; i++) call_.groups[i] = uint32_t(call_.kernel->groups[i].value());
  }
  void set(int32_t slot, const std::vector<int32_t>& values) {
    call_.buffers[size_t(slot)]->copyin(values.data());
  }
  std::vector<float> floats(int32_t slot) {
    std::vector<float> out(size_t(call_.buffers[size_t(slot)]->count));
    call_.buffers[size_t(slot)]->copyout(out.data());
    return out;
  }
  const std::string& kernel_name() const { return call_.kernel->name; }
  // What the error says, or "".
  std::string run() {
    const BoundCall call(call_);
    try {
      execute({&call, 1});
    } catch (const OutOfBounds& e) {
      return e.what();
    }
    return "";
  }

 private:
  void fill(int32_t slot) {
    std::vector<float> values(size_t(call_.buffers[size_t(slot)]->count));
    std::iota(values.begin(), values.end(), 1.f);
    call_.buffers[size_t(slot)]->copyin(values.data());
  }
  std::shared_ptr<Device> device_;
  BoundKernel call_;
};

class Bounds : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string& device() const { return GetParam(); }
};

void expect_names(const std::string& error, const KernelRun& run, const std::string& device,
                  const std::string& what) {
  EXPECT_NE(error.find(run.kernel_name()), std::string::npos) << error;
  EXPECT_NE(error.find(device), std::string::npos) << error;
  EXPECT_NE(error.find(what), std::string::npos) << error;
}

TEST_P(Bounds, ALoadBeyondTheEndGivesZeroAndIsNamed) {
  AstBuilder b;
  const UOp i = b.loop(64);
  KernelRun run(device(), kernel_of({store(0, 64, i, load(1, 60, i), {i})}));
  expect_names(run.run(), run, device(), "of buffer 1, which has 60 elements");
  const std::vector<float> out = run.floats(0);
  for (size_t k = 0; k < 64; k++) EXPECT_EQ(out[k], k < 60 ? float(k + 1) : 0.f) << k;
}

TEST_P(Bounds, ALoadBeforeTheBeginningShowsItsSign) {
  AstBuilder b;
  const UOp i = b.loop(8);
  KernelRun run(device(), kernel_of({store(0, 8, i, load(1, 8, i - 1), {i})}));
  expect_names(run.run(), run, device(), "reads element -1 of buffer 1");
  EXPECT_EQ(run.floats(0), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_P(Bounds, AStoreBeyondTheEndIsLeftOut) {
  AstBuilder b;
  const UOp i = b.loop(4);
  KernelRun run(device(), kernel_of({store(0, 4, i + 1, load(1, 4, i), {i})}));
  expect_names(run.run(), run, device(), "stores to element 4 of buffer 0, which has 4 elements");
  EXPECT_EQ(run.floats(0), (std::vector<float>{1, 1, 2, 3}));
}

TEST_P(Bounds, AReductionNamesWhatItReads) {
  AstBuilder b;
  const UOp i = b.loop(32), k = b.fold(32);
  const UOp sum = reduce_over(Op::Add, load(1, 1023, i * 32 + k), {k});
  KernelRun run(device(), kernel_of({store(0, 32, i, sum, {i})}));
  expect_names(run.run(), run, device(), "reads element 1023 of buffer 1");
  EXPECT_EQ(run.floats(0)[0], 32.f * 33 / 2);
}

// A load that depends on the outer and the innermost of three loops stands inside the middle one.
TEST_P(Bounds, LoopsStayNestedAsTheyWere) {
  AstBuilder b;
  const UOp k = b.fold(3), i = b.loop(5), j = b.fold(4);  // ids are no order of nesting
  const UOp inner = reduce_over(Op::Add, load(1, 15, i * 3 + k) * load(2, 12, j * 3 + k), {k});
  const UOp most = reduce_over(Op::Max, inner, {j});
  KernelRun run(device(), kernel_of({store(0, 5, i, most, {i})}));
  EXPECT_EQ(run.run(), "");
  const std::vector<float> out = run.floats(0);
  for (size_t r = 0; r < 5; r++) {
    float want = 0;
    for (size_t c = 0; c < 3; c++) want += float(3 * r + c + 1) * float(9 + c + 1);
    EXPECT_EQ(out[r], want) << r;
  }
}

TEST_P(Bounds, AnIndexFromMemory) {
  AstBuilder b;
  const UOp i = b.loop(4);
  const UOp row = cast(load(2, 4, i, DType::I32), DType::Index);
  KernelRun run(device(), kernel_of({store(0, 4, i, load(1, 10, row), {i})}));
  run.set(2, {3, 9, 0, 5});
  EXPECT_EQ(run.run(), "");
  EXPECT_EQ(run.floats(0), (std::vector<float>{4, 10, 1, 6}));
  run.set(2, {3, 10, 0, -7});
  expect_names(run.run(), run, device(), "reads element 10 of buffer 1");
  EXPECT_EQ(run.floats(0), (std::vector<float>{4, 0, 1, 0}));
  run.set(2, {3, 1, 0, 5});  // nothing of what was found stays
  EXPECT_EQ(run.run(), "");
}

TEST_P(Bounds, WhatAGateLeavesOutIsNoAccess) {
  AstBuilder b;
  const UOp i = b.loop(64);
  KernelRun run(
      device(),
      kernel_of({store(0, 64, i, load(1, 60, i, DType::F32, lt(i, index_const(60))), {i})}));
  EXPECT_EQ(run.run(), "");
}

TEST_P(Bounds, TensorsAreAsEverAndReplaysAreChecked) {
  const TensorOptions on{.device = device()};
  const Tensor table = Tensor::arange(0, 40, 1, {.dtype = DType::F32, .device = device()});
  Jit step([&](const std::vector<Tensor>& in) {
    const Tensor rows = table.reshape({10, 4}).index_select(0, in[0]);
    return std::vector<Tensor>{rows.softmax(-1).matmul(rows.transpose(0, 1)).sum()};
  });
  float first = 0;
  for (int i = 0; i < 4; i++) {
    const Tensor index = Tensor::from(std::vector<int32_t>{3, 1, 9}, {3}, on);
    const float value = step({index})[0].item();
    if (i == 0) first = value;
    EXPECT_EQ(value, first);
  }
  EXPECT_TRUE(step.captured());
}

std::string index_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const IndexError& e) {
    return e.what();
  }
  return "";
}

TEST_P(Bounds, PositionsThatDevicesComputeAreNamed) {
  const TensorOptions on{.device = device()};
  const Tensor x = Tensor::arange(0, 12.0, 1, on).reshape({4, 3});
  const auto computed = [&](const std::vector<float>& v) {
    return Tensor::from(v, {int64_t(v.size())}, on).cast(DType::I32);
  };
  EXPECT_EQ(index_error([&] { Tensor::embedding(x, computed({0, 3})); }), "");
  EXPECT_EQ(index_error([&] { Tensor::embedding(x, computed({0, 4})); }),
            "embedding: index 4 at (1,) is outside 0..3");
  EXPECT_EQ(index_error([&] { x.index({computed({-4, -5})}); }),
            "index: index -5 at (1,) is outside -4..3");
  EXPECT_EQ(index_error([&] { x.index_put({computed({7})}, 1); }),
            "index_put: index 7 at (0,) is outside -4..3");
  EXPECT_EQ(index_error([&] { x.index_put({computed({3})}, 1).realize(); }), "");
  EXPECT_EQ(index_error([&] { x.cross_entropy(computed({0, -100, 2, 1})); }), "");
  EXPECT_EQ(index_error([&] { x.cross_entropy(computed({0, -100, 3, 1})); }),
            "cross_entropy: class 3 at (2,) is outside 0..2 and is not ignore_index -100");
}

TEST_P(Bounds, ReplaysCheckPositionsThatTheyCompute) {
  const TensorOptions on{.device = device()};
  const Tensor x = Tensor::arange(0, 12.0, 1, on).reshape({4, 3});
  Jit step([&](const std::vector<Tensor>& in) {
    const Tensor rows = Tensor::embedding(x, in[0].cast(DType::I32));
    return std::vector<Tensor>{rows.sum(), rows.max()};
  });
  const auto largest = [&](std::vector<float> at) {
    const std::vector<Tensor>& results = step({Tensor::from(at, {2}, on)});
    EXPECT_EQ(results.size(), 2u);
    return results[1].item();
  };
  for (int i = 0; i < 4; i++) EXPECT_EQ(largest({0, 1}), 5);
  ASSERT_TRUE(step.captured());
  EXPECT_EQ(index_error([&] { largest({1, -1}); }), "embedding: index -1 at (1,) is outside 0..3");
  EXPECT_EQ(index_error([&] { largest({4, 1}); }), "embedding: index 4 at (0,) is outside 0..3");
  EXPECT_EQ(largest({3, 1}), 11);
}

INSTANTIATE_TEST_SUITE_P(Devices, Bounds, ::testing::ValuesIn(test::devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

}  // namespace
}  // namespace tuff::engine

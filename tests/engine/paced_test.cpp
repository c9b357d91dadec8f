// TUFF_SUBMIT_MS=1 (set by CMake): graphs of tens of milliseconds are cut into submissions, and
// compute what they do in one piece.
#include <gtest/gtest.h>

#include <tuff/jit.h>
#include <tuff/tensor.h>

#include "engine/device.h"
#include "engine/realize/capture.h"
#include "engine/stats.h"
#include "tensor/devices.h"

namespace tuff {
namespace {

std::vector<float> chain(const std::string& device, uint64_t* submits) {
  const TensorOptions here{.device = device};
  const int64_t n = 192;
  std::vector<float> values(size_t(n * n));
  for (size_t i = 0; i < values.size(); i++) values[i] = float(i * 7 % 13) / 64 - 0.1f;
  const Tensor w = Tensor::from(values, {n, n}, here);
  Jit step([&](const std::vector<Tensor>& in) {
    Tensor x = in[0];
    for (int i = 0; i < 12; i++) x = x.matmul(w).tanh();
    return std::vector<Tensor>{x};
  });
  std::vector<float> out;
  for (int i = 0; i < 8; i++) {
    const Tensor x = (w * (0.5 + i)).realize();
    engine::Device::get(device)->queue().wait_idle();
    const uint64_t before = engine::counters().submits;
    const Tensor y = step({x})[0];
    if (submits) submits[i] = engine::counters().submits - before;
    out = y.to_vector<float>();
  }
  return out;
}

class PacedGraph : public testing::TestWithParam<std::string> {};

TEST_P(PacedGraph, IsCutAndComputesTheSame) {
  uint64_t submits[8] = {};
  const std::vector<float> got = chain(GetParam(), submits), want = chain("CPU", nullptr);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-3) << i;
  for (int i = 2; i < 8; i++) EXPECT_GT(submits[i], 1u) << "replay " << i - 2;
  EXPECT_LE(submits[7], 12u);
  printf("%s: a replay is %llu submissions by what is expected, %llu by what was measured\n",
         GetParam().c_str(), (unsigned long long)submits[2], (unsigned long long)submits[7]);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PacedGraph);
INSTANTIATE_TEST_SUITE_P(Devices, PacedGraph, testing::ValuesIn(test::vulkan_devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

}  // namespace
}  // namespace tuff

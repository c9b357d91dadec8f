// Captured graphs of a device without buffer device addresses: what replays with other memory give,
// and what they copy. The first Vulkan device, its addresses switched off.
#include <gtest/gtest.h>

#include <optional>

#include <tuff/jit.h>
#include <tuff/tensor.h>
#include "base/env.h"
#include "devices/registry.h"
#include "engine/device.h"
#include "engine/realize/capture.h"
#include "hcq/graph.h"

namespace tuff {
namespace {

using Floats = std::vector<float>;

class Rebind : public testing::Test {
 protected:
  void SetUp() override {
    for (const devices::Candidate& c : engine::list_devices())
      if (c.usable && c.name == kDevice) return;
    GTEST_SKIP() << "no usable Vulkan device";
  }
  void TearDown() override { engine::close_devices(); }

  static Tensor numbers(const Floats& v) {
    return Tensor::from(v, {int64_t(v.size())}, {.device = kDevice});
  }
  static Floats values(const Tensor& t) {
    Floats out(size_t(t.numel()));
    t.copy_to(out.data(), out.size() * sizeof(float));
    return out;
  }

  static constexpr const char* kDevice = "VULKAN:0";
  EnvOverride disable_{Env::TUFF_VK_DISABLE, "bda"};
};

std::vector<Tensor> twice(const std::vector<Tensor>& in) { return {in[0] * 2}; }

TEST_F(Rebind, TheSameMemoryCostsNothing) {
  Jit jit(twice);
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 6; i++) EXPECT_EQ(values(jit({x})[0]), (Floats{2, 4, 6}));
  EXPECT_EQ(jit.stats().replays, 4u);
  EXPECT_EQ(jit.stats().rebind_copies, 0u);
  EXPECT_EQ(jit.stats().submits_per_replay, 1u);
}

TEST_F(Rebind, OtherArgumentsAreCopiedIn) {
  Jit jit(twice);
  std::vector<Tensor> given;  // kept, so that each has memory of its own
  for (int i = 0; i < 6; i++) {
    given.push_back(numbers({float(i), 5}));
    EXPECT_EQ(values(jit({given.back()})[0]), (Floats{float(2 * i), 10})) << i;
  }
  EXPECT_EQ(jit.stats().rebind_copies, 1u);
  EXPECT_EQ(jit.stats().submits_per_replay, 2u);
  EXPECT_EQ(values(given[1]), (Floats{1, 5}));  // captured with it, and not written since
}

TEST_F(Rebind, HeldResultsAreCopiedOut) {
  Jit jit(twice);
  const Tensor x = numbers({1, 2});
  std::vector<std::vector<Tensor>> held;
  for (int i = 0; i < 5; i++) held.push_back(jit({x}));
  for (const auto& h : held) EXPECT_EQ(values(h[0]), (Floats{2, 4}));
  EXPECT_EQ(jit.stats().rebind_copies, 1u);
}

// An argument that the function stores into goes in and comes back; one that was given before
// keeps what it has.
TEST_F(Rebind, WrittenArgumentsComeBack) {
  Jit jit([](const std::vector<Tensor>& in) {
    Tensor state = in[0];
    state.assign(state + in[1]);
    return std::vector<Tensor>{state * 10};
  });
  std::vector<Tensor> states;
  for (int i = 0; i < 4; i++) states.push_back(numbers({float(i), 0}).realize());
  const Tensor one = numbers({1, 1});
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 4; i++)
      EXPECT_EQ(values(jit({states[size_t(i)], one})[0]),
                (Floats{float(10 * (i + round + 1)), float(10 * (round + 1))}))
          << round << " " << i;
  for (int i = 0; i < 4; i++) EXPECT_EQ(values(states[size_t(i)]), (Floats{float(i + 3), 3})) << i;
  EXPECT_EQ(jit.stats().rebind_copies, 2u);
}

TEST_F(Rebind, AGraphWithInputsIsRefused) {
  hcq::Device& device = engine::Device::get(kDevice)->hcq();
  try {
    hcq::CommandGraph(device, {}, 1, 0);
    FAIL() << "no error";
  } catch (const Unsupported& e) {
    EXPECT_NE(std::string(e.what()).find("device addresses"), std::string::npos) << e.what();
  }
}

TEST_F(Rebind, ATensorAboveTheRangeIsRefusedByName) {
  EnvOverride limit(Env::TUFF_VK_LIMIT, "range:16384");
  const auto sum = [](int64_t n) {
    return (Tensor::full({n}, 1, {.device = kDevice}).contiguous() + 1).sum();
  };
  EXPECT_EQ(sum(4000).item(), 8000);
  try {
    (Tensor::full({5000}, 1, {.device = kDevice}).contiguous() + 1).realize();
    FAIL() << "no error";
  } catch (const Unsupported& e) {
    const std::string text = e.what();
    for (const char* part : {"VULKAN", "20000 bytes", "16128", "maxStorageBufferRange", "split"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(sum(2000).item(), 4000);
}

}  // namespace
}  // namespace tuff

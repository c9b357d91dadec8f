// TUFF_VALIDATE: right devices pass, captured steps included; a device that leaves work out, or
// rounds wrongly by more than arithmetic can, is found and named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>
#include "base/env.h"
#include "devices/vulkan/api/api.h"
#include "devices/vulkan/vulkan.h"
#include "engine/realize/validate.h"
#include "engine/stats.h"
#include "tensor/devices.h"

namespace tuff::engine {
namespace {

class Network {
 public:
  explicit Network(const TensorOptions& o)
      : first_(12, 32, true, o),
        second_(32, 4, true, o),
        optimizer_({first_.weight, first_.bias, second_.weight, second_.bias}, {.lr = 1e-2}) {}
  std::vector<Tensor> step(const std::vector<Tensor>& in) {
    TrainingMode on;
    const Tensor hidden = first_(in[0]).gelu().layernorm({32}).dropout(0.1);
    const Tensor loss = second_(hidden).cross_entropy(in[1]);
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step({loss});
    return {loss};
  }

 private:
  nn::Linear first_, second_;
  optim::AdamW optimizer_;
};

std::vector<Tensor> batch(int seed, const std::string& device) {
  std::vector<float> x(16 * 12);
  std::vector<int32_t> y(16);
  for (size_t i = 0; i < x.size(); i++) x[i] = float((i * 31 + size_t(seed) * 7) % 23) / 11 - 1;
  for (size_t i = 0; i < y.size(); i++) y[i] = int32_t((i * 3 + size_t(seed)) % 4);
  return {Tensor::from(x, {16, 12}, {.device = device}), Tensor::from(y, {16}, {.device = device})};
}

// Five steps, of which the last three are replays; the last loss.
float train(const std::string& device) {
  Tensor::manual_seed(1);
  Network network({.device = device});
  Jit step([&](const std::vector<Tensor>& in) { return network.step(in); });
  float loss = 0;
  for (int i = 0; i < 5; i++) loss = step(batch(i, device))[0].item();
  EXPECT_TRUE(step.captured());
  return loss;
}

std::string device_of_kind(const std::string& kind) {
  for (const std::string& d : test::devices())
    if (d.starts_with(kind)) return d;
  return {};
}
#define REQUIRE_DEVICE(variable, kind)               \
  const std::string variable = device_of_kind(kind); \
  if (variable.empty()) GTEST_SKIP() << "no " kind " here"

void expect_valid_training(const std::string& device, const std::string& judge) {
  const float plain = train(device);
  EnvOverride validate(Env::TUFF_VALIDATE, judge);
  const uint64_t before = counters().kernels;
  EXPECT_EQ(train(device), plain);  // validation changes nothing
  EXPECT_GT(counters().kernels, before);
}

TEST(Validate, ATrainingOnTheCpuIsJudgedByVulkan) {
  REQUIRE_DEVICE(cpu, "CPU");
  REQUIRE_DEVICE(vulkan, "VULKAN");
  expect_valid_training(cpu, vulkan);
}

TEST(Validate, ATrainingOnVulkanIsJudgedByTheInterpreter) {
  REQUIRE_DEVICE(vulkan, "VULKAN");
  expect_valid_training(vulkan, "INTERPRETER");
}

TEST(Validate, ATrainingOnTheCpuIsJudgedByTheInterpreter) {
  REQUIRE_DEVICE(cpu, "CPU");
  expect_valid_training(cpu, "interpreter");
}

// One graph at several sequence lengths, each kernel of each replay judged.
TEST(Validate, ReplaysOfSymbolicExtentAreJudged) {
  REQUIRE_DEVICE(cpu, "CPU");
  const auto run = [&] {
    Jit jit(
        [](const std::vector<Tensor>& in) {
          const Tensor x = in[0] * 2;
          return std::vector<Tensor>{x, x.matmul(x.transpose(1, 2)).softmax(-1).mean({1})};
        },
        {.dynamic = {{.argument = 0, .axis = 1, .name = "T", .min = 1, .max = 12}}});
    std::vector<std::vector<float>> out;
    for (int64_t t : {12, 12, 5, 1, 9}) {
      std::vector<float> x(size_t(2 * t * 3));
      for (size_t i = 0; i < x.size(); i++) x[i] = float(i % 7) / 3 - 1;
      for (const Tensor& r : jit({Tensor::from(x, {2, t, 3}, {.device = cpu})}))
        out.push_back(r.to_vector<float>());
    }
    return out;
  };
  const auto plain = run();
  EnvOverride validate(Env::TUFF_VALIDATE, "INTERPRETER");
  const uint64_t before = counters().kernels;
  EXPECT_EQ(run(), plain);
  EXPECT_GT(counters().kernels, before);
}

TEST(Validate, CancellationIsNoMismatch) {
  REQUIRE_DEVICE(cpu, "CPU");
  EnvOverride validate(Env::TUFF_VALIDATE, "INTERPRETER");
  std::vector<float> x(4096);
  for (size_t i = 0; i < x.size(); i++) x[i] = std::sin(float(i)) * (i % 2 ? 1e4f : -1e4f);
  const Tensor t = Tensor::from(x, {4, 1024}, {.device = cpu});
  ((t - t.mean()).sum({1}) / 1e-3).exp().realize();
  (t.sum({1}) < 0.0).realize();
}

TEST(Validate, InPlaceAssignsAreJudgedByWhatWasThereBefore) {
  REQUIRE_DEVICE(vulkan, "VULKAN");
  EnvOverride validate(Env::TUFF_VALIDATE, "INTERPRETER");
  Tensor t = Tensor::from({1, 2, 3, 4}, {4}, {.device = vulkan});
  t.realize();
  for (int i = 0; i < 3; i++) {
    t.assign(t * 2 + 1);
    t.realize();
  }
  EXPECT_EQ(t.sum().item(), 8 * 10 + 7 * 4);
}

// A driver that leaves out the last workgroup of every launch.
devices::VkApi real;
void leave_out_work(devices::VkApi& api) {
  real = api;
  api.vkCmdDispatch = [](VkCommandBuffer b, uint32_t x, uint32_t y, uint32_t z) {
    real.vkCmdDispatch(b, std::max(x, 2u) - 1, y, z);
  };
}

std::string failure_of(const std::string& device) {
  try {
    std::vector<float> x(1000);
    for (size_t i = 0; i < x.size(); i++) x[i] = float(i);
    const Tensor t = Tensor::from(x, {1000}, {.device = device});
    (t * 3 + 1).realize();
  } catch (const ValidationFailed& e) {
    EXPECT_STREQ(e.kind(), "ValidationFailed");
    return e.what();
  }
  return {};
}

TEST(Validate, APlantedFaultIsFoundAndNamed) {
  REQUIRE_DEVICE(vulkan, "VULKAN");
  const auto device = Device::get(vulkan);
  leave_out_work(devices::vulkan_api(device->hcq()));
  std::string judged_by_interpreter, judge_is_wrong;
  {
    EnvOverride validate(Env::TUFF_VALIDATE, "INTERPRETER");
    judged_by_interpreter = failure_of(vulkan);
  }
  if (!device_of_kind("CPU").empty()) {
    EnvOverride validate(Env::TUFF_VALIDATE, vulkan);
    judge_is_wrong = failure_of(device_of_kind("CPU"));
    EXPECT_NE(judge_is_wrong.find("on CPU and"), std::string::npos) << judge_is_wrong;
  }
  devices::vulkan_api(device->hcq()) = real;
  for (const char* part : {"kernel ", "element ", "argument 0", vulkan.c_str(), "INTERPRETER"})
    EXPECT_NE(judged_by_interpreter.find(part), std::string::npos) << judged_by_interpreter;
  EXPECT_NE(judged_by_interpreter.find("elements are that far apart"), std::string::npos);
  EnvOverride validate(Env::TUFF_VALIDATE, "INTERPRETER");
  EXPECT_EQ(failure_of(vulkan), "");
}

TEST(Validate, AFaultThatComesLaterIsFoundInAReplay) {
  REQUIRE_DEVICE(vulkan, "VULKAN");
  EnvOverride validate(Env::TUFF_VALIDATE, "INTERPRETER");
  Jit step([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 3 + 1}; });
  const std::vector<float> x(1000, 2), y(1000, 5);
  const std::vector<Tensor> first{Tensor::from(x, {1000}, {.device = vulkan})},
      second{Tensor::from(y, {1000}, {.device = vulkan})};
  for (int i = 0; i < 3; i++) EXPECT_EQ(step(first)[0].sum().item(), 7000);
  ASSERT_TRUE(step.captured());
  EXPECT_EQ(step(second)[0].sum().item(), 16000);
  const auto device = Device::get(vulkan);
  leave_out_work(devices::vulkan_api(device->hcq()));
  EXPECT_THROW(step(first), ValidationFailed);
  devices::vulkan_api(device->hcq()) = real;
  EXPECT_EQ(step(first)[0].sum().item(), 7000);
}

TEST(Validate, AnUnknownJudgeIsRefused) {
  REQUIRE_DEVICE(vulkan, "VULKAN");
  const Tensor t = Tensor::from({1, 2}, {2}, {.device = vulkan});
  EnvOverride validate(Env::TUFF_VALIDATE, "ABACUS");
  try {
    (t * 2).realize();
    FAIL() << "ran";
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("ABACUS"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tuff::engine

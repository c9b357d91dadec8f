// Captured graphs over several devices and queues: values, replays in flight, what follows a
// replay, what holds results, devices that are lost.
#include "engine/jit/segments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/env.h"
#include "devices/cpu/cpu.h"
#include "devices/shuffle/shuffle.h"
#include "engine/jit/captured_graph.h"
#include "engine/realize/capture.h"
#include "engine/split_step.h"
#include "engine/stats.h"
#include "hcq/hazard_guard.h"
#include "tensor/devices.h"

namespace tuff::engine {
namespace {

using test::SplitStep;

constexpr double kTolerance = 1e-4;  // of losses about 0.3

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); i++)
    EXPECT_NEAR(got[i], wanted[i], kTolerance) << "step " << i;
}

struct Pair {
  std::string first, second;
};
// Every pair of what there is, both ways round.
std::vector<Pair> pairs() {
  std::vector<std::string> all = test::devices();
  all.push_back("SHUFFLE");
  all.push_back("SHUFFLE:visible");
  std::vector<Pair> out;
  for (const std::string& a : all)
    for (const std::string& b : all)
      if (a != b) out.push_back({a, b});
  return out;
}

class Split : public testing::TestWithParam<Pair> {};

TEST_P(Split, TrainsAsOneDeviceDoes) {
  static const std::vector<float> wanted = test::train_split("CPU", "CPU", 8, 20);
  EXPECT_LT(wanted[7], wanted[0]);
  expect_near(test::train_split(GetParam().first, GetParam().second, 8, 20), wanted);
}

TEST_P(Split, SeveralReplaysAreInFlightAndHeldResultsKeepTheirs) {
  std::vector<float> wanted, got;
  std::vector<std::vector<float>> weights[2];
  for (const bool split : {false, true}) {
    SplitStep step(split ? GetParam().first : "CPU", split ? GetParam().second : "CPU");
    Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
    std::vector<Tensor> held;
    for (int i = 0; i < 8; i++) held.push_back(jit(step.inputs(i))[0]);
    for (const Tensor& t : held) (split ? got : wanted).push_back(float(t.item()));
    weights[split] = step.weights();
  }
  expect_near(got, wanted);
  for (size_t w = 0; w < 4; w++) expect_near(weights[1][w], weights[0][w]);
}

// Eager work, uploads and freed memory after a replay that nobody has waited for.
TEST_P(Split, WhatFollowsAReplayComesAfterAllOfIt) {
  const std::string &a = GetParam().first, &b = GetParam().second;
  const int64_t n = 1000;
  Jit jit(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{(in[0] * 2).to(b) + 1}; });
  Tensor x = Tensor::zeros({n}, {.device = a}).realize();
  for (int i = 0; i < 30; i++) {
    const std::vector<float> values = Tensor::full({n}, double(i)).to_vector<float>();
    x.copy_from(values.data(), values.size() * 4);  // the replay before still reads it
    const Tensor y = jit({x})[0];
    { const Tensor gone = Tensor::full({n}, -7.0, {.device = b}).realize(); }
    const Tensor z = (y * 10).realize();
    Tensor other = Tensor::full({n}, 5.0, {.device = a}).realize();
    const std::vector<float> got = z.to_vector<float>();
    ASSERT_EQ(got, std::vector<float>(size_t(n), float(10 * (2 * i + 1)))) << i;
  }
}

// An input that is copied straight to the other device, and a result that comes from there.
TEST_P(Split, ExtentsMayVary) {
  for (const test::Bound& one : test::bind_anew(GetParam().first, GetParam().second))
    expect_near(one.got, one.wanted);
}

std::string pair_name(const testing::TestParamInfo<Pair>& info) {
  std::string name = info.param.first + "_" + info.param.second;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Devices, Split, testing::ValuesIn(pairs()), pair_name);

TEST(SplitInEveryOrder, TrainsAsOneDeviceDoes) {
  const std::vector<float> wanted = test::train_split("CPU", "CPU", 6);
  for (const char* shuffle : {"SHUFFLE", "SHUFFLE:visible"}) {
    for (uint64_t seed = 0; seed < 40; seed++) {
      devices::shuffle_reseed(Device::get(shuffle)->hcq(), seed);
      const bool first = seed % 2 == 0;
      EXPECT_EQ(test::train_split(first ? shuffle : "CPU", first ? "CPU" : shuffle, 6), wanted)
          << shuffle << " seed " << seed;
    }
  }
}

// ---- what a replay costs and whom it blocks

TEST(SplitReplay, CountsItsSubmissionsAndCopiesEachByteOnce) {
  SplitStep step("CPU", "SHUFFLE:visible");
  Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
  const std::vector<Tensor> in = step.inputs();
  for (int i = 0; i < 3; i++) jit(in);
  const SegmentedGraph* graph = jit.graph()->segmented();
  ASSERT_NE(graph, nullptr);
  const uint64_t submits = counters().submits;
  jit(in);
  EXPECT_EQ(counters().submits - submits, jit.stats().submits_per_replay);
  printf("split step: %u submissions to devices, %u to the host's queues, %u copies\n",
         graph->stats().submits_per_replay, graph->stats().host_submits_per_replay,
         graph->stats().host_copies);
  // The activation there, its gradient back.
  EXPECT_EQ(graph->stats().host_copies, 2u);
  EXPECT_LE(graph->stats().submits_per_replay, 6u);
}

std::atomic<bool> hold{false};
devices::CpuApi::Run run_when_let_go(uint64_t) {
  while (hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return devices::CpuApi::Run::Normally;
}

TEST(SplitReplay, ReturnsWhileTheFirstDeviceHasNotBegun) {
  SplitStep step("CPU", "SHUFFLE:visible");
  Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
  const std::vector<Tensor> in = step.inputs();
  std::vector<Tensor> held;
  for (int i = 0; i < 3; i++) held.push_back(jit(in)[0]);
  held.back().item();
  devices::CpuApi& api = devices::cpu_api(Device::get("CPU")->hcq());
  hcq::Queue& cpu = Device::get("CPU")->queue();
  cpu.wait_idle();
  hold = true;
  api.runs = run_when_let_go;
  held.push_back(jit(in)[0]);
  held.push_back(jit(in)[0]);
  EXPECT_LT(cpu.timeline().value(), cpu.last_submitted()) << "the calls came back before the work";
  hold = false;
  const double last = held.back().item();
  api.runs = nullptr;
  EXPECT_LT(last, held[0].item());
}

// ---- queues that cannot wait; the copy queue of one device

// Calls of some steps as one graph, with options of the test's.
template <class Step>
std::vector<BoundCall> calls_of(Step& step, const std::vector<Tensor>& in) {
  step(in);
  Capture capture;
  step(in);
  return capture.take();
}

TEST(SplitReplay, IsRightWhereQueuesCannotWait) {
  for (const bool host_waits : {false, true}) {
    SplitStep step("SHUFFLE", "CPU"), wanted("CPU", "CPU");
    const std::vector<Tensor> in = step.inputs(), same = wanted.inputs();
    const auto calls = calls_of(step, in);
    CapturedGraph graph(calls, {}, {}, {.host_waits = host_waits});
    ASSERT_NE(graph.segmented(), nullptr);
    for (int i = 0; i < 5; i++) graph.replay({});
    for (int i = 0; i < 7; i++) wanted(same);
    EXPECT_EQ(step.weights(), wanted.weights()) << host_waits;
  }
}

TEST(CopyQueue, TakesLargeCopiesBesideKernels) {
  for (const char* device : {"SHUFFLE", "SHUFFLE:visible"}) {
    const TensorOptions here{.device = device};
    Tensor x = Tensor::from(test::numbers(512, 1), {512}, here).realize();
    Tensor kept = Tensor::zeros({512}, here).realize(), y = Tensor::ones({64}, here).realize();
    const auto step = [&](const std::vector<Tensor>&) {
      kept.assign(x);
      y.assign(y + y.sum());
      Tensor::realize({kept, y});
      x.assign(kept * 2 + y.sum());
      x.realize();
    };
    const auto calls = calls_of(step, {});
    CapturedGraph graph(calls, {}, {}, {.copy_queue_bytes = 2048});
    ASSERT_NE(graph.segmented(), nullptr);
    EXPECT_EQ(graph.stats().host_submits_per_replay, 0u);
    const std::vector<float> x0 = x.to_vector<float>();
    const float y0 = y.to_vector<float>()[0];
    for (uint64_t seed = 0; seed < 30; seed++) {
      devices::shuffle_reseed(Device::get(device)->hcq(), seed);
      x.copy_from(x0.data(), x0.size() * 4);
      const std::vector<float> ys(64, y0);
      y.copy_from(ys.data(), ys.size() * 4);
      for (int i = 0; i < 3; i++) graph.replay({});
      float wanted_x = x0[7], wanted_y = y0, wanted_kept = 0;
      for (int i = 0; i < 3; i++) {
        wanted_kept = wanted_x;
        wanted_y += 64 * wanted_y;
        wanted_x = wanted_kept * 2 + 64 * wanted_y;
      }
      ASSERT_FLOAT_EQ(x.to_vector<float>()[7], wanted_x) << device << " seed " << seed;
      ASSERT_FLOAT_EQ(kept.to_vector<float>()[7], wanted_kept) << device << " seed " << seed;
    }
  }
}

TEST(EagerCopies, BetweenAllKindsOfMemoryAndInPieces) {
  const std::vector<float> values = test::numbers(3 << 20, 4);  // 12 MiB
  std::vector<std::string> all = test::devices();
  all.insert(all.end(), {"SHUFFLE", "SHUFFLE:visible"});
  for (const std::string& from : {std::string("SHUFFLE"), all[0]}) {
    const Tensor x = Tensor::from(values, {3 << 20}, {.device = from});
    for (const std::string& to : all) EXPECT_EQ(x.to(to).to_vector<float>(), values) << from << to;
  }
  const Tensor one = Tensor::from({1.5f}, {1}, {.device = "SHUFFLE"});
  EXPECT_EQ(one.to("CPU").to("SHUFFLE:visible").item(), 1.5);
}

// ---- devices that are lost

class SplitLoss : public testing::Test {
 protected:
  void TearDown() override { close_devices(); }
};

devices::CpuApi::Run fails(uint64_t) { return devices::CpuApi::Run::Fails; }

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const DeviceLost& e) {
    return e.what();
  }
  return "no DeviceLost";
}

TEST_F(SplitLoss, IsToldByNameAndTheOtherDeviceGoesOn) {
  Tensor apart = Tensor::from({1.0f, 2.0f}, {2}, {.device = "SHUFFLE:visible"}).realize();
  {
    SplitStep step("CPU", "SHUFFLE:visible");
    Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
    const std::vector<Tensor> in = step.inputs();
    const Tensor good = jit(in)[0];
    jit(in);
    const Tensor kept = jit(in)[0];
    const double before = kept.item();
    devices::cpu_api(Device::get("CPU")->hcq()).runs = fails;
    Tensor loss;
    const std::string at_call = message_of([&] { loss = jit(in)[0]; });
    if (loss.defined()) {
      EXPECT_NE(message_of([&] { loss.item(); }).find("CPU"), std::string::npos);
      EXPECT_NE(message_of([&] { (loss * 2).item(); }).find("CPU"), std::string::npos)
          << "what is computed from it";
    } else {
      EXPECT_NE(at_call.find("CPU"), std::string::npos) << at_call;
    }
    EXPECT_NE(message_of([&] { jit(in); }).find("CPU"), std::string::npos);
    EXPECT_NE(message_of([&] { step.weights(); }).find("CPU"), std::string::npos);
    EXPECT_EQ(kept.item(), before) << "results of earlier replays are what they were";
    EXPECT_FALSE(Device::get("SHUFFLE:visible")->hcq().lost());
    EXPECT_EQ((apart + 1).to_vector<float>(), (std::vector<float>{2, 3}));
  }
  EXPECT_EQ((apart * 3).to_vector<float>(), (std::vector<float>{3, 6}));
}

TEST_F(SplitLoss, OfTheSecondDeviceLeavesTheFirst) {
  Tensor apart = Tensor::from({1.0f, 2.0f}, {2}, {.device = "SHUFFLE:visible"}).realize();
  SplitStep step("SHUFFLE:visible", "CPU");
  Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
  const std::vector<Tensor> in = step.inputs();
  for (int i = 0; i < 3; i++) jit(in);
  jit(in)[0].item();
  devices::cpu_api(Device::get("CPU")->hcq()).runs = fails;
  EXPECT_NE(message_of([&] { jit(in)[0].item(); }).find("CPU"), std::string::npos);
  EXPECT_EQ((apart + 1).to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_FALSE(Device::get("SHUFFLE:visible")->hcq().lost());
  EXPECT_NE(message_of([&] { jit(in); }).find("CPU"), std::string::npos);
}

// ---- the end of the process

void leave_split_work_behind(const std::string& first, const std::string& second) {
  static SplitStep step(first, second, 64);
  static Jit jit([](const std::vector<Tensor>& in) { return step(in); });
  static std::vector<Tensor> in = step.inputs();
  for (int i = 0; i < 6; i++) jit(in);
}

TEST(SplitExit, WithWorkInFlightIsClean) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string other = test::devices().back();
  for (int i = 0; i < 3; i++) {
    EXPECT_EXIT(
        {
          leave_split_work_behind("CPU", other == "CPU" ? "SHUFFLE" : other);
          std::exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace tuff::engine

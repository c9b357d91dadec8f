// Copies between devices that reach each other's memory, on two emulated GPUs: by themselves, in
// captured graphs, with replays in flight, with one of them lost; and by the host where the GPUs
// have no large BAR, so that neither reaches the other.
#include <gtest/gtest.h>

#include <cctype>
#include <cstring>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "engine/jit/captured_graph.h"
#include "engine/jit/segments.h"
#include "engine/split_step.h"
#include "engine/stats.h"

namespace tuff::engine {
namespace {

using test::SplitStep;

constexpr const char* kA = "AMD:0";
constexpr const char* kB = "AMD:1";
constexpr double kTolerance = 1e-4;  // of losses about 0.3

struct Setting {
  const char* machine;
  const char* aql = "0";
  bool reach() const { return std::strstr(machine, "bar:0") == nullptr; }
};
const Setting kSettings[] = {{"gpus:2"},
                             {"gpus:2,seed:7"},
                             {"gpus:2,seed:8", "1"},
                             {"gpus:2,bar:0"},
                             {"gpus:2,bar:0,seed:9"}};

// A machine of two GPUs, fresh for each test.
class Machine {
 public:
  explicit Machine(const Setting& s)
      : machine_(Env::TUFF_MOCK, s.machine), aql_(Env::AMD_AQL, s.aql) {
    close_devices();
  }
  ~Machine() { close_devices(); }

 private:
  EnvOverride iface_{Env::AMD_IFACE, "MOCK"};
  EnvOverride machine_, aql_;
};

class Peers : public testing::TestWithParam<Setting> {
 protected:
  bool reach() const { return GetParam().reach(); }
  Machine machine_{GetParam()};
};

struct Copied {
  uint64_t by_host = counters().host_copied_bytes, by_peers = counters().peer_copied_bytes;
  Copied since(const Copied& before) const {
    Copied c;
    c.by_host = by_host - before.by_host;
    c.by_peers = by_peers - before.by_peers;
    return c;
  }
};

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); i++)
    EXPECT_NEAR(got[i], wanted[i], kTolerance) << "step " << i;
}

// The second size is that of a copy for the copy queue, in blocks of its own.
TEST_P(Peers, EagerCopiesBothWays) {
  for (const int64_t n : {int64_t(1001), int64_t(kCopyQueueBytes / 4 + 3)}) {
    const std::vector<float> values = test::numbers(size_t(n), 4);
    const Tensor x = Tensor::from(values, {n}, {.device = kA}).realize();
    const Copied before;
    const Tensor there = x.to(kB).realize(), back = there.to(kA).realize();
    const Copied copied = Copied().since(before);
    EXPECT_EQ(copied.by_host, reach() ? 0 : 8 * uint64_t(n));
    EXPECT_EQ(copied.by_peers, reach() ? 8 * uint64_t(n) : 0);
    EXPECT_EQ(back.to_vector<float>(), values);
  }
}

// The same memory again and again: what the other GPU has in its caches is stale each time.
TEST_P(Peers, WhatIsCopiedAnewIsSeen) {
  Tensor x = Tensor::full({300}, 1.0, {.device = kA}).realize();
  Tensor y = Tensor::zeros({300}, {.device = kB}).realize();
  for (int i = 0; i < 4; i++) {
    x.assign(x + 1);
    x.realize();
    y.assign(x.to(kB));
    y.realize();
    EXPECT_EQ((y * 2).to_vector<float>(), std::vector<float>(300, float(4 + 2 * i)));
    x.assign((y * 1).to(kA));
    x.realize();
  }
}

TEST_P(Peers, TrainAsOneDeviceDoes) {
  static const std::vector<float> wanted = test::train_split("CPU", "CPU", 6);
  EXPECT_LT(wanted[5], wanted[0]);
  expect_near(test::train_split(kA, kB, 6), wanted);
}

TEST_P(Peers, CopyInGraphsWithoutTheHost) {
  SplitStep step(kA, kB);
  Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
  const std::vector<Tensor> in = step.inputs();
  for (int i = 0; i < 3; i++) jit(in);
  const SegmentedGraph* graph = jit.graph()->segmented();
  ASSERT_NE(graph, nullptr);
  printf("split step on %s: %u submissions to devices, %u to the host's queues\n",
         GetParam().machine, graph->stats().submits_per_replay,
         graph->stats().host_submits_per_replay);
  // The activation there, its gradient back.
  EXPECT_EQ(graph->stats().peer_copies, reach() ? 2u : 0u);
  EXPECT_EQ(graph->stats().host_copies, reach() ? 0u : 2u);
  EXPECT_EQ(graph->stats().host_submits_per_replay == 0, reach());
  EXPECT_EQ(jit.stats().host_copies, reach() ? 0u : 2u);
  const Copied before;
  const uint64_t submits = counters().submits;
  jit(in);
  const Copied copied = Copied().since(before);
  const uint64_t bytes = 2 * 4 * 8 * 4;
  EXPECT_EQ(copied.by_host, reach() ? 0 : bytes);
  EXPECT_EQ(copied.by_peers, reach() ? bytes : 0);
  EXPECT_EQ(counters().submits - submits, jit.stats().submits_per_replay);
}

TEST_P(Peers, SeveralReplaysAreInFlightAndHeldResultsKeepTheirs) {
  std::vector<float> wanted, got;
  std::vector<std::vector<float>> weights[2];
  for (const bool split : {false, true}) {
    SplitStep step(split ? kA : "CPU", split ? kB : "CPU");
    Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
    std::vector<Tensor> held;
    for (int i = 0; i < 8; i++) held.push_back(jit(step.inputs(i))[0]);
    for (const Tensor& t : held) (split ? got : wanted).push_back(float(t.item()));
    weights[split] = step.weights();
  }
  expect_near(got, wanted);
  for (size_t w = 0; w < 4; w++) expect_near(weights[1][w], weights[0][w]);
}

// An input that is copied straight to the other GPU, from other memory at every replay, and a
// result that comes from there; of extents that vary.
TEST_P(Peers, InputsAreBoundAnew) {
  for (const test::Bound& one : test::bind_anew(kA, kB)) expect_near(one.got, one.wanted);
}

// Memory of either side that is let go while the other GPU may still copy it, and taken from both
// GPUs as soon as the allocator thinks that it may: too early would be a fault or a wrong value.
TEST_P(Peers, MemoryIsFreedWhileItIsInFlight) {
  const int64_t n = 2200 * 1024;  // a block of its own
  Jit jit([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0].to(kB)}; });
  std::vector<float> values(size_t(n), 0.0f);
  for (int i = 1; i < 3; i++) {
    values.front() = values.back() = float(i);
    Tensor y;
    {
      const Tensor x = Tensor::from(values, {n}, {.device = kA});
      y = jit({x})[0];
    }
    for (const char* device : {kA, kB}) Device::get(device)->hcq().allocator().trim();
    { const Tensor gone = jit({Tensor::from(values, {n}, {.device = kA})})[0]; }
    for (const char* device : {kA, kB}) Device::get(device)->hcq().allocator().trim();
    const Tensor part = y.slice(0, n - 1, n) + y.slice(0, 0, 1);
    ASSERT_EQ(part.item(), 2 * i);
  }
}

std::string setting_name(const testing::TestParamInfo<Setting>& info) {
  std::string name = info.param.machine;
  if (std::strcmp(info.param.aql, "1") == 0) name += "_aql";
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Settings, Peers, testing::ValuesIn(kSettings), setting_name);

// ---- a GPU that is lost

struct Loss {
  bool a = false, b = false;
  std::string message;
};

// Trains until something is lost, replays in flight; then looks at what the other GPU still can.
Loss train_until_lost() {
  Loss loss;
  const std::shared_ptr<Device> a = Device::get(kA), b = Device::get(kB);
  try {
    SplitStep step(kA, kB);
    Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
    const std::vector<Tensor> in = step.inputs();
    for (int i = 0; i < 4; i++) {
      std::vector<Tensor> held;
      for (int k = 0; k < 3; k++) held.push_back(jit(in)[0]);
      for (const Tensor& t : held) t.item();
    }
    step.weights();  // what nobody asks for is lost in silence
  } catch (const DeviceLost& e) {
    loss.message = e.what();
  }
  loss.a = a->hcq().lost();
  loss.b = b->hcq().lost();
  return loss;
}

// Wherever it happens, the error names that GPU and no other; the other one computes on, at once.
TEST(LostPeer, IsToldByNameAndTheOtherGoesOn) {
  const EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "20000");
  size_t of_a = 0, of_b = 0;
  uint64_t longest_ns = 0;
  for (const char* seed : {"", ",seed:5"}) {
    for (uint64_t packet = 40; packet < 3000; packet += 101) {
      const std::string machine = fmt::format("gpus:2,reset:{}{}", packet, seed);
      SCOPED_TRACE(machine);
      const Machine m({machine.c_str()});
      const uint64_t begin = os::monotonic_ns();
      const Loss loss = train_until_lost();
      longest_ns = std::max(longest_ns, os::monotonic_ns() - begin);
      ASSERT_FALSE(loss.a && loss.b) << loss.message;
      if (!loss.a && !loss.b) continue;  // it was over before
      const char *lost = loss.a ? kA : kB, *other = loss.a ? kB : kA;
      EXPECT_EQ(loss.message.rfind(lost, 0), 0u) << loss.message;
      EXPECT_NE(loss.message.find("reset of the whole GPU"), std::string::npos) << loss.message;
      EXPECT_EQ(Tensor::full({4}, 3.0, {.device = other}).exp().log().sum().item(), 12);
      (loss.a ? of_a : of_b)++;
    }
  }
  EXPECT_GT(of_a, 2u);
  EXPECT_GT(of_b, 2u);
  EXPECT_LT(longest_ns, 10'000'000'000u) << "somebody waited for a device that was lost";
  printf("%zu losses of the first GPU, %zu of the second; the longest run took %.1f s\n", of_a,
         of_b, double(longest_ns) / 1e9);
}

// Copies back and forth until one of the two is lost, without a graph.
TEST(LostPeer, IsToldByEagerCopies) {
  const EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "20000");
  size_t of_a = 0, of_b = 0;
  for (uint64_t packet = 20; packet < 400; packet += 13) {
    // A setting's machine stays what it became: not one of the test before.
    const std::string machine = fmt::format("gpus:2,vram:8192,reset:{}", packet);
    SCOPED_TRACE(machine);
    const Machine m({machine.c_str()});
    const std::shared_ptr<Device> a = Device::get(kA), b = Device::get(kB);
    std::string message;
    try {
      Tensor x = Tensor::from(test::numbers(500, 1), {500}, {.device = kA});
      for (int i = 0; i < 40; i++) x = (x.to(kB) * 2).to(kA).realize();
      x.to_vector<float>();
    } catch (const DeviceLost& e) {
      message = e.what();
    }
    const bool lost_a = a->hcq().lost(), lost_b = b->hcq().lost();
    ASSERT_NE(lost_a, lost_b) << message;
    EXPECT_EQ(message.rfind(lost_a ? kA : kB, 0), 0u) << message;
    const char* other = lost_a ? kB : kA;
    EXPECT_EQ(Tensor::full({4}, 3.0, {.device = other}).exp().log().sum().item(), 12);
    (lost_a ? of_a : of_b)++;
  }
  EXPECT_GT(of_a, 2u);
  EXPECT_GT(of_b, 2u);
}

}  // namespace
}  // namespace tuff::engine

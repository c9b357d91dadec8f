// Which queue each captured call goes to, and which segments wait for which.
#include "engine/jit/plan.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/env.h"
#include "engine/realize/capture.h"
#include "engine/split_step.h"

namespace tuff::engine {
namespace {

constexpr const char* kA = "CPU";
constexpr const char* kB = "SHUFFLE:visible";
constexpr const char* kHidden = "SHUFFLE";

// What run() realizes, as calls. Everything it starts from has to have its memory already.
template <class Run>
std::vector<BoundCall> capture(const Run& run) {
  Capture capture;
  run();
  return capture.take();
}

Tensor ones(const std::string& device, int64_t n = 16) {
  return Tensor::from(test::numbers(size_t(n), 3), {n}, {.device = device});
}

// One that folds what another has folded along the other axis.
Tensor two_kernels(const Tensor& x) { return x.reshape({2, -1}).sum({0}).exp().sum(); }

// One line a segment: its queue, how many calls, and what it waits for.
std::string text(const SegmentPlan& plan) {
  std::string out;
  for (size_t s = 0; s < plan.segments.size(); s++) {
    const PlannedSegment& segment = plan.segments[s];
    const PlannedQueue& q = plan.queues[segment.queue];
    const char* kinds[] = {"compute", "copy", "host"};
    const char* roles[] = {"entry", "work", "exit"};
    out += fmt::format("{}: {} {} {} x{}", s, q.device->name(), kinds[int(q.kind)],
                       roles[int(segment.role)], segment.work.size());
    for (size_t a : segment.after) out += fmt::format(" after {}", a);
    out += "\n";
  }
  return out;
}

TEST(Plan, OneDeviceIsOneQueue) {
  const Tensor x = ones(kA);
  const auto calls = capture([&] { two_kernels(x).realize(); });
  EXPECT_TRUE(plan_segments(calls, {}).simple());
  EXPECT_TRUE(plan_segments({}, {}).simple());
}

TEST(Plan, ACopyWaitsForWhatMakesItsSourceAndItsReadersWaitForIt) {
  const Tensor x = ones(kA);
  const auto calls = capture([&] { ((x * 2).to(kB) + 1).realize(); });
  EXPECT_EQ(text(plan_segments(calls, {})),
            "0: CPU compute entry x0\n"
            "1: SHUFFLE:visible compute entry x0\n"
            "2: CPU compute work x1\n"
            "3: SHUFFLE:visible host work x1 after 2 after 1\n"
            "4: SHUFFLE:visible compute work x1 after 3\n"
            "5: CPU compute exit x0 after 3\n");
}

TEST(Plan, IndependentWorkOfTwoDevicesWaitsForNothing) {
  const Tensor x = ones(kA), y = ones(kB);
  const auto calls = capture([&] { Tensor::realize({x.sum() + x, y.sum() + y}); });
  const SegmentPlan plan = plan_segments(calls, {});
  EXPECT_EQ(plan.segments.size(), 4u) << text(plan);
  for (const PlannedSegment& s : plan.segments) EXPECT_TRUE(s.after.empty()) << text(plan);
}

// What comes later on a device than what another waits for does not hold that one up.
TEST(Plan, WorkAfterACopysSourceIsASegmentOfItsOwn) {
  const Tensor x = ones(kA);
  const auto calls = capture([&] {
    const Tensor moved = (x * 2).to(kB);
    moved.contiguous().realize();
    two_kernels(x).realize();
  });
  const SegmentPlan plan = plan_segments(calls, {});
  const std::string t = text(plan);
  EXPECT_NE(t.find("2: CPU compute work x1\n"), std::string::npos) << t;
  EXPECT_NE(t.find("CPU compute work x2\n"), std::string::npos) << t;
}

TEST(Plan, MemoryWithoutHostPointerGoesThroughStagingOnTheCopyQueue) {
  const Tensor x = ones(kHidden);
  const auto calls = capture([&] { ((x * 2).to(kA) + 1).realize(); });
  EXPECT_EQ(text(plan_segments(calls, {})),
            "0: SHUFFLE compute entry x0\n"
            "1: CPU compute entry x0\n"
            "2: SHUFFLE compute work x1\n"
            "3: SHUFFLE copy work x1 after 2\n"
            "4: CPU host work x1 after 3 after 1\n"
            "5: CPU compute work x1 after 4\n"
            "6: SHUFFLE compute exit x0 after 4\n");
}

// Two GPUs have the copy queue of the source's between them, or both their staging memories.
TEST(Plan, GpusThatReachEachOtherCopyWithoutTheHost) {
  EnvOverride iface(Env::AMD_IFACE, "MOCK");
  for (const bool reach : {true, false}) {
    EnvOverride machine(Env::TUFF_MOCK, reach ? "gpus:2" : "gpus:2,bar:0");
    {
      const Tensor x = ones("AMD:0");
      const auto calls = capture([&] { ((x * 2).to("AMD:1") + 1).realize(); });
      EXPECT_EQ(text(plan_segments(calls, {})), reach ? "0: AMD:0 compute entry x0\n"
                                                        "1: AMD:1 compute entry x0\n"
                                                        "2: AMD:0 compute work x1\n"
                                                        "3: AMD:0 copy work x1 after 2 after 1\n"
                                                        "4: AMD:1 compute work x1 after 3\n"
                                                        "5: AMD:0 compute exit x0 after 3\n"
                                                      : "0: AMD:0 compute entry x0\n"
                                                        "1: AMD:1 compute entry x0\n"
                                                        "2: AMD:0 compute work x1\n"
                                                        "3: AMD:0 copy work x1 after 2\n"
                                                        "4: AMD:1 host work x1 after 3 after 1\n"
                                                        "5: AMD:1 copy work x1 after 4\n"
                                                        "6: AMD:1 compute work x1 after 5\n"
                                                        "7: AMD:0 compute exit x0 after 4\n");
      // Waits stand for bytes: an input is one more segment, which is encoded with each replay.
      const auto& src = std::get<BoundCopy>(calls[1]).src;
      const SegmentPlan plan = plan_segments(calls, {&src, 1});
      EXPECT_TRUE(plan.segments[3].rebinds);
    }
    close_devices();
  }
}

TEST(Plan, LargeCopiesBesideKernelsGoToTheCopyQueue) {
  Tensor x = ones(kB, 64), kept = ones(kB, 64), y = ones(kB, 64);
  x.realize(), kept.realize(), y.realize();
  const auto calls = capture([&] {
    kept.assign(x);
    Tensor::realize({kept, two_kernels(y)});
  });
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_TRUE(plan_segments(calls, {}).simple()) << "256 bytes are not worth it";
  const SegmentPlan plan = plan_segments(calls, {}, 256);
  const std::string t = text(plan);
  EXPECT_NE(t.find("copy work x1 after 0\n"), std::string::npos) << t;
  EXPECT_NE(t.find("compute work x2\n"), std::string::npos) << t;
  EXPECT_NE(t.find("compute exit x0 after"), std::string::npos) << t;
}

// No wait that another one implies.
TEST(Plan, OfATrainingStepNamesNoWaitTwice) {
  test::SplitStep step(kA, kB);
  const std::vector<Tensor> in = step.inputs();
  step(in);
  const auto calls = capture([&] { step(in); });
  const SegmentPlan plan = plan_segments(calls, {});
  size_t planned = 0;
  std::vector<std::vector<bool>> before;
  std::vector<size_t> newest(plan.queues.size(), SIZE_MAX);
  for (size_t s = 0; s < plan.segments.size(); s++) {
    const PlannedSegment& segment = plan.segments[s];
    planned += segment.work.size();
    std::vector<bool> over(s + 1);
    const auto add = [&](size_t d) {
      over[d] = true;
      for (size_t i = 0; i < d; i++)
        if (before[d][i]) over[i] = true;
    };
    if (newest[segment.queue] != SIZE_MAX) add(newest[segment.queue]);
    for (size_t d : segment.after) {
      EXPECT_FALSE(over[d]) << text(plan);
      EXPECT_NE(plan.segments[d].queue, segment.queue);
      add(d);
    }
    newest[segment.queue] = s;
    before.push_back(over);
  }
  EXPECT_EQ(planned, calls.size());
}

}  // namespace
}  // namespace tuff::engine

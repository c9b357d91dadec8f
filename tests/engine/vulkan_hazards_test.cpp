// What a Vulkan device was really told to do, proven free of hazards: training steps, eager and
// replayed, recorded beneath the function table. Every recorded barrier is deleted once.
#include <gtest/gtest.h>

#include "engine/small_steps.h"
#include "engine/vulkan_recording.h"
#include "hcq/hazard_oracle.h"
#include "tensor/devices.h"
#include "tensor/impl.h"

namespace tuff::engine {
namespace {

using hcq::CommandList;
using hcq::HazardReport;
using hcq::Trace;

class VulkanHazards : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Device> device() const { return Device::get(GetParam()); }
};

// One replay alone.
Trace alone(const CommandList& list) {
  Trace t;
  t.events.emplace_back(hcq::Submission{.list = &list});
  t.order = hcq::SubmissionOrder::Overlapping;
  return t;
}

struct Counts {
  size_t deleted = 0, needed = 0, found = 0;
};

// Deletes what orders, one by one: what the oracle calls needed the checker has to find, and
// nothing else.
Counts delete_each(const Trace& trace, const CommandList& list) {
  Counts n;
  for (size_t c = 0; c < list.commands.size(); c++) {
    if (!hcq::test::only_orders(list.commands[c])) continue;
    const hcq::test::Mutant m = hcq::test::without(trace, list, c);
    const hcq::test::Verdict truth = hcq::test::oracle(m.trace);
    const HazardReport report = check_hazards(m.trace);
    EXPECT_EQ(hcq::test::verdict(report).hazards, truth.hazards) << "without command " << c;
    n.deleted++;
    n.needed += !truth.clean();
    n.found += !report.clean();
  }
  return n;
}

void know(VulkanRecording& recording, const CapturedGraph& graph) {
  for (const hcq::CommandGraph* g : graph.graphs()) {
    for (const hcq::Command& c : g->commands().commands) {
      if (const auto* d = std::get_if<hcq::DispatchCmd>(&c.body)) recording.know(*d->args.block);
    }
  }
}

template <class Step>
void prove(Device& device, const char* what) {
  Step step(device.name());
  const std::vector<BoundCall> calls = calls_of_a_step(step);
  device.queue().wait_idle();
  VulkanRecording recording(device);
  recording.know(calls);
  execute(calls);
  const CapturedGraph captured(calls, {});
  know(recording, captured);
  CapturedGraph& graph = const_cast<CapturedGraph&>(captured);
  for (int i = 0; i < 5; i++) graph.replay({});
  execute(calls);
  device.queue().wait_idle();
  const Trace all = recording.trace();
  const HazardReport report = check_hazards(all);
  EXPECT_TRUE(report.clean()) << to_text(report, 10);
  EXPECT_GE(recording.lists().size(), 7u);

  const CommandList& replay = *recording.lists().at(recording.lists().size() - 3);
  const Trace one = alone(replay);
  ASSERT_TRUE(check_hazards(one).clean());
  const Counts n = delete_each(one, replay);
  printf(
      "%s as %s was told it: %zu commands, %zu recorded barriers deleted one by one, %zu needed, "
      "%zu found, %zu not needed inside one submission\n",
      what, device.name().c_str(), replay.commands.size(), n.deleted, n.needed, n.found,
      n.deleted - n.needed);
  EXPECT_EQ(n.found, n.needed);
  EXPECT_GT(n.needed, 10u);
  EXPECT_LE(n.deleted - n.needed, 1u) << "only the one at the head, against what came before";
}

TEST_P(VulkanHazards, AGptStepAsItWasRecorded) { prove<GptStep>(*device(), "GPT step"); }
TEST_P(VulkanHazards, AConvNetStepAsItWasRecorded) {
  prove<ConvNetStep>(*device(), "ConvNet step");
}

// What the host happens to see when it polls orders things too, one time so and the next otherwise:
// only the waits right before its own accesses stay.
void keep_waits_of_accesses(Trace& trace) {
  bool access = false;
  for (size_t e = trace.events.size(); e-- > 0;) {
    const auto* host = std::get_if<hcq::HostAccess>(&trace.events[e]);
    if (host && host->label.find("arguments") == std::string::npos) {
      access = true;
    } else if (!std::holds_alternative<hcq::HostWait>(trace.events[e])) {
      access = false;
    } else if (!access) {
      trace.events.erase(trace.events.begin() + std::ptrdiff_t(e));
    }
  }
}

// Replays, host reads and writes between: the barrier at the head of a command buffer and the
// host's waits are what orders them.
TEST_P(VulkanHazards, BetweenSubmissionsAndTheHost) {
  const std::shared_ptr<Device> d = device();
  const TensorOptions on{.device = d->name()};
  Tensor sum = Tensor::zeros({64}, on).realize();
  const Tensor in = Tensor::ones({64}, on).realize();
  auto step = [&] { sum.assign(sum * 0.5 + in.flip({0})); };
  step();
  sum.realize();
  Capture capture;
  step();
  sum.realize();
  const std::vector<BoundCall> calls = capture.take();
  const Ref<Buffer> out = tuff::detail::buffer_of(sum), given = tuff::detail::buffer_of(in);
  d->queue().wait_idle();

  VulkanRecording recording(*d);
  recording.know(calls);
  CapturedGraph graph(calls, {});
  know(recording, graph);
  // Elsewhere it reads and writes by copies, between two submissions that are not recorded here.
  const bool host_reaches = given->span().host();
  std::vector<float> values(64);
  for (int i = 0; i < 6; i++) {
    graph.replay({});
    if (host_reaches && i == 2) {
      out->copyout(values.data());
      recording.host(out->span(), false, "host reads the sum");
    }
    if (host_reaches && i == 3) {
      given->copyin(values.data());
      recording.host(given->span(), true, "host writes the input");
    }
  }
  execute(calls);
  d->queue().wait_idle();
  Trace trace = recording.trace();
  EXPECT_TRUE(check_hazards(trace).clean()) << to_text(check_hazards(trace), 10);
  keep_waits_of_accesses(trace);
  EXPECT_TRUE(check_hazards(trace).clean()) << to_text(check_hazards(trace), 10);

  size_t barriers = 0;
  for (const CommandList* list : recording.lists()) {
    const Counts n = delete_each(trace, *list);
    EXPECT_EQ(n.found, n.needed);
    barriers += n.needed;
  }
  EXPECT_EQ(barriers, host_reaches ? 4u : 6u)
      << "the first comes after nothing, two after waits of the host";

  // The host's waits, one by one.
  size_t waits = 0, needed = 0;
  for (size_t e = 0; e < trace.events.size(); e++) {
    if (!std::holds_alternative<hcq::HostWait>(trace.events[e])) continue;
    Trace mutant = trace;
    mutant.events.erase(mutant.events.begin() + std::ptrdiff_t(e));
    const HazardReport report = check_hazards(mutant);
    EXPECT_EQ(report.clean(), hcq::test::oracle(mutant).clean()) << "without event " << e;
    waits++;
    needed += !report.clean();
  }
  Trace bare = trace;
  std::erase_if(bare.events,
                [](const hcq::TraceEvent& e) { return std::holds_alternative<hcq::HostWait>(e); });
  EXPECT_EQ(check_hazards(bare).clean(), !host_reaches) << "no wait of the host is recorded as one";
  printf("%zu submissions: %zu barriers needed, %zu host waits of which each alone: %zu needed\n",
         recording.lists().size(), barriers, waits, needed);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanHazards);
INSTANTIATE_TEST_SUITE_P(Devices, VulkanHazards, testing::ValuesIn(test::vulkan_devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

}  // namespace
}  // namespace tuff::engine

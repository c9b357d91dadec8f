// CommandGraph on a fake device: re-binding, symbolic launches, staging, instances, refusals.
#include <gtest/gtest.h>

#include "fake_device.h"
#include "hcq/graph.h"

namespace tuff::hcq {
namespace {

struct Args {
  const float* in;
  float* out;
  int32_t add;
};
Args read_args(const std::byte* p) {
  Args a;
  std::memcpy(&a.in, p, 8);
  std::memcpy(&a.out, p + 8, 8);
  std::memcpy(&a.add, p + 16, 4);
  return a;
}
// out[i] = in[i] + add, one element per group
void add_kernel(const std::byte* args, std::array<uint32_t, 3> groups) {
  Args a = read_args(args);
  for (uint32_t i = 0; i < groups[0]; ++i) a.out[i] = a.in[i] + static_cast<float>(a.add);
}

class Graph : public testing::TestWithParam<bool> {
 protected:
  Span floats(size_t n) { return device.allocator().allocate(n * 4, MemoryKind::Device); }
  std::vector<float> read(Span s) {
    std::vector<float> v(s.size_bytes / 4);
    device.download(s, v.data());
    return v;
  }
  static LaunchOperand fixed(Span s, bool write) { return {s, -1, 0, s.size_bytes, !write, write}; }
  static LaunchOperand input(int32_t slot, size_t offset, size_t size) {
    return {{}, slot, offset, size, true, false};
  }
  FakeDevice device{{.hidden = GetParam(), .manual = true, .run_on_wait = true}};
  FakeProgram add{"add", 2, 1, add_kernel};
};

TEST_P(Graph, ReboundInputsScalarsAndLaunchSizes) {
  Span middle = floats(8), result = floats(8), saved = floats(8);
  std::vector<float> zeros(8, -1.0f);
  device.upload(result, zeros.data());
  std::vector<GraphNode> nodes;
  nodes.push_back(Launch{&add, {input(0, 16, 16), fixed(middle, true)}, {{0, 0}}, {4, 1, 1}});
  nodes.push_back(Launch{
      &add, {fixed(middle, false), fixed(result, true)}, {{100, -1}}, {1, 1, 1}, {1, -1, -1}});
  nodes.push_back(Transfer{fixed(saved, true), fixed(result, false)});
  CommandGraph graph(device, nodes, 1, 2, 2);
  EXPECT_EQ(graph.stats().kernels, 2u);
  EXPECT_EQ(graph.stats().copies, 1u);
  EXPECT_EQ(graph.stats().patches, 3u);
  EXPECT_EQ(graph.stats().barriers, GetParam() ? 3u : 2u);
  int encoded = device.compute_queue().encoded;
  for (int round = 0; round < 5; ++round) {
    Span in = floats(8);
    std::vector<float> values(8);
    for (int i = 0; i < 8; ++i) values[static_cast<size_t>(i)] = static_cast<float>(10 * round + i);
    device.upload(in, values.data());
    encoded = device.compute_queue().encoded;
    int64_t count = 1 + round % 4;
    uint64_t address[] = {in.address()};
    int64_t scalars[] = {round, count};
    device.upload(result, zeros.data());
    encoded = device.compute_queue().encoded;
    uint64_t value = graph.replay(address, scalars);
    EXPECT_EQ(device.compute_queue().encoded, encoded);
    device.compute_queue().wait(value);
    std::vector<float> got = read(saved);
    for (size_t i = 0; i < 8; ++i) {
      float expected = i < static_cast<size_t>(count)
                           ? values[i + 4] + static_cast<float>(round) + 100.0f
                           : -1.0f;
      EXPECT_EQ(got[i], expected) << "round " << round << " element " << i;
    }
    device.allocator().free(in);
  }
  for (Span s : {middle, result, saved}) device.allocator().free(s);
}

TEST_P(Graph, InstancesInFlightKeepTheirOwnArguments) {
  Span out = floats(1);
  std::vector<float> seen;
  FakeProgram record{"record", 2, 1, [&](const std::byte* p, auto groups) {
                       add_kernel(p, groups);
                       seen.push_back(*read_args(p).out);
                     }};
  Span in = floats(1);
  float one = 1.0f;
  device.upload(in, &one);
  CommandGraph graph(device, {Launch{&record, {input(0, 0, 4), fixed(out, true)}, {{0, 0}}}},
                     1, 1, 2);
  auto& queue = device.compute_queue();
  uint64_t base = queue.timeline().value(), address[] = {in.address()};
  auto replay = [&](int64_t x) { return graph.replay(address, std::array<int64_t, 1>{x}); };
  replay(10);
  replay(20);
  EXPECT_EQ(queue.timeline().value(), base);  // neither waited
  uint64_t last = replay(30);
  EXPECT_EQ(queue.timeline().value(), base + 1);  // the third waited for the first alone
  queue.wait(last);
  EXPECT_EQ(seen, (std::vector<float>{11, 21, 31}));
  device.allocator().free(in);
  device.allocator().free(out);
}

// Arguments are written where they change: of each instance, and after a replay that was refused.
TEST_P(Graph, ValuesThatComeAgainReachEveryInstance) {
  Span in = floats(1), out = floats(1);
  std::vector<int32_t> seen;
  FakeProgram record{"record", 2, 1,
                     [&](const std::byte* p, auto) { seen.push_back(read_args(p).add); }};
  CommandGraph graph(device, {Launch{&record, {input(0, 0, 4), fixed(out, true)}, {{0, 0}}}},
                     1, 1, 2);
  const uint64_t address[] = {in.address()};
  const auto replay = [&](int64_t x) { return graph.replay(address, std::array<int64_t, 1>{x}); };
  std::vector<int32_t> given;
  for (const bool at_once : {true, false}) {
    for (const int32_t x : {1, 1, 1, 2, 2, 3, 2, 2, 2, 1, 1}) {
      given.push_back(x);
      const uint64_t value = replay(x);
      if (at_once) device.compute_queue().wait(value);
      EXPECT_THROW(replay(int64_t{1} << 40), InvalidArgument);
    }
    device.compute_queue().wait_idle();
  }
  EXPECT_EQ(seen, given);
  device.allocator().free(in);
  device.allocator().free(out);
}

TEST_P(Graph, ReplaysThatAreWaitedForUseOneInstance) {
  Span in = floats(1), out = floats(1);
  std::vector<const std::byte*> blocks;
  FakeProgram record{"record", 2, 1, [&](const std::byte* p, auto) { blocks.push_back(p); }};
  CommandGraph graph(device, {Launch{&record, {input(0, 0, 4), fixed(out, true)}, {{0, 0}}}},
                     1, 1, 2);
  const uint64_t address[] = {in.address()};
  const int64_t scalar[] = {1};
  auto replay = [&] { return graph.replay(address, scalar); };
  device.compute_queue().wait(replay());
  device.compute_queue().wait(replay());
  replay();
  device.compute_queue().wait(replay());
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0], blocks[1]);
  EXPECT_EQ(blocks[1], blocks[2]);
  EXPECT_NE(blocks[2], blocks[3]);  // the third had not completed
  device.allocator().free(in);
  device.allocator().free(out);
}

TEST_P(Graph, PatchedBlocksStandTogether) {
  Span in = floats(1), out = floats(1);
  std::vector<GraphNode> nodes(
      100, Launch{&add, {fixed(out, false), fixed(out, true)}, {{0, -1}}, {1, 1, 1}});
  for (size_t i : {20, 70})
    nodes[i] = Launch{&add, {input(0, 0, 4), fixed(out, true)}, {{0, -1}}, {1, 1, 1}};
  CommandGraph graph(device, nodes, 1, 0);
  std::vector<uint64_t> blocks;
  for (const Command& c : graph.commands().commands)
    if (const auto* d = std::get_if<DispatchCmd>(&c.body)) blocks.push_back(d->args.address());
  ASSERT_EQ(blocks.size(), 100u);
  EXPECT_EQ(blocks[70], blocks[20] + 64);
  EXPECT_EQ(blocks[0], blocks[20] + 128);
  device.allocator().free(in);
  device.allocator().free(out);
}

// The input that a replay is refused for, or -1.
int32_t conflicting_input(CommandGraph& graph, std::span<const uint64_t> addresses,
                          std::span<const uint64_t> sizes = {}) {
  try {
    graph.replay(addresses, {}, sizes);
    return -1;
  } catch (const InvalidArgument& e) {
    int32_t input = -2;
    EXPECT_EQ(std::sscanf(e.what(), "graph replay: input %d overlaps", &input), 1) << e.what();
    return input;
  }
}

TEST_P(Graph, InputsThatAliasWrittenMemoryAreRefused) {
  Span x = floats(8), y = floats(8);
  CommandGraph graph(
      device, {Launch{&add, {input(0, 0, 16), fixed(y, true)}, {{0, -1}}, {4, 1, 1}}}, 1, 0);
  uint64_t good[] = {x.address()}, bad[] = {y.address()}, far[] = {y.address() + 32};
  EXPECT_EQ(conflicting_input(graph, good), -1);
  EXPECT_EQ(conflicting_input(graph, bad), 0);
  EXPECT_EQ(conflicting_input(graph, far), -1);
  EXPECT_THROW(graph.replay(bad, {}), InvalidArgument);
  EXPECT_NO_THROW(graph.replay(good, {}));
  device.allocator().free(x);
  device.allocator().free(y);
}

TEST_P(Graph, InputsAreFoundFreeOfConflictsForThemselvesAlone) {
  Span all = floats(64), y = floats(8);
  CommandGraph graph(
      device, {Launch{&add, {input(0, 0, 16), fixed(y, true)}, {{0, -1}}, {4, 1, 1}}}, 1, 0);
  const uint64_t bad[] = {y.address()}, size[] = {16}, none[] = {0};
  for (int round = 0; round < 2; round++) {
    for (uint64_t i = 0; i < 8; i++) {
      const uint64_t good[] = {all.address() + 32 * i};
      EXPECT_NO_THROW(graph.replay(good, {}));
      EXPECT_NO_THROW(graph.replay(good, {}, size));
      EXPECT_THROW(graph.replay(bad, {}), InvalidArgument);
      EXPECT_NO_THROW(graph.replay(bad, {}, none));
      EXPECT_THROW(graph.replay(bad, {}, size), InvalidArgument);
    }
  }
  device.allocator().free(all);
  device.allocator().free(y);
}

TEST_P(Graph, WrongArityAndRangesAreRefused) {
  Span x = floats(8), y = floats(8);
  CommandGraph graph(
      device,
      {Launch{&add, {input(0, 0, 16), fixed(y, true)}, {{0, 0}}, {1, 1, 1}, {1, -1, -1}}}, 1,
      2);
  uint64_t in[] = {x.address()};
  auto with = [&](int64_t a, int64_t b) { return graph.replay(in, std::array<int64_t, 2>{a, b}); };
  EXPECT_THROW(graph.replay({}, {}), InvalidArgument);
  EXPECT_THROW(with(int64_t{1} << 31, 1), InvalidArgument);
  EXPECT_THROW(with(0, -1), InvalidArgument);
  EXPECT_THROW(with(0, 70'000), InvalidArgument);
  EXPECT_NO_THROW(with(-5, 4));
  EXPECT_THROW(CommandGraph(device, {Transfer{input(0, 0, 32), fixed(y, false)}}, 1, 0),
               InvalidArgument);
  device.allocator().free(x);
  device.allocator().free(y);
}

TEST_P(Graph, AccessesNameArgumentsAndInputs) {
  Span y = floats(8);
  CommandGraph graph(
      device,
      {Launch{&add, {input(0, 4, 16), fixed(y, true)}, {{0, -1}}, {1, 1, 1}, {0, -1, -1}}}, 1,
      1);
  const Command& c = graph.commands().commands.back();
  const auto& d = std::get<DispatchCmd>(c.body);
  ASSERT_EQ(c.accesses.size(), 4u);
  EXPECT_EQ(c.accesses[0].span.address(), d.args.address());
  EXPECT_EQ(c.accesses[1].span.address(), d.indirect.address());
  EXPECT_EQ(c.accesses[2].span.offset, 4u);
  EXPECT_EQ(c.accesses[2].span.size_bytes, 16u);
  EXPECT_TRUE(c.accesses[3].write);
  device.allocator().free(y);
}

// out[i] = in[i] + add where the launch size and the scalar are computed from one given value.
TEST_P(Graph, SizesAreComputedOncePerReplay) {
  Span in = floats(16), out = floats(16);
  const std::vector<float> ones(16, 1.0f), untouched(16, -1.0f);
  device.upload(in, ones.data());
  SlotProgram sizes(1);
  const auto twice = int32_t(sizes.append(ir::Op::Mul, 0, sizes.constant(2)));
  std::vector<GraphNode> nodes(
      10, Launch{&add, {input(0, 0, 64), fixed(out, true)}, {{0, twice}}, {1, 1, 1}});
  for (GraphNode& n : nodes) std::get<Launch>(n).group_slots = {twice, -1, -1};
  CommandGraph graph(device, nodes, 1, sizes);
  EXPECT_EQ(graph.stats().patches, 30u);
  const uint64_t address[] = {in.address()};
  for (int64_t n : {3, 0, 8, 1}) {
    device.upload(out, untouched.data());
    device.compute_queue().wait(graph.replay(address, {{n}}));
    const std::vector<float> got = read(out);
    for (int64_t i = 0; i < 16; i++)
      EXPECT_EQ(got[size_t(i)], i < 2 * n ? float(1 + 2 * n) : -1.0f) << n << " element " << i;
  }
  const int64_t most = device.target().max_groups[0];
  EXPECT_THROW(graph.replay(address, {{most / 2 + 1}}), InvalidArgument);
  EXPECT_THROW(graph.replay(address, {{-1}}), InvalidArgument);
  EXPECT_THROW(graph.replay(address, {{int64_t(1) << 31}}), InvalidArgument);
  device.allocator().free(in);
  device.allocator().free(out);
}

// The same on a queue whose launches hold their sizes: they come behind the values of signals.
TEST(GraphGroupSlots, SizesComeFromSlotsOfTheList) {
  FakeDevice device({.group_slots = true});
  FakeProgram add{"add", 2, 1, add_kernel};
  FakeSignal ended;
  const Span in = device.allocator().allocate(64, MemoryKind::Device);
  const Span out = device.allocator().allocate(64, MemoryKind::Device);
  const std::vector<float> ones(16, 1.0f), untouched(16, -1.0f);
  device.upload(in, ones.data());
  SlotProgram sizes(1);
  const auto twice = int32_t(sizes.append(ir::Op::Mul, 0, sizes.constant(2)));
  const LaunchOperand from{in, -1, 0, 64, true, false}, to{out, -1, 0, 64, false, true};
  std::vector<GraphNode> nodes;
  for (int32_t slot : {twice, 0, twice}) {
    nodes.push_back(Launch{&add, {from, to}, {{0, slot}}, {1, 1, 1}, {slot, -1, -1}});
  }
  GraphPlace place;
  place.signals = {&ended};
  CommandGraph graph(device, nodes, 0, sizes, 2, {}, place);
  EXPECT_EQ(graph.stats().patches, 3u);
  EXPECT_EQ(graph.commands().slot_count, 3u);  // the signal's, two sizes
  for (const Command& c : graph.commands().commands) {
    if (const auto* d = std::get_if<DispatchCmd>(&c.body)) {
      EXPECT_FALSE(d->indirect);
      EXPECT_GT(d->group_slots[0], 0);
    }
  }
  uint64_t point = 0;
  for (int64_t n : {3, 0, 8, 1}) {
    device.upload(out, untouched.data());
    const uint64_t points[] = {++point};
    device.compute_queue().wait(graph.replay({}, {{n}}, {}, points));
    EXPECT_EQ(ended.value(), point);
    std::vector<float> got(16);
    device.download(out, got.data());
    for (int64_t i = 0; i < 16; i++)
      EXPECT_EQ(got[size_t(i)], i < 2 * n ? float(1 + 2 * n) : -1.0f) << n << " element " << i;
  }
  device.allocator().free(in);
  device.allocator().free(out);
}

TEST_P(Graph, AnInputConflictsAsFarAsItReaches) {
  Span both = floats(16);
  const Span in = both.sub(0, 16), out = both.sub(16, 48);
  CommandGraph graph(device, {Launch{&add, {input(0, 0, 64), fixed(out, true)}, {{1, -1}}}}, 1,
                     0);
  const uint64_t address[] = {in.address()}, small[] = {16}, larger[] = {20};
  EXPECT_EQ(conflicting_input(graph, address), 0);
  EXPECT_EQ(conflicting_input(graph, address, larger), 0);
  EXPECT_EQ(conflicting_input(graph, address, small), -1);
  EXPECT_NO_THROW(device.compute_queue().wait(graph.replay(address, {}, small)));
  // What was accepted of a part is not accepted of more of it, nor of the whole.
  EXPECT_THROW(graph.replay(address, {}, larger), InvalidArgument);
  EXPECT_THROW(graph.replay(address, {}), InvalidArgument);
  EXPECT_NO_THROW(device.compute_queue().wait(graph.replay(address, {}, small)));
  device.allocator().free(both);
}

TEST_P(Graph, TimesOfEveryReplayAreReportedOnceItHasRun) {
  Span a = floats(4), b = floats(4);
  std::vector<GraphNode> nodes;
  nodes.push_back(Launch{&add, {input(0, 0, 16), fixed(a, true)}, {{1, -1}}, {4, 1, 1}});
  nodes.push_back(Launch{&add, {fixed(a, false), fixed(b, true)}, {{1, -1}}, {4, 1, 1}});
  std::vector<std::string> names;
  uint64_t last = 0;
  int reports = 0;
  const auto sink = [&](const CommandList& list, std::span<const uint64_t> times) {
    reports++;
    for (const TimedCommand& c : timed_commands(list, times)) {
      names.push_back(c.command->label);
      EXPECT_GT(c.end_ns, c.begin_ns);
      EXPECT_GE(c.begin_ns, last);
      last = c.end_ns;
    }
  };
  Span in = floats(4);
  const std::vector<float> values(4, 2.0f);
  device.upload(in, values.data());
  const uint64_t address[] = {in.address()};
  {
    CommandGraph graph(device, nodes, 1, 0, 2, sink);
    for (int replay = 0; replay < 3; replay++) graph.replay(address, {});
    EXPECT_EQ(reports, 1);  // the first instance was used again
    graph.report_times();
    EXPECT_EQ(reports, 1) << "what has not run has no times";
    device.compute_queue().wait_idle();
    graph.report_times();
    EXPECT_EQ(reports, 3);
    graph.report_times();
    EXPECT_EQ(reports, 3);
    graph.replay(address, {});
  }
  EXPECT_EQ(reports, 4) << "at destruction";
  const size_t per_replay = GetParam() ? 3 : 2;  // arguments are copied where they are staged
  ASSERT_EQ(names.size(), 4 * per_replay);
  EXPECT_EQ(names[per_replay - 1], "add");
  EXPECT_EQ(read(b), std::vector<float>(4, 4.0f));
}

INSTANTIATE_TEST_SUITE_P(ArgsStaged, Graph, testing::Bool());

}  // namespace
}  // namespace tuff::hcq

// The CPU device: kernels, graphs, rings, signals, threads, exhaustion, lost devices.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/env.h"
#include "base/os.h"
#include "compiled.h"
#include "devices/cpu/cpu.h"
#include "hcq/graph.h"

namespace tuff::devices {
namespace {

using namespace hcq;

// args: two buffers and one scalar. One group does 1000 elements.
const char* kSource = R"(
typedef unsigned int u32;
struct Args { const float* in; float* out; int scalar; };
void add(const struct Args* a, u32 x, u32 y, u32 z) {
  for (u32 i = 0; i < 1000; ++i) a->out[x * 1000 + i] = a->in[x * 1000 + i] + (float)a->scalar;
}
void increment(const struct Args* a, u32 x, u32 y, u32 z) { a->out[0] = a->in[0] + 1.0f; }
struct Grid { u32* out; int nx, ny; };
void mark(const struct Grid* a, u32 x, u32 y, u32 z) { a->out[(z * a->ny + y) * a->nx + x] += 1 + x + 100 * y + 10000 * z; }
void slow_mark(const struct Grid* a, u32 x, u32 y, u32 z) {
  volatile float v = 1.0f;
  for (int i = 0; i < 4000; ++i) v = v * 1.0001f;
  a->out[(z * a->ny + y) * a->nx + x] += 1 + x + 100 * y + 10000 * z;
}
)";

class Cpu : public testing::Test {
 protected:
  Cpu() {
    static const auto object = compile(kSource);
    std::vector<render::Binary> binaries;
    for (const char* name : {"add", "increment"}) binaries.push_back(binary_of(object, name, 2, 1));
    for (const char* name : {"mark", "slow_mark"})
      binaries.push_back(binary_of(object, name, 1, 2));
    programs = device->load(binaries);
  }
  const Program* program(const char* name) const {
    for (auto& p : programs)
      if (p->name() == name) return p.get();
    return nullptr;
  }
  Span memory(size_t bytes) { return device->allocator().allocate(bytes, MemoryKind::Device); }
  static LaunchOperand fixed(Span s, bool read, bool write) {
    return {s, -1, 0, s.size_bytes, read, write};
  }

  static constexpr uint32_t kLongGroups = 600, kLongLaunches = 300;
  // Launches of a few ms each, which add 1 to the first element.
  std::vector<GraphNode> long_list(Span out) const {
    return std::vector<GraphNode>(
        kLongLaunches, Launch{program("slow_mark"),
                          {fixed(out, true, true)},
                          {{int32_t(kLongGroups), -1}, {1, -1}},
                          {kLongGroups, 1, 1}});
  }

  EnvOverride threads{Env::TUFF_THREADS, "3"};
  std::unique_ptr<Device> device = cpu_open("");
  std::vector<std::unique_ptr<Program>> programs;
  Queue& queue = device->compute_queue();
};

// A training step of a large model takes longer than a device may be silent.
TEST_F(Cpu, AListThatGoesOnIsNotSilent) {
  EnvOverride soon(Env::TUFF_TIMEOUT_MS, "300");
  CommandGraph graph(*device, long_list(memory(kLongGroups * 4)), 0, {}, 1);
  const uint64_t begin_ns = os::monotonic_ns();
  EXPECT_NO_THROW(queue.wait(graph.replay({}, {})));
  EXPECT_GT(os::monotonic_ns() - begin_ns, 300'000'000u) << "too short to show anything";
}

// Its memory goes when a device is closed.
TEST_F(Cpu, NothingOfAListRunsOnALostDevice) {
  const Span out = memory(kLongGroups * 4);
  CommandGraph graph(*device, long_list(out), 0, {}, 1);
  graph.replay({}, {});
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  device->declare_lost("by the test");
  const auto* first = static_cast<const volatile uint32_t*>(static_cast<void*>(out.host()));
  const uint32_t then = *first;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(*first, then);
  EXPECT_LT(then, kLongLaunches);
}

TEST_F(Cpu, ProbeNamesTheRemedy) {
  EXPECT_TRUE(cpu_probe()[0].usable);
  EnvOverride none(Env::TUFF_CC, "no-such-compiler");
  Candidate c = cpu_probe()[0];
  EXPECT_FALSE(c.usable);
  EXPECT_NE(c.reason.find("install clang"), std::string::npos);
  EXPECT_EQ(cpu_open("3")->name(), "CPU:3");
  for (const char* selector : {"4", "-1", "11", "x"})
    EXPECT_THROW(cpu_open(selector), InvalidArgument);
}

#if !defined(__SANITIZE_ADDRESS__)
// ulimit -v stands for all limits. Memory that waits in the cache goes before a request is refused.
TEST_F(Cpu, LimitsOfMemoryAreOutOfMemoryThatNamesThem) {
  constexpr size_t kMiB = size_t{1} << 20;
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{pages * os::page_size() + 700 * kMiB, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  std::string error;
  try {
    device->allocator().free(memory(400 * kMiB), {});
    const Span other = memory(500 * kMiB);
    EXPECT_TRUE(other);
    memory(300 * kMiB);
  } catch (const OutOfMemory& e) {
    error = e.what();
  }
  EXPECT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_NE(error.find("request 314572800 bytes"), std::string::npos) << error;
  EXPECT_NE(error.find(fmt::format("the limit is {} (ulimit -v)", limit.rlim_cur)),
            std::string::npos)
      << error;
}
#endif

TEST_F(Cpu, GraphReplaysWithReboundInputsAndScalars) {
  Span middle = memory(8000), out = memory(8000);
  LaunchOperand input{{}, 0, 4000, 8000, true, false};
  CommandGraph graph(
      *device,
      {Launch{program("add"), {input, fixed(middle, false, true)}, {{0, 0}}, {2, 1, 1}},
       Launch{program("add"),
                   {fixed(middle, true, false), fixed(out, false, true)},
                   {{5, -1}},
                   {1, 1, 1},
                   {1, -1, -1}}},
      1, 2, 2);
  EXPECT_EQ(graph.stats().barriers, 1u);
  for (int round = 0; round < 50; ++round) {
    Span in = memory(12000);
    std::vector<float> values(3000), got(2000), before(2000, -7.0f);
    std::iota(values.begin(), values.end(), static_cast<float>(round * 100));
    device->upload(in, values.data());
    device->upload(out, before.data());
    uint64_t address[] = {in.address()};
    int64_t scalars[] = {round, round % 3};
    uint64_t value = graph.replay(address, scalars);
    device->allocator().free(in, {&queue, value});  // returns when the replay has passed
    device->download(out, got.data());
    for (size_t i = 0; i < 2000; ++i) {
      bool computed = i < 1000u * static_cast<size_t>(round % 3);
      ASSERT_EQ(got[i], computed ? values[1000 + i] + static_cast<float>(round) + 5.0f : -7.0f)
          << round << " " << i;
    }
  }
}

TEST_F(Cpu, TwoInstancesInFlight) {
  Span cell = memory(4);
  float zero = 0;
  device->upload(cell, &zero);
  std::vector<GraphNode> nodes(
      100,
      Launch{
          program("increment"), {fixed(cell, true, false), fixed(cell, false, true)}, {{0, -1}}});
  CommandGraph graph(*device, nodes, 0, 0, 2);
  uint64_t last = 0;
  for (int i = 0; i < 200; ++i) last = graph.replay({}, {});
  queue.wait(last);
  float got;
  device->download(cell, &got);
  EXPECT_EQ(got, 20000.0f);
}

TEST_F(Cpu, EveryGroupRunsOnce) {
  constexpr uint32_t nx = 13, ny = 7, nz = 5;
  Span out = memory(nx * ny * nz * 4);
  for (const char* name : {"mark", "slow_mark"}) {  // alone, and shared among the workers
    std::vector<uint32_t> got(nx * ny * nz, 0);
    device->upload(out, got.data());
    Launch k{program(name), {fixed(out, true, true)}, {{nx, -1}, {ny, -1}}, {nx, ny, nz}};
    CommandGraph graph(*device, {k}, 0, 0);
    for (int round = 0; round < 20; ++round) graph.replay({}, {});
    device->download(out, got.data());
    for (uint32_t z = 0, i = 0; z < nz; ++z)
      for (uint32_t y = 0; y < ny; ++y)
        for (uint32_t x = 0; x < nx; ++x, ++i)
          ASSERT_EQ(got[i], 20 * (1 + x + 100 * y + 10000 * z)) << name;
  }
}

// Lists that are waited for at once leave the queue's thread napping; the next may not be.
TEST_F(Cpu, AListThatNobodyWaitsForRunsAllTheSame) {
  Span cell = memory(4);
  Launch k{program("increment"), {fixed(cell, true, false), fixed(cell, false, true)}};
  k.scalars = {{0, -1}};
  CommandGraph graph(*device, {k}, 0, 0);
  uint64_t last = 0;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 4; ++i) queue.wait(last = graph.replay({}, {}));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it no longer spins
    last = graph.replay({}, {});
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (queue.timeline().value() < last) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "nobody ran list " << last;
      std::this_thread::yield();
    }
  }
  device->allocator().free(cell);
}

TEST_F(Cpu, RingWrapsAndRetires) {
  Span cell = memory(4);
  float zero = 0, got = 0;
  device->upload(cell, &zero);
  Span args = device->allocator().allocate(32, MemoryKind::Args);
  uint64_t addresses[2] = {cell.address(), cell.address()};
  std::memcpy(args.host(), addresses, 16);
  CommandList list;
  list.commands.push_back({DispatchCmd{program("increment"), args}, {}, ""});
  for (int i = 0; i < 3000; ++i) queue.submit_once(queue.encode(list, EncodeUse::Once));
  device->download(cell, &got);
  EXPECT_EQ(got, 3000.0f);
  EXPECT_EQ(queue.timeline().value(), queue.last_submitted());
}

TEST_F(Cpu, WaitsSignalsTimestampsAndHostCallsKeepTheirOrder) {
  auto gate = device->create_signal(), done = device->create_signal();
  std::atomic<int> calls{0};
  CommandList list;
  list.slot_count = 2;
  list.timestamp_count = 2;
  list.commands.push_back({TimestampCmd{0}, {}, ""});
  list.commands.push_back({WaitCmd{gate.get(), 0}, {}, ""});
  list.commands.push_back(
      {HostCallCmd{[](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &calls}, {}, ""});
  list.commands.push_back({TimestampCmd{1}, {}, ""});
  list.commands.push_back({SignalCmd{done.get(), 1}, {}, ""});
  auto encoded = queue.encode(list, EncodeUse::Replay);
  for (uint64_t round = 1; round <= 20; ++round) {
    uint64_t slots[] = {round, round * 2};
    uint64_t value = queue.submit(*encoded, slots);
    EXPECT_FALSE(queue.timeline().wait(value, 300'000));
    EXPECT_EQ(calls, static_cast<int>(round) - 1);
    gate->set(round);
    EXPECT_TRUE(done->wait(round * 2, 5'000'000'000));  // no host wait on the queue helps here
    queue.wait(value);
    auto times = queue.timestamps(*encoded);
    EXPECT_GE(times[1], times[0] + 300'000);
  }
}

TEST_F(Cpu, HungWaitBecomesDeviceLost) {
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "60");
  auto never = device->create_signal();
  CommandList list;
  list.slot_count = 1;
  list.commands.push_back({WaitCmd{never.get(), 0}, {}, ""});
  uint64_t slot[] = {1};
  uint64_t value = queue.submit_once(queue.encode(list, EncodeUse::Once), slot);
  EXPECT_THROW(queue.wait(value), DeviceLost);
  EXPECT_THROW(queue.submit_once(queue.encode({}, EncodeUse::Once)), DeviceLost);
  EXPECT_THROW(device->allocator().allocate(64 << 20, MemoryKind::Device), DeviceLost);
}

TEST_F(Cpu, TwoQueuesWaitForEachOther) {
  auto other = cpu_open("");
  auto ping = device->create_signal(), pong = device->create_signal();
  CommandList here, there;
  here.slot_count = there.slot_count = 2;
  here.commands.push_back({SignalCmd{ping.get(), 0}, {}, ""});
  here.commands.push_back({WaitCmd{pong.get(), 1}, {}, ""});
  there.commands.push_back({WaitCmd{ping.get(), 0}, {}, ""});
  there.commands.push_back({SignalCmd{pong.get(), 1}, {}, ""});
  for (uint64_t i = 1; i <= 300; ++i) {
    uint64_t slots[] = {i, i};
    queue.submit_once(queue.encode(here, EncodeUse::Once), slots);
    other->compute_queue().submit_once(other->compute_queue().encode(there, EncodeUse::Once),
                                       slots);
  }
  queue.wait_idle();
  other->compute_queue().wait_idle();
  EXPECT_EQ(pong->value(), 300u);
}

TEST_F(Cpu, SubmittersFromSeveralThreads) {
  constexpr int kThreads = 4, kRounds = 300;
  constexpr uint32_t kGroups = 40;
  std::vector<Span> outs;
  for (int t = 0; t < kThreads; ++t) {
    outs.push_back(memory(kGroups * 4));
    std::memset(outs.back().host(), 0, kGroups * 4);
  }
  std::vector<std::thread> submitters;
  for (int t = 0; t < kThreads; ++t)
    submitters.emplace_back([&, t] {
      Span out = outs[static_cast<size_t>(t)];
      Launch k{program(t % 2 ? "mark" : "slow_mark"),
                    {fixed(out, true, true)},
                    {{kGroups, -1}, {1, -1}},
                    {kGroups, 1, 1}};
      CommandGraph graph(*device, {k}, 0, 0, 2);
      for (int i = 0; i < kRounds; ++i) {
        uint64_t value = graph.replay({}, {});
        if (i % 7 == t) queue.wait(value);
        Span temporary = memory(1000);
        device->allocator().free(temporary, {&queue, value});
      }
    });
  for (std::thread& s : submitters) s.join();
  queue.wait_idle();
  for (const Span& out : outs) {
    std::vector<uint32_t> got(kGroups);
    device->download(out, got.data());
    for (uint32_t x = 0; x < kGroups; ++x) ASSERT_EQ(got[x], kRounds * (1 + x));
  }
}

TEST_F(Cpu, ExhaustionIsStructured) {
  EXPECT_THROW(memory(size_t{1} << 50), OutOfMemory);
  EXPECT_NO_THROW(memory(1000));
}

TEST_F(Cpu, BadBinariesAreRefused) {
  render::Binary none;
  none.name = "none";
  EXPECT_THROW(device->load(std::span(&none, 1)), CompileError);
}

TEST_F(Cpu, TargetIsTruthful) {
  const Target& t = device->target();
  EXPECT_EQ(t.device, "CPU");
  EXPECT_EQ(t.renderer, "c");
  EXPECT_EQ(t.cores, 3u);
  EXPECT_FALSE(t.has_local);
  EXPECT_TRUE(t.features.i64 && t.features.f64 && !t.features.f16);
}

}  // namespace
}  // namespace tuff::devices

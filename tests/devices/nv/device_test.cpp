// The NV device on the emulated machine: what the driver, the encoders and the loader make of
// copies, kernels, signals and local memory, with the machine's checks on.
#include "devices/nv/fixture.h"

namespace tuff::devices::nv {
namespace {

using namespace test;

// ---- every branch of the driver, every generation

class NvMachines : public testing::TestWithParam<const char*> {};

TEST_P(NvMachines, CopiesAndKernels) {
  Machine machine(GetParam());
  {
    Opened gpu(machine);
    expect_kernels_and_copies(gpu);
  }
  EXPECT_EQ(machine.mock->stats().objects, 0u);
  EXPECT_EQ(machine.mock->stats().ranges, 0u);
  EXPECT_EQ(machine.mock->stats().files, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NvMachines,
                         testing::Values("driver:535", "driver:550", "driver:570", "driver:580",
                                         "sm:90,driver:535", "sm:90,driver:580", "sm:120",
                                         "sm:120,driver:580"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == ':' || c == ',') c = '_';
                           return name;
                         });

TEST(NvDevice, ObjectFilesOfBothLayouts) {
  for (const bool modern : {false, true}) {
    for (const char* options : {"sm:86", "sm:90", "sm:120"}) {
      Machine machine(options);
      machine.modern = modern;
      Opened gpu(machine);
      const Span a = gpu.words(32);
      gpu.run({gpu.dispatch(kTurn, {a}, 1, 1)});
      EXPECT_EQ(gpu.read(a)[31], 1u);
    }
  }
}

TEST(NvDevice, SaysWhatItIs) {
  Machine machine("gpus:2,vram:2048");
  const std::vector<Candidate> found = nv_probe(machine.iface);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].usable) << found[0].reason;
  EXPECT_EQ(found[0].rank, 0) << "never the default";
  EXPECT_EQ(found[1].info.name, "NV:1");
  EXPECT_EQ(found[0].info.memory_bytes, 2048ull << 20);
  EXPECT_NE(found[0].info.uuid, found[1].info.uuid);
  EXPECT_FALSE(found[0].info.hardware);
  bool said = false;
  for (const auto& [name, value] : found[0].info.features)
    said = said || value == "simulated, never run";
  EXPECT_TRUE(said);
  Opened gpu(machine);
  EXPECT_EQ(gpu.device->target().arch, "sm_86");
  EXPECT_THROW(gpu.words(3ull << 28), OutOfMemory);  // 3 GiB of 2
}

// ---- replays

TEST(NvDevice, ReplaysWithOtherSizesAndArguments) {
  Machine machine;
  Opened gpu(machine);
  const Span a = gpu.upload(Words(128, 1));
  const Command fill = gpu.dispatch(kFill, {a}, 3, 1, 0);
  const auto list = gpu.queue().encode(
      Opened::list_of({fill, Opened::barrier(), gpu.dispatch(kAdd, {a, a}, 1, 4)}, 1),
      EncodeUse::Replay);
  for (const uint64_t groups : {4, 0, 2, 0, 1}) {
    gpu.device->upload(a, Words(128, 10).data());
    const int32_t value = int32_t(groups) + 20;
    std::memcpy(std::get<DispatchCmd>(fill.body).args.host() + 8, &value, 4);
    gpu.queue().wait(gpu.queue().submit(*list, {&groups, 1}));
    const Words found = gpu.read(a);
    for (uint64_t i = 0; i < 128; ++i)
      ASSERT_EQ(found[i], i < groups * 32 ? groups + 21 : 11u) << groups << " " << i;
  }
}

// More submissions than the GPFIFO has entries, none waited for.
TEST(NvDevice, TheRingOfEntriesIsNotOverrun) {
  Machine machine;
  Opened gpu(machine);
  const Span a = gpu.upload(Words(32, 0));
  constexpr uint32_t kSubmissions = Channel::kEntries * 2 + 5;
  for (uint32_t i = 0; i < kSubmissions; ++i)
    gpu.submit(gpu.queue(), {gpu.dispatch(kAdd, {a, a}, 1, 1)});
  gpu.queue().wait_idle();
  EXPECT_EQ(gpu.read(a), Words(32, kSubmissions));
}

TEST(NvDevice, QueuesWaitForEachOtherAndForTheHost) {
  Machine machine;
  Opened gpu(machine);
  Queue &compute = gpu.queue(), &copies = *gpu.device->copy_queue();
  const Span a = gpu.words(32), b = gpu.words(32);
  auto go = gpu.device->create_signal(), filled = gpu.device->create_signal();
  const uint64_t one = 1;
  CommandList fill = Opened::list_of({{WaitCmd{go.get(), 0}, {}, ""},
                                      gpu.dispatch(kFill, {a}, 9, 1),
                                      {SignalCmd{filled.get(), 0}, {}, ""}},
                                     1);
  CommandList move =
      Opened::list_of({{WaitCmd{filled.get(), 0}, {}, ""}, Opened::copy(b, a)}, 1);
  const uint64_t moved = copies.submit_once(copies.encode(move, EncodeUse::Once), {&one, 1});
  compute.submit_once(compute.encode(fill, EncodeUse::Once), {&one, 1});
  EXPECT_FALSE(copies.timeline().wait(moved, 5'000'000));
  go->set(1);
  copies.wait(moved);
  EXPECT_EQ(gpu.read(b), Words(32, 9));
}

TEST(NvDevice, TimestampsAreTheHostsNs) {
  Machine machine;
  Opened gpu(machine);
  expect_timestamps_of_the_host(gpu);
}

TEST(NvDevice, LocalMemoryGrowsWithWhatKernelsNeed) {
  Machine machine;
  Opened gpu(machine);
  const Span a = gpu.words(64);
  gpu.run({gpu.dispatch(kSpill, {a}, 150, 2)});
  EXPECT_EQ(gpu.read(a)[40], 40150u);
}

// What a barrier orders behind a launch may be several launches, or come after something else.
TEST(NvDevice, EverythingBehindABarrierWaitsForWhatIsBefore) {
  Machine machine;
  Opened gpu(machine);
  const Span a = gpu.words(64), b = gpu.words(64), c = gpu.words(64), d = gpu.words(64);
  auto other = gpu.device->create_signal();
  const uint64_t one = 1;
  const CommandList list = Opened::list_of(
      {gpu.dispatch(kFill, {a}, 7, 2), Opened::barrier(), gpu.dispatch(kAdd, {a, b}, 1, 2),
       gpu.dispatch(kAdd, {a, c}, 2, 2), Opened::barrier(), gpu.dispatch(kAdd, {b, d}, 1, 2),
       {SignalCmd{other.get(), 0}, {}, ""}, gpu.dispatch(kAdd, {c, b}, 1, 2)},
      1);
  gpu.queue().wait(gpu.queue().submit_once(gpu.queue().encode(list, EncodeUse::Once), {&one, 1}));
  const CommandList chained = Opened::list_of(
      {gpu.dispatch(kFill, {a}, 7, 2), Opened::barrier(), gpu.dispatch(kAdd, {a, b}, 1, 2),
       {SignalCmd{other.get(), 0}, {}, ""}, gpu.dispatch(kAdd, {a, c}, 3, 2)},
      1);
  gpu.queue().wait(
      gpu.queue().submit_once(gpu.queue().encode(chained, EncodeUse::Once), {&one, 1}));
  EXPECT_EQ(gpu.read(d), Words(64, 9));
  EXPECT_EQ(gpu.read(b), Words(64, 8));
  EXPECT_EQ(gpu.read(c), Words(64, 10));
  gpu.device->check_status();
}

// ---- what the machine finds

TEST(NvDevice, AMissingBarrierIsFound) {
  Machine machine;
  Opened gpu(machine);
  const Span a = gpu.words(32), b = gpu.words(32);
  const uint64_t value = gpu.submit(
      gpu.queue(), {gpu.dispatch(kFill, {a}, 7, 1), gpu.dispatch(kAdd, {a, b}, 5, 1)});
  const std::string said = error_of<HazardFound>([&] {
    gpu.queue().wait(value);
    gpu.device->check_status();
  });
  EXPECT_NE(said.find("which nothing waits for"), std::string::npos) << said;
  EXPECT_NE(said.find("kernel `"), std::string::npos) << said;
}

TEST(NvDevice, QueuesThatDoNotWaitAreFound) {
  Machine machine;
  Opened gpu(machine);
  const Span a = gpu.words(1 << 16), b = gpu.words(1 << 16);
  gpu.run({gpu.dispatch(kFill, {a}, 7, 1 << 11)});
  Queue& copies = *gpu.device->copy_queue();
  const uint64_t filled = gpu.submit(gpu.queue(), {gpu.dispatch(kFill, {a}, 8, 1 << 11)});
  const uint64_t moved = gpu.submit(copies, {Opened::copy(b, a)});
  error_of<HazardFound>([&] {
    copies.wait(moved);
    gpu.queue().wait(filled);
    gpu.device->check_status();
  });
}

}  // namespace
}  // namespace tuff::devices::nv

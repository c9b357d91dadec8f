// The NV device on a GPU that no kernel driver holds: from the bus over the boot of its system
// processor to kernels and copies, on every generation; its end; errors of channels; calls of VFIO
// that fail, and processes that are killed.
#include <gtest/gtest.h>
#include <tuff/error.h>

#include <algorithm>

#include "devices/nv/fixture.h"
#include "devices/nv/pci/killed_kernel.h"
#include "devices/nv/pci/pci_gpu.h"

namespace tuff::devices::nv {
namespace {

using namespace test;

// Nothing is left on the machine.
void expect_clean(const Machine& machine) {
  EXPECT_EQ(machine.mock->stats().objects, 0u);
  EXPECT_EQ(machine.mock->stats().files, 0u);
  EXPECT_EQ(machine.mock->stats().ranges, 0u) << "mappings of the IOMMU";
}

struct PciMachine : Machine {
  explicit PciMachine(
      const std::string& options,
      const std::function<std::shared_ptr<os::Kernel>(std::shared_ptr<os::Kernel>)>& wrap = {})
      : Machine("pci:1," + options, wrap) {
    iface.pci = true;
    iface.pci_address = emu::nv::kPciSlot;
  }
};

class NvPciDevice : public testing::TestWithParam<const char*> {};

TEST_P(NvPciDevice, CopiesAndKernels) {
  PciMachine machine(GetParam());
  {
    Opened gpu(machine);
    expect_kernels_and_copies(gpu);
    const Span a = gpu.words(64);
    gpu.run({gpu.dispatch(kSpill, {a}, 150, 2)});
    EXPECT_EQ(gpu.read(a)[40], 40150u) << "local memory";
  }
  expect_clean(machine);
  expect_works(machine);
}

INSTANTIATE_TEST_SUITE_P(Generations, NvPciDevice,
                         testing::Values("sm:86", "sm:90", "sm:120,seed:3"), [](const auto& info) {
                           return std::string(info.param).substr(3, 2);
                         });

TEST(NvPciDevice, SaysWhatItIsWithoutTouchingIt) {
  PciMachine machine("sm:90");
  const uint64_t before = machine.mock->stats().calls;
  const std::vector<Candidate> found = nv_probe(machine.iface);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].usable) << found[0].reason;
  EXPECT_EQ(found[0].rank, 0) << "never the default";
  EXPECT_EQ(machine.mock->stats().calls, before);
  const auto& features = found[0].info.features;
  EXPECT_TRUE(std::ranges::any_of(features, [](const auto& f) {
    return f.second == "simulated, never run";
  }));
  Opened gpu(machine);
  EXPECT_EQ(gpu.device->target().arch, "sm_90a");
  EXPECT_EQ(gpu.device->info().api_version, "570.144");
  EXPECT_NE(error_of<Unsupported>([&] { nv_open(machine.iface, ""); }).find("another process"),
            std::string::npos);
  EXPECT_THROW(nv_open(machine.iface, "1"), InvalidArgument);
  machine.iface.pci_address.clear();
  EXPECT_NE(error_of<Unsupported>([&] { nv_open(machine.iface, ""); }).find("NV_PCI names"),
            std::string::npos);
}

TEST(NvPciDevice, TimestampsAreTheHostsNs) {
  PciMachine machine("sm:86");
  Opened gpu(machine);
  const Span a = gpu.words(32);
  CommandList list = Opened::list_of({gpu.dispatch(kFill, {a}, 1, 1)});
  add_timestamps(list);
  const auto timed = gpu.queue().encode(list, EncodeUse::Replay);
  const uint64_t before = os::monotonic_ns();
  gpu.queue().wait(gpu.queue().submit(*timed, {}));
  const std::vector<uint64_t> times = gpu.queue().timestamps(*timed);
  ASSERT_EQ(times.size(), 2u);
  constexpr uint64_t kSlack = 5'000'000;  // two clocks are read one after the other
  EXPECT_GE(times[0] + kSlack, before);
  EXPECT_LE(times[0], times[1]);
  EXPECT_LE(times[1], os::monotonic_ns() + kSlack);
}

// ---- what goes wrong

// The firmware tells of it by an event.
TEST(NvPciDevice, AKernelsFaultIsDeviceLostAndNamesAddressAndKernel) {
  PciMachine machine("sm:86");
  {
    Opened gpu(machine);
    const Span a = gpu.words(32);
    const std::string said = error_of<DeviceLost>([&] {
      gpu.queue().wait(gpu.submit(gpu.queue(), {gpu.dispatch(kFar, {a}, 1500, 1)}));
    });
    for (const char* part : {"NV:0", "channel error 31", "MMU", "compute queue", "far",
                             "no block of this device was there"})
      EXPECT_NE(said.find(part), std::string::npos) << part << ": " << said;
    EXPECT_THROW(gpu.run({}), DeviceLost);
  }
  expect_clean(machine);
  expect_works(machine);
}

TEST(NvPciDevice, AHangIsDeviceLost) {
  const EnvOverride patience(Env::TUFF_TIMEOUT_MS, "200");
  PciMachine machine("sm:90");
  expect_hang_is_lost(machine);
  expect_clean(machine);
  expect_works(machine);
}

// What is freed is unmapped before it is another's.
TEST(NvPciDevice, AFaultInFreedMemorySaysSo) {
  PciMachine machine("sm:120");
  Opened gpu(machine);
  const Span a = gpu.words(16 << 20);
  const Command fill = gpu.dispatch(kFill, {a}, 1, 1);
  gpu.device->allocator().free(a);
  gpu.device->allocator().trim();
  const std::string said = error_of<DeviceLost>([&] {
    gpu.queue().wait(gpu.submit(gpu.queue(), {fill}));
  });
  EXPECT_NE(said.find("that was freed"), std::string::npos) << said;
}

// ---- calls that fail, and processes that are killed

// Opens, allocates, copies, launches, replays, takes times, closes.
void use_everything(Machine& machine) {
  Opened gpu(machine);
  const Span a = gpu.words(64);
  gpu.run({gpu.dispatch(kSpill, {a}, 3, 2)});
  CommandList list = Opened::list_of({gpu.dispatch(kFill, {a}, 7, 2)});
  add_timestamps(list);
  const auto timed = gpu.queue().encode(list, EncodeUse::Once);
  gpu.queue().wait(gpu.queue().submit(*timed, {}));
  gpu.queue().timestamps(*timed);
  EXPECT_EQ(gpu.read(a), Words(64, 7));
}

// Of the boot's calls, each of which fails in gsp_test, some; then every second one.
TEST(NvPciDevice, EveryCallOfVfioFailsOnce) {
  uint64_t booted = 0, all = 0;
  {
    PciMachine machine("sm:90");
    {
      const PciGpu gpu(machine.iface.kernel,
                       pci_function(*machine.iface.kernel, emu::nv::kPciSlot), 1000);
      booted = machine.mock->stats().calls;
    }
    const uint64_t before = machine.mock->stats().calls;
    use_everything(machine);
    all = machine.mock->stats().calls - before;
  }
  ASSERT_GT(all, booted + 50);
  size_t failed = 0, tried = 0;
  for (uint64_t n = 1; n <= all; n += n + 40 < booted ? 41 : 2) {
    PciMachine machine(fmt::format("sm:90,fail:{}", n));
    try {
      use_everything(machine);
    } catch (const Error& e) {
      ++failed;
      EXPECT_NE(std::string(e.what()), "");
    }
    expect_clean(machine);
    if (machine.mock->stats().calls < n) break;  // how often registers are looked at varies
    if (++tried % 8 == 0) expect_works(machine);
    expect_clean(machine);
    if (HasFailure()) FAIL() << "call " << n << " of " << all;
  }
  EXPECT_GT(failed, tried / 3);
}

// Whatever it has left, the next one begins anew.
TEST(NvPciDevice, AProcessThatIsKilledLeavesAGpuThatStartsAgain) {
  for (const char* options : {"sm:86", "sm:90", "sm:120"}) {
    uint64_t kills = 0;
    for (uint64_t calls = 30;; calls += 150) {
      std::shared_ptr<KilledKernel> killed;
      PciMachine machine(options, [&](std::shared_ptr<os::Kernel> k) {
        return killed = std::make_shared<KilledKernel>(std::move(k), calls);
      });
      try {
        const EnvOverride patience(Env::TUFF_TIMEOUT_MS, "50");
        use_everything(machine);
      } catch (const Error&) {
      }
      if (!killed->is_dead()) break;
      ++kills;
      machine.iface.kernel = machine.mock;
      expect_works(machine);
      expect_clean(machine);
      if (HasFailure()) FAIL() << "after " << calls << " calls on " << options;
    }
    EXPECT_GT(kills, 3u);
  }
}

}  // namespace
}  // namespace tuff::devices::nv

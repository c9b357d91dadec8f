// The NV device on a GPU that no kernel driver holds: from the bus over the boot of its system
// processor to kernels and copies, on every generation; its end; errors of channels; calls of VFIO
// that fail, and processes that are killed.
#include <gtest/gtest.h>
#include <linux/vfio.h>
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
  expect_timestamps_of_the_host(gpu);
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

TEST(NvPciDevice, AFaultInFreedMemorySaysSo) {
  PciMachine machine("sm:120");
  Opened gpu(machine);
  expect_freed_memory_named(gpu);
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

// What does not let the GPU forget its tables.
class KeptTables final : public os::Kernel {
 public:
  explicit KeptTables(std::shared_ptr<os::Kernel> machine) : machine_(std::move(machine)) {}
  int left = 0, resets = 0, failing_resets = 0;
  int open(const std::string& path, int flags) override { return machine_->open(path, flags); }
  int close(int fd) override { return machine_->close(fd); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    if (request == VFIO_DEVICE_RESET && failing_resets > 0) return --failing_resets, -EIO;
    resets += request == VFIO_DEVICE_RESET;
    return machine_->ioctl(fd, request, argument);
  }
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override {
    return machine_->mmap(at, size_bytes, protection, flags, fd, offset);
  }
  int munmap(void* at, size_t size_bytes) override { return machine_->munmap(at, size_bytes); }
  int64_t pread(int fd, void* bytes, size_t size_bytes, uint64_t offset) override {
    constexpr uint64_t invalidate = 0xb830b0;
    if (offset == invalidate && left > 0) return --left, -EIO;
    return machine_->pread(fd, bytes, size_bytes, offset);
  }
  int64_t pwrite(int fd, const void* bytes, size_t size_bytes, uint64_t offset) override {
    return machine_->pwrite(fd, bytes, size_bytes, offset);
  }
  int read_text(const std::string& path, std::string& text) override {
    return machine_->read_text(path, text);
  }
  int list_directory(const std::string& path, std::vector<std::string>& names) override {
    return machine_->list_directory(path, names);
  }

 private:
  const std::shared_ptr<os::Kernel> machine_;
};

// Memory that it may still reach is not another's before it is reset, which is tried twice.
TEST(NvPciDevice, AGpuThatDoesNotForgetIsReset) {
  for (const bool maps : {true, false}) {
    for (const int failing_resets : {0, 1}) {
      std::shared_ptr<KeptTables> kernel;
      PciMachine machine("sm:90", [&](std::shared_ptr<os::Kernel> k) {
        return kernel = std::make_shared<KeptTables>(std::move(k));
      });
      {
        Opened gpu(machine);
        const auto block = gpu.device->map_block(1 << 20, MemoryKind::Device);
        const int before = kernel->resets;
        kernel->left = 1;
        kernel->failing_resets = failing_resets;
        if (maps) {
          EXPECT_THROW(gpu.device->map_block(1 << 20, MemoryKind::Device), Error);
        }
        gpu.device->unmap_block(block);
        EXPECT_EQ(kernel->resets, before + 1);
      }
      expect_clean(machine);
      expect_works(machine);
    }
  }
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

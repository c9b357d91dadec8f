// What goes wrong on an NV device: faults of kernels, hangs, every call of the driver in turn, a
// driver that is not known, a process that ends without a word.
#include <algorithm>
#include <cerrno>

#include "base/os_nvrm.h"
#include "devices/nv/fixture.h"

namespace tuff::devices::nv {
namespace {

using namespace test;

TEST(NvFaults, AKernelsFaultIsDeviceLostAndNamesAddressKernelAndAccess) {
  Machine machine;
  {
    Opened gpu(machine);
    const Span a = gpu.words(32);
    const std::string said = error_of<DeviceLost>([&] {
      const uint64_t value = gpu.submit(gpu.queue(), {gpu.dispatch(kFar, {a}, 1500, 1)});
      gpu.queue().wait(value);
    });
    for (const char* part : {"NV:0", "channel error 31", "MMU", "WRITE", "compute queue", "far",
                             "no block of this device was there"})
      EXPECT_NE(said.find(part), std::string::npos) << part << ": " << said;
    const uint64_t before = machine.mock->stats().calls;
    EXPECT_THROW(gpu.run({}), DeviceLost);
    EXPECT_THROW(gpu.words(1 << 25), DeviceLost);
    EXPECT_EQ(machine.mock->stats().calls, before) << "later calls ask nobody";
  }
  expect_works(machine);
}

TEST(NvFaults, AFaultInFreedMemorySaysSo) {
  Machine machine;
  Opened gpu(machine);
  expect_freed_memory_named(gpu);
}

TEST(NvFaults, AHangIsDeviceLost) {
  const EnvOverride patience(Env::TUFF_TIMEOUT_MS, "100");
  Machine machine;
  expect_hang_is_lost(machine);
  EXPECT_EQ(machine.mock->stats().objects, 0u);
  expect_works(machine);
}

TEST(NvFaults, AChannelThatStandsStillIsDeviceLost) {
  const EnvOverride patience(Env::TUFF_TIMEOUT_MS, "100");
  Machine machine("stop:100");
  Opened gpu(machine);
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) gpu.run({gpu.dispatch(kFill, {gpu.words(32)}, 1, 1)});
      },
      DeviceLost);
}

// ---- every call in turn

// Opens, allocates, copies, launches, replays, takes times, closes.
void use_everything(Machine& machine, std::vector<std::string>& errors) {
  Opened gpu(machine);
  const Span a = gpu.words(64);
  gpu.run({gpu.dispatch(kSpill, {a}, 3, 2)});
  const auto replayed = gpu.queue().encode(
      Opened::list_of({gpu.dispatch(kFill, {a}, 7, 2, 0)}, 1), EncodeUse::Replay);
  const uint64_t groups = 2;
  gpu.queue().wait(gpu.queue().submit(*replayed, {&groups, 1}));
  CommandList list = Opened::list_of({gpu.dispatch(kFill, {a}, 7, 2)});
  add_timestamps(list);
  const auto timed = gpu.queue().encode(list, EncodeUse::Once);
  gpu.queue().wait(gpu.queue().submit(*timed, {}));
  gpu.queue().timestamps(*timed);
  if (gpu.read(a) != Words(64, 7)) errors.push_back("a wrong result");
}

class NvCallFails : public testing::TestWithParam<const char*> {};

// Whichever call it is: an error that names it, or what a destructor says; no hang, no crash,
// nothing left behind, and the next device works.
TEST_P(NvCallFails, EveryCallInTurn) {
  std::vector<std::string> errors;
  uint64_t all = 0;
  {
    Machine machine;
    use_everything(machine, errors);
    all = machine.mock->stats().calls;
  }
  ASSERT_GT(all, 60u);
  size_t thrown = 0;
  for (uint64_t n = 1; n <= all; ++n) {
    Machine machine(fmt::format("fail:{},{}", n, GetParam()));
    try {
      use_everything(machine, errors);
    } catch (const Error& e) {
      ++thrown;
      EXPECT_NE(std::string(e.what()).find("NV"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("failed: "), std::string::npos) << e.what();
    }
    ASSERT_TRUE(errors.empty()) << "call " << n << ": " << errors[0];
    EXPECT_EQ(machine.mock->stats().objects, 0u) << "call " << n;
    EXPECT_EQ(machine.mock->stats().ranges, 0u) << "call " << n;
    EXPECT_EQ(machine.mock->stats().files, 0u) << "call " << n;
    use_everything(machine, errors);
    ASSERT_TRUE(errors.empty()) << "after call " << n << ": " << errors[0];
  }
  EXPECT_GT(thrown, all / 3);
}

// No memory, a lost GPU; and a system call that fails.
INSTANTIATE_TEST_SUITE_P(Codes, NvCallFails,
                         testing::Values("status:81", "status:15", "no_status:1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == ':') c = '_';
                           return name;
                         });

// ---- drivers

// The same machine with another version.
class OtherVersion : public os::Kernel {
 public:
  OtherVersion(std::shared_ptr<os::Kernel> beneath, std::string version)
      : beneath_(std::move(beneath)), version_(std::move(version)) {}
  int open(const std::string& path, int flags) override { return beneath_->open(path, flags); }
  int close(int fd) override { return beneath_->close(fd); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    const int result = beneath_->ioctl(fd, request, argument);
    if (request == os::nvrm::kCheckVersion)
      std::strcpy(static_cast<os::nvrm::CheckVersion*>(argument)->version, version_.c_str());
    return result;
  }
  intptr_t mmap(void* at, size_t bytes, int protection, int flags, int fd,
                uint64_t offset) override {
    return beneath_->mmap(at, bytes, protection, flags, fd, offset);
  }
  int munmap(void* at, size_t bytes) override { return beneath_->munmap(at, bytes); }
  int read_text(const std::string& path, std::string& text) override {
    return beneath_->read_text(path, text);
  }
  int list_directory(const std::string& path, std::vector<std::string>& names) override {
    return beneath_->list_directory(path, names);
  }

 private:
  std::shared_ptr<os::Kernel> beneath_;
  std::string version_;
};

TEST(NvDriver, ABranchThatIsNotKnownIsRefusedWithItsVersion) {
  Machine machine("", [](std::shared_ptr<os::Kernel> k) {
    return std::make_shared<OtherVersion>(std::move(k), "610.12.03");
  });
  const std::vector<Candidate> found = nv_probe(machine.iface);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].usable);
  for (const char* part : {"610.12.03", "535, 550, 570, 580"})
    EXPECT_NE(found[0].reason.find(part), std::string::npos) << found[0].reason;
  EXPECT_EQ(machine.mock->stats().files, 0u);
}

// Structs of one branch at a driver of another: sizes are compared, so the first call whose struct
// differs is refused and nothing is misread.
TEST(NvDriver, TheWrongBranchsStructsAreRefused) {
  Machine machine("driver:580", [](std::shared_ptr<os::Kernel> k) {
    return std::make_shared<OtherVersion>(std::move(k), "550.99.01");
  });
  const std::vector<Candidate> found = nv_probe(machine.iface);
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].usable);
  EXPECT_NE(found[0].reason.find("InvalidParamStruct"), std::string::npos) << found[0].reason;
  machine.iface.take_findings();  // it says so too
}

// A machine without any of the driver's files.
class NoFiles final : public os::Kernel {
 public:
  int open(const std::string&, int) override { return -ENOENT; }
  int close(int) override { return -EBADF; }
  int ioctl(int, unsigned long, void*) override { return -EBADF; }
  intptr_t mmap(void*, size_t, int, int, int, uint64_t) override { return -EBADF; }
  int munmap(void*, size_t) override { return -EINVAL; }
  int read_text(const std::string&, std::string&) override { return -ENOENT; }
  int list_directory(const std::string&, std::vector<std::string>&) override { return -ENOENT; }
};

TEST(NvDriver, WithoutTheKernelModulesTheReasonNamesTheRemedy) {
  NvIface iface;
  iface.kernel = std::make_shared<NoFiles>();
  const std::vector<Candidate> found = nv_probe(iface);
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].usable);
  EXPECT_NE(found[0].reason.find("nvidia-modprobe"), std::string::npos) << found[0].reason;
}

// A process that is killed closes its files in any order, and nothing of what it made is left; no
// order is its fault. What the device calls when it is closed then finds its files gone.
TEST(NvDriver, AProcessThatIsKilledLeavesNothing) {
  for (const bool last_first : {false, true}) {
    Machine machine;
    const auto device = nv_open(machine.iface, "");
    device->allocator().allocate(1 << 20, MemoryKind::Args);
    ASSERT_GT(machine.mock->stats().objects, 8u);
    ASSERT_GT(machine.mock->stats().ranges, 4u);
    std::vector<int> files = machine.mock->open_files();
    if (last_first) std::ranges::reverse(files);
    for (const int fd : files) machine.mock->close(fd);
    EXPECT_EQ(machine.mock->stats().objects, 0u);
    EXPECT_EQ(machine.mock->stats().ranges, 0u);
    EXPECT_EQ(machine.mock->stats().files, 0u);
  }
}

}  // namespace
}  // namespace tuff::devices::nv

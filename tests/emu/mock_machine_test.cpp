// The emulated machine as a whole: bring-up as a driver does it, its files, life and death of what
// is opened, options.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <tuff/error.h>

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "emu/amd/clock.h"
#include "emu/mock_scene.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

TEST(MockMachine, BringUpAsADriverDoesIt) {
  MockScene scene;
  GetVersion version{};
  ASSERT_EQ(scene.call(kGetVersion, version), 0);
  EXPECT_EQ(version.major_version, 1u);
  EXPECT_GE(version.minor_version, 14u);
  scene.acquire(0);
  scene.acquire(1);
  scene.make_event_page();
  EXPECT_NE(scene.event(EventType::Signal), 0u);
  for (QueueType type : {QueueType::Compute, QueueType::Sdma, QueueType::ComputeAql}) {
    for (uint32_t gpu : {0u, 1u}) {
      const CreateQueue queue = scene.queue(type, gpu);
      EXPECT_EQ(*scene.doorbell(queue), ~uint64_t(0));
      EXPECT_EQ(scene.destroy_queue(queue.queue_id), 0);
    }
  }
  EXPECT_TRUE(scene.take_findings().empty());
}

std::map<std::string, uint64_t> properties(Mock& machine, const std::string& path) {
  std::string text;
  EXPECT_EQ(machine.read_text(path, text), 0) << path;
  EXPECT_TRUE(text.ends_with('\n'));
  std::map<std::string, uint64_t> values;
  std::istringstream lines(text);
  std::string name;
  for (uint64_t value; lines >> name >> value;) EXPECT_TRUE(values.emplace(name, value).second);
  return values;
}

// As many as the model of the chip that times its kernels has.
TEST(MockMachine, TheChipSaysHowManyUnitsThereAre) {
  for (const auto& [chip, cus, engines] : {std::tuple{"780m", 12u, 1u}, {"7800xt", 60u, 3u}}) {
    MockOptions options;
    options.profile.chip = chip;
    MockScene scene(options);
    const auto p =
        properties(*scene.machine, "/sys/devices/virtual/kfd/kfd/topology/nodes/1/properties");
    EXPECT_EQ(p.at("simd_count") / p.at("simd_per_cu"), cus) << chip;
    EXPECT_EQ(p.at("array_count") / p.at("simd_arrays_per_engine"), engines) << chip;
    EXPECT_EQ(p.at("array_count") * p.at("cu_per_simd_array"), cus) << chip;
  }
}

TEST(MockMachine, SysfsTellsOfTheGpus) {
  MockScene scene;
  Mock& machine = *scene.machine;
  const std::string nodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";
  std::vector<std::string> names;
  ASSERT_EQ(machine.list_directory(nodes, names), 0);
  EXPECT_EQ(names, (std::vector<std::string>{"0", "1", "2"}));
  std::string text;
  EXPECT_EQ(machine.read_text(nodes + "/0/gpu_id", text), 0);
  EXPECT_EQ(text, "0\n");
  EXPECT_EQ(properties(machine, nodes + "/0/properties").at("simd_count"), 0u);
  for (uint32_t gpu : {0u, 1u}) {
    const std::string node = nodes + "/" + std::to_string(gpu + 1);
    const auto p = properties(machine, node + "/properties");
    EXPECT_EQ(p.at("gfx_target_version"), 110000u);
    EXPECT_EQ(p.at("simd_count") / p.at("simd_per_cu"), 96u);
    EXPECT_EQ(p.at("drm_render_minor"), 128 + gpu);
    EXPECT_EQ(p.at("num_xcc"), 1u);
    const auto bank = properties(machine, node + "/mem_banks/0/properties");
    EXPECT_EQ(bank.at("heap_type"), 1u);
    EXPECT_EQ(bank.at("size_in_bytes"), 16ull << 30);
    EXPECT_EQ(properties(machine, node + "/io_links/0/properties").at("node_to"), 0u);
    EXPECT_EQ(properties(machine, node + "/p2p_links/0/properties").at("node_to"), 2 - gpu);
    ASSERT_EQ(machine.read_text(fmt::format("/sys/class/drm/renderD{}/device/ip_discovery/die/0/"
                                            "11/0/major",
                                            128 + gpu),
                                text),
              0);
    EXPECT_EQ(text, "11\n");
  }
  EXPECT_EQ(machine.read_text(nodes + "/3/properties", text), -ENOENT);
  EXPECT_EQ(machine.read_text(nodes, text), -EISDIR);
  EXPECT_EQ(machine.list_directory(nodes + "/1/gpu_id", names), -ENOTDIR);
  EXPECT_EQ(machine.list_directory("/sys/class/drm/card7", names), -ENOENT);
}

TEST(MockMachine, WhatIsNotOfGpusIsTheSystems) {
  MockScene scene;
  Mock& machine = *scene.machine;
  std::string text;
  EXPECT_EQ(machine.read_text("/proc/self/status", text), 0);
  EXPECT_FALSE(text.empty());
  const int fd = machine.open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(machine.ioctl(fd, kGetVersion, nullptr), -ENOTTY);
  EXPECT_EQ(machine.close(fd), 0);
  EXPECT_EQ(machine.close(fd), -EBADF);
  EXPECT_EQ(machine.open("/dev/dri/renderD130", O_RDWR), -ENOENT);
  EXPECT_EQ(machine.open("/dev/dri/card0", O_RDWR), -ENOENT);
  const intptr_t at = machine.mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_GT(at, 0);
  EXPECT_EQ(machine.munmap(reinterpret_cast<void*>(at), 4096), 0);
}

TEST(MockMachine, AForbiddenFileIsNotOpened) {
  MockOptions options;
  options.forbidden = "/dev/kfd";
  const auto machine = make_mock(options);
  EXPECT_EQ(machine->open("/dev/kfd", O_RDWR), -EACCES);
  EXPECT_GE(machine->open("/dev/dri/renderD128", O_RDWR), 0);
}

TEST(MockMachine, AcquireVmIsChecked) {
  MockScene scene;
  const auto acquire = [&](int fd, uint32_t gpu_id) {
    AcquireVm a{uint32_t(fd), gpu_id};
    return scene.call(kAcquireVm, a);
  };
  EXPECT_EQ(acquire(scene.render[0], 17), -EINVAL);
  EXPECT_EQ(acquire(scene.kfd, scene.gpu_id(0)), -EINVAL);
  EXPECT_EQ(acquire(999, scene.gpu_id(0)), -EINVAL);
  EXPECT_EQ(acquire(scene.render[1], scene.gpu_id(0)), -EINVAL);
  EXPECT_EQ(acquire(scene.render[0], scene.gpu_id(0)), 0);
  EXPECT_EQ(acquire(scene.render[0], scene.gpu_id(0)), 0);
  EXPECT_EQ(acquire(scene.machine->open("/dev/dri/renderD128", O_RDWR), scene.gpu_id(0)), -EBUSY);
  EXPECT_EQ(scene.take_findings().size(), 5u);
}

TEST(MockMachine, CallsAreToldApartByNumberAndSize) {
  MockScene scene;
  uint32_t words[40] = {};
  const auto call = [&](uint32_t number, uint32_t size) {
    return scene.machine->ioctl(scene.kfd, _IOC(_IOC_READ | _IOC_WRITE, 'K', number, size), words);
  };
  EXPECT_EQ(call(0x77, 8), -ENOTTY);
  EXPECT_EQ(call(0x04, 32), -ENOTTY);  // a real one that this machine does not have
  words[0] = words[1] = 99;
  EXPECT_EQ(call(0x01, 4), 0);  // of an older header: the second half is not known there
  EXPECT_EQ(words[0], 1u);
  EXPECT_EQ(words[1], 99u);
  words[2] = 98;
  EXPECT_EQ(call(0x01, 12), 0);
  EXPECT_EQ(words[1], 17u);
  EXPECT_EQ(words[2], 98u);
  EXPECT_EQ(scene.machine->ioctl(scene.kfd, kGetVersion, nullptr), -EFAULT);
  EXPECT_EQ(scene.machine->ioctl(scene.render[0], kGetVersion, words), -EINVAL);
  EXPECT_EQ(scene.take_findings().size(), 4u);
}

TEST(MockMachine, ClocksAgree) {
  MockScene scene;
  GetClockCounters a{};
  a.gpu_id = scene.gpu_id(1);
  const uint64_t before = gpu_clock();
  ASSERT_EQ(scene.call(kGetClockCounters, a), 0);
  EXPECT_GE(a.gpu_clock_counter, before);
  EXPECT_LE(a.gpu_clock_counter, gpu_clock());
  EXPECT_EQ(a.system_clock_freq, 1'000'000'000u);
  EXPECT_GE(a.cpu_clock_counter / 10, a.gpu_clock_counter);
  a.gpu_id = 0;
  ASSERT_EQ(scene.call(kGetClockCounters, a), 0);
  EXPECT_EQ(a.gpu_clock_counter, 0u);
}

TEST(MockMachine, AperturesAreCountedFirst) {
  MockScene scene;
  GetProcessAperturesNew a{};
  ASSERT_EQ(scene.call(kGetProcessAperturesNew, a), 0);
  ASSERT_EQ(a.num_of_nodes, 2u);
  std::vector<DeviceApertures> apertures(3);
  a = {reinterpret_cast<uint64_t>(apertures.data()), 3, 0};
  ASSERT_EQ(scene.call(kGetProcessAperturesNew, a), 0);
  EXPECT_EQ(a.num_of_nodes, 2u);
  EXPECT_EQ(apertures[1].gpu_id, scene.gpu_id(1));
  EXPECT_EQ(apertures[1].gpuvm_limit, 0x7fff'ffff'ffffu);
  a = {8, 2, 0};
  EXPECT_EQ(scene.call(kGetProcessAperturesNew, a), -EFAULT);
}

TEST(MockMachine, TheRuntimeIsEnabledOnce) {
  MockScene scene;
  scene.acquire();
  const auto enable = [&](uint32_t mode) {
    RuntimeEnable a{0, mode, 0};
    return scene.call(kRuntimeEnable, a);
  };
  EXPECT_EQ(enable(4), -EINVAL);
  EXPECT_EQ(enable(0), 0);  // off is off
  EXPECT_EQ(enable(1), 0);
  EXPECT_EQ(enable(1), -EBUSY);
  EXPECT_EQ(enable(0), 0);
  const CreateQueue queue = scene.queue(QueueType::Compute);
  EXPECT_EQ(enable(1), -EEXIST);
  EXPECT_EQ(scene.destroy_queue(queue.queue_id), 0);
  EXPECT_EQ(enable(3), 0);
}

size_t open_files() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

TEST(MockMachine, FilesCloseInAnyOrder) {
  for (const bool kfd_first : {false, true}) {
    const size_t files = open_files();
    {
      take_gpu_history();
      MockScene scene;
      scene.acquire(0);
      scene.make_event_page();
      const uint32_t signal = scene.event(EventType::Signal);
      const CreateQueue queue = scene.queue(QueueType::Compute);
      std::vector<int> order = {scene.render[0], scene.render[1]};
      order.insert(kfd_first ? order.begin() : order.end(), scene.kfd);
      for (int fd : order) EXPECT_EQ(scene.machine->close(fd), 0);
      EXPECT_EQ(scene.machine->close(scene.kfd), -EBADF);
      // A queue that is left behind would run until the process ends.
      const auto findings = scene.take_findings();
      ASSERT_EQ(findings.size(), 1u);
      EXPECT_NE(findings[0].what.find("1 queues alive"), std::string::npos);
      const auto history = take_gpu_history();
      ASSERT_GE(history.size(), 3u);
      EXPECT_EQ(history[0], "attach 0:0");
      EXPECT_EQ(history[1], "detach 0:0");  // before any of its memory goes
      EXPECT_TRUE(history[2].starts_with("forget"));
      // The next process begins with nothing.
      scene.kfd = scene.machine->open("/dev/kfd", O_RDWR);
      EXPECT_EQ(scene.wait(signal, 0), -EINVAL);
      CreateQueue again = queue;
      EXPECT_EQ(scene.call(kCreateQueue, again), -ESRCH);
      AvailableMemory available{0, scene.gpu_id(0), 0};
      EXPECT_EQ(scene.call(kAvailableMemory, available), 0);
      EXPECT_GT(available.available, (16ull << 30) - (4 << 20));
    }
    EXPECT_EQ(open_files(), files);
  }
}

TEST(MockMachine, ASecondOpeningIsTheSameProcess) {
  MockScene scene;
  const int second = scene.machine->open("/dev/kfd", O_RDWR);
  scene.acquire();
  const auto memory = scene.allocate(4096, kSystemFlags);
  EXPECT_EQ(scene.machine->close(scene.kfd), 0);
  scene.kfd = second;
  EXPECT_EQ(scene.free(memory), 0);
}

TEST(MockMachine, AMachineGoesWithQueuesAlive) {
  take_gpu_history();
  {
    MockScene scene;
    scene.acquire();
    const CreateQueue queue = scene.queue(QueueType::Compute);
    scene.ring(scene.doorbell(queue), 1'000'000);
  }
  const auto history = take_gpu_history();
  ASSERT_FALSE(history.empty());
  EXPECT_EQ(history.back(), "gone 1 with 0 queues");
}

TEST(MockMachine, OptionsAreParsed) {
  const MockOptions none = parse_options("");
  EXPECT_EQ(none.gpus, 2u);
  EXPECT_TRUE(none.large_bar);
  EXPECT_FALSE(none.seed);
  const MockOptions all = parse_options(
      "gpus:1,seed:7,bar:0,vram:4096,stop:12,lost_interrupt:1,ecc:3,enomem:7,enomem:9,reset:5");
  EXPECT_EQ(all.gpus, 1u);
  EXPECT_EQ(all.seed, 7u);
  EXPECT_FALSE(all.large_bar);
  EXPECT_EQ(all.vram_bytes, 4ull << 30);
  ASSERT_EQ(all.faults.size(), 6u);
  EXPECT_EQ(all.faults[0].kind, Fault::Kind::StopQueue);
  EXPECT_EQ(all.faults[0].count, 12u);
  EXPECT_EQ(all.faults[4].kind, Fault::Kind::FailCall);
  EXPECT_EQ(all.faults[4].count, 9u);
  EXPECT_EQ(all.faults[5].kind, Fault::Kind::Reset);
  for (const char* wrong : {"gpu:1", "gpus", "gpus:", "gpus:0", "gpus:9", "gpus:-1", "gpus:1x",
                            "bar:2", "vram:0", "stop:0", "seed:99999999999999999999", ",", "ecc=1"})
    EXPECT_THROW(parse_options(wrong), InvalidArgument) << wrong;
}

}  // namespace
}  // namespace tuff::emu::amd

// The device's seam by PCI on scripted registers: where memory is mapped, what engines are told of
// queues, how waits end, a queue that does not end, single calls of VFIO that fail; and which GPU
// AMD_IFACE=PCI touches. No packet is executed.
#include "devices/amd/pci/pci_space.h"

#include <tuff/error.h>

#include "devices/amd/amd.h"
#include "devices/amd/pci/named_gpu.h"
#include "devices/amd/pci/start_scene.h"
#include "emu/amd/pci/gpu_tables.h"

namespace tuff::devices::amd {
namespace {

constexpr uint32_t kGcFirst = 0x1260, kClock = 0x16a00, kFaultStatus = 0x15c8;
constexpr HardwareQueueSetup kCompute{QueueType::Pm4, 64u << 10}, kCopy{QueueType::Sdma, 64u << 10};

struct SpaceScene : StartScene {
  std::unique_ptr<PciSpace> make(uint64_t timeout_ms = 2000) {
    auto started = open(timeout_ms);
    root = started->table().root();
    return std::make_unique<PciSpace>(std::move(started));
  }
  emu::amd::GpuPage walk(uint64_t address) const {
    return emu::amd::walk_gpu_tables(
        [&](uint64_t at, uint64_t& entry) {
          if (at + sizeof entry > ScriptedGpu::kMemoryBytes) return false;
          std::memcpy(&entry, gpu->memory.data() + at, sizeof entry);
          return true;
        },
        root, address);
  }
  bool compute_active() const { return gc(kGcFirst, 0x1fab) & 1; }
  uint64_t root = 0;
};

TEST(AmdPciSpace, SaysWhatTheGpuIs) {
  SpaceScene s;
  const auto space = s.make();
  const GpuFacts& f = space->facts();
  EXPECT_EQ(f.arch(), "gfx1100");
  EXPECT_EQ(f.shape.cus(), 96u);
  EXPECT_EQ(f.shape.engines(), 6u);
  EXPECT_EQ(f.lds_kib, 64u);
  EXPECT_EQ(f.vram_bytes, (1u << 30) - kStartBytes - kKeptBytes);
  EXPECT_FALSE(f.large_bar) << "nothing above the seam flushes writes through it";
}

TEST(AmdPciSpace, MemoryIsMappedAndForgotten) {
  SpaceScene s;
  const auto space = s.make();
  auto large = space->allocate({8u << 20, MemoryDomain::Vram});
  auto other = space->allocate({5000, MemoryDomain::Vram});
  auto host = space->allocate({5000, MemoryDomain::Host});
  const emu::amd::GpuPage page = s.walk(large->address());
  EXPECT_EQ(page.fault, "");
  EXPECT_EQ(page.page_bytes, 2u << 20);
  EXPECT_FALSE(page.system);
  EXPECT_FALSE(page.executable);
  EXPECT_GE(page.physical, kStartBytes) << "what the start has taken is not given out";
  EXPECT_EQ(large->host(), nullptr);
  const uint64_t second = s.walk(other->address()).physical;
  EXPECT_TRUE(second >= page.physical + (8u << 20) || second + 8192 <= page.physical);
  EXPECT_EQ(host->address(), reinterpret_cast<uint64_t>(host->host()));
  for (const uint64_t at : {host->address(), host->address() + 4096}) {
    const emu::amd::GpuPage seen = s.walk(at);
    EXPECT_EQ(seen.fault, "");
    EXPECT_TRUE(seen.system && seen.snooped && seen.writable);
  }
  const uint64_t vram_address = large->address(), host_address = host->address();
  space->free(std::move(large));
  space->free(std::move(host));
  EXPECT_NE(s.walk(vram_address).fault, "");
  EXPECT_NE(s.walk(host_address).fault, "");
  EXPECT_EQ(s.walk(space->allocate({8u << 20, MemoryDomain::Vram})->address()).fault, "");
  EXPECT_THROW(space->allocate({1u << 30, MemoryDomain::Vram}), OutOfMemory);
  EXPECT_THROW(space->allocate({4096, MemoryDomain::VisibleVram}), Unsupported);
  alignas(4096) static std::byte mine[4096];
  EXPECT_THROW(space->allocate({4096, MemoryDomain::User, false, mine}), Unsupported);
}

TEST(AmdPciSpace, SignalsAreWordsOfTheHost) {
  SpaceScene s;
  const auto space = s.make();
  uint64_t* const first = space->allocate_signal();
  uint64_t* const second = space->allocate_signal();
  EXPECT_EQ(uint64_t(second) - uint64_t(first), 64u);
  EXPECT_EQ(s.walk(uint64_t(first) & ~uint64_t{4095}).fault, "");
  space->free_signal(second);
  EXPECT_EQ(space->allocate_signal(), second);
}

TEST(AmdPciSpace, EnginesHaveOneQueueEach) {
  SpaceScene s;
  const auto space = s.make();
  auto compute = space->make_queue(kCompute);
  const auto copy = space->make_queue(kCopy);
  EXPECT_TRUE(s.compute_active());
  const uint64_t ring = uint64_t{s.gc(kGcFirst, 0x1fb2)} << 32 | s.gc(kGcFirst, 0x1fb1);
  EXPECT_EQ(s.walk(ring << 8).fault, "") << "the ring lies where the GPU reaches it";
  EXPECT_EQ(s.gc(kGcFirst, 0x80) & 1, 1u) << "SDMA's ring is enabled";
  EXPECT_THROW(space->make_queue(kCompute), Unsupported);
  EXPECT_THROW(space->make_queue({QueueType::Aql, 64u << 10}), Unsupported);
  // A doorbell of 64 bits, number 3, gets the write pointer.
  PacketStream stream;
  stream.dwords = {0xc0001000, 0};
  stream.units = {0};
  EXPECT_EQ(compute->ring().push(stream, stream.dwords), 1u);
  compute->ring().commit();
  EXPECT_EQ(std::to_integer<int>(s.gpu->doorbells.data()[8 * kComputeDoorbell]), 2);
  compute->stop();
  EXPECT_FALSE(s.compute_active());
  compute->stop();
  compute.reset();
  EXPECT_NE(space->make_queue(kCompute), nullptr);
}

// Nothing runs on in memory that is given back.
TEST(AmdPciSpace, AQueueThatDoesNotEndIsAReset) {
  SpaceScene s;
  const auto space = s.make(20);
  auto host = space->allocate({4096, MemoryDomain::Host});
  const auto compute = space->make_queue(kCompute);
  s.gpu->hung = true;
  compute->stop();
  EXPECT_EQ(s.gpu->resets, 1);
  space->free(std::move(host));
  EXPECT_THROW(space->allocate({4096, MemoryDomain::Vram}), DeviceLost);
  EXPECT_THROW(space->wait(nullptr, 0), DeviceLost);
}

// Entries may be there already for memory that is given back.
TEST(AmdPciSpace, AHubThatDoesNotAnswerAMapIsAReset) {
  SpaceScene s;
  const auto space = s.make(20);
  s.gpu->hung = true;
  s.gpu->registers[ScriptedGpu::kGc + 4 * 0x16ce] = 0;  // what it said last
  EXPECT_THROW(space->allocate({4096, MemoryDomain::Host}), DeviceLost);
  EXPECT_EQ(s.gpu->resets, 1);
}

TEST(AmdPciSpace, WaitsEndByMailboxOrFault) {
  SpaceScene s;
  const auto space = s.make();
  const auto interrupt = space->make_interrupt();
  auto* const mailbox = reinterpret_cast<uint32_t*>(interrupt->mailbox());
  EXPECT_EQ(s.walk(interrupt->mailbox()).fault, "");
  *mailbox = interrupt->id();
  EXPECT_FALSE(space->wait(interrupt.get(), 1'000'000)) << "at once";
  EXPECT_EQ(*mailbox, 0u) << "once";
  EXPECT_FALSE(space->wait(interrupt.get(), 1)) << "by time";
  // GC's hub: status, and the page.
  uint32_t& status = s.gpu->registers[ScriptedGpu::kGc + 4 * kFaultStatus];
  status = 1u << 18 | 1u << 4;
  s.gpu->registers[ScriptedGpu::kGc + 4 * (kFaultStatus + 1)] = 0x1234;
  const auto error = space->wait(interrupt.get(), 1);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->address, 0x1234000u);
  EXPECT_NE(error->text.find("fault at 0x1234000: a write"), std::string::npos) << error->text;
  status = ~0u;
  EXPECT_THROW(space->wait(interrupt.get(), 1), DeviceLost);
  status = 0;
}

TEST(AmdPciSpace, TheClockIsReadWhole) {
  SpaceScene s;
  const auto space = s.make();
  s.gpu->registers[4 * (kClock + 0x2d)] = 3;
  s.gpu->registers[4 * (kClock + 0x2e)] = 77;
  const ClockPoint a = space->read_clock(), b = space->read_clock();
  EXPECT_EQ(a.ticks, (uint64_t{3} << 32) + 77);
  EXPECT_LE(a.host_ns, b.host_ns);
}

// Whichever call fails once there is a space: an error or none, and nothing stays open.
TEST(AmdPciSpace, EveryCallMayFail) {
  const auto use = [](PciSpace& space) {
    auto vram = space.allocate({3u << 20, MemoryDomain::Vram});
    const auto compute = space.make_queue(kCompute);
    const auto copy = space.make_queue(kCopy);
    space.allocate_signal();
    space.wait(nullptr, 0);
    space.free(std::move(vram));
  };
  uint64_t calls = 0;
  {
    SpaceScene s;
    const auto space = s.make();
    const uint64_t before = s.bus->stats().calls;
    use(*space);
    calls = s.bus->stats().calls - before;
  }
  ASSERT_GT(calls, 100u);
  int thrown = 0;
  for (uint64_t n = 1; n <= calls; n += 23) {
    SpaceScene s;
    const auto space = s.make(50);
    s.bus->fail_at = s.bus->stats().calls + n;
    try {
      use(*space);
    } catch (const Error&) {
      ++thrown;
    }
  }
  EXPECT_GT(thrown, 0);
}

// ---- the iface

TEST(AmdPciIface, TouchesTheGpuThatIsNamed) {
  StartScene s;
  s.bus->add({"0000:07:00.0", 0x1002, 0x73bf, 0x030000, "amdgpu", "10", {}, nullptr});
  s.bus->add({"0000:03:00.1", 0x1002, 0xab30, 0x040300, "vfio-pci", "9", {}, nullptr});
  s.bus->add({"0000:02:00.0", 0x8086, 0x1533, 0x020000, "igb", "18", {}, nullptr});
  const auto said = [&](const char* address) {
    return error_of<Unsupported>([&] { named_gpu(*s.bus, address); });
  };
  EXPECT_EQ(named_gpu(*s.bus, "03:00.0").device, 0x744c);
  EXPECT_NE(said("").find("touches no GPU but the one that AMD_PCI names"), std::string::npos);
  EXPECT_NE(said("").find("0000:07:00.0 (1002:73bf, driver amdgpu)"), std::string::npos);
  EXPECT_NE(said("0000:07:00.0").find("the driver amdgpu holds it"), std::string::npos);
  EXPECT_NE(said("0000:02:00.0").find("is not AMD's (1002)"), std::string::npos);
  EXPECT_NE(said("0000:03:00.1").find("is no GPU"), std::string::npos);
  EXPECT_THROW(named_gpu(*s.bus, "GPU 1"), InvalidArgument);
  AmdIface iface;
  iface.kernel = s.bus;
  iface.pci = true;
  const std::vector<Candidate> found = amd_probe(iface);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].usable);
  EXPECT_THROW(amd_open(iface, ""), Unsupported);
  EXPECT_EQ(s.bus->stats().calls, 0u) << "sysfs alone was looked at";
}

TEST(AmdPciIface, OpensADevice) {
  StartScene s;
  AmdIface iface;
  iface.kernel = s.bus;
  iface.pci = true;
  iface.pci_address = kSlotOfGpu;
  ASSERT_TRUE(amd_probe(iface).at(0).usable);
  EXPECT_EQ(s.bus->stats().calls, 0u);
  {
    const auto device = amd_open(iface, "");
    EXPECT_NE(device->info().description.find("gfx1100"), std::string::npos);
    EXPECT_EQ(s.gc(kGcFirst, 0x1fab) & 1, 1u) << "its compute queue is active";
  }
  EXPECT_EQ(s.gpu->resets, 1);
  s.bus->files.erase("/lib/firmware/amdgpu/smu_13_0_0.bin");
  EXPECT_NE(error_of<Unsupported>([&] { amd_open(iface, ""); }).find("smu_13_0_0.bin"),
            std::string::npos);
}

}  // namespace
}  // namespace tuff::devices::amd

// What the emulated kernel driver refuses of memory, with the kernel's errno; beside each refusal
// stands its nearest neighbour that is taken.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <thread>

#include "emu/mock_scene.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

// Refused, it is one finding; taken, none.
void expect_verdict(MockScene& scene, int result, int error, const std::string& what) {
  EXPECT_EQ(result, -error) << what;
  const auto findings = scene.take_findings();
  ASSERT_EQ(findings.size(), error ? 1u : 0u) << what;
  for (const Finding& finding : findings) EXPECT_EQ(finding.kind, FindingKind::BadCall) << what;
}

struct AllocationCase {
  const char* what;
  int error;
  std::function<void(AllocMemory&)> refused, taken;
};

const std::vector<AllocationCase>& allocation_cases() {
  // A fresh page with nothing behind it for as long as nobody maps anything.
  const auto lone_page = [] {
    void* two = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::munmap(static_cast<std::byte*>(two) + 4096, 4096);
    return reinterpret_cast<uint64_t>(two);
  };
  const auto userptr = [=](uint64_t at, uint64_t size) {
    return [=](AllocMemory& a) {
      a.flags = kUserptr | kWritable;
      a.mmap_offset = at == 0 ? 0 : lone_page() + at % 4096;
      a.size = size;
    };
  };
  static const std::vector<AllocationCase> cases = {
      {"size", EINVAL, [](AllocMemory& a) { a.size = 0; }, [](AllocMemory& a) { a.size = 1; }},
      {"GPU", EINVAL, [](AllocMemory& a) { a.gpu_id += 1; }, [](AllocMemory&) {}},
      {"unknown flag", EINVAL, [](AllocMemory& a) { a.flags |= 1u << 10; },
       [](AllocMemory& a) { a.flags |= kAqlQueueMem; }},
      {"no home", EINVAL, [](AllocMemory& a) { a.flags = kWritable; },
       [](AllocMemory& a) { a.flags = kVram; }},
      {"two homes", EINVAL, [](AllocMemory& a) { a.flags = kGtt | kVram; },
       [](AllocMemory& a) { a.flags = kGtt | kPublic; }},
      {"below the aperture", EINVAL, [](AllocMemory& a) { a.va_addr = 0; },
       [](AllocMemory& a) { a.va_addr = 4096; }},
      {"above the aperture", EINVAL, [](AllocMemory& a) { a.va_addr = 0x7fff'ffff'f000 + 1; },
       [](AllocMemory& a) {
         a.size = 4096;
         a.va_addr = 0x7fff'ffff'f000;
       }},
      {"around the end of addresses", EINVAL,
       [](AllocMemory& a) {
         a.va_addr = 8192;
         a.size = ~uint64_t(0) - 4096;
       },
       [](AllocMemory&) {}},
      {"user pointer 0", EINVAL, userptr(0, 4096), userptr(4096, 4096)},
      {"user pointer in a page", EINVAL, userptr(4096 + 64, 64), userptr(4096, 64)},
      {"user pointer not mapped", EFAULT, userptr(4096, 4097), userptr(4096, 4096)},
      {"doorbells", EINVAL,
       [](AllocMemory& a) {
         a.flags = kDoorbell | kWritable;
         a.size = 4096;
       },
       [](AllocMemory& a) {
         a.flags = kDoorbell | kWritable;
         a.size = 8192;
       }},
      {"registers", EINVAL,
       [](AllocMemory& a) {
         a.flags = kMmioRemap;
         a.size = 8192;
       },
       [](AllocMemory&) {}},
  };
  return cases;
}

TEST(MockMemory, AllocationsAreChecked) {
  MockScene scene;
  scene.acquire();
  for (const AllocationCase& c : allocation_cases()) {
    AllocMemory a = scene.request(65536, kSystemFlags);
    c.refused(a);
    expect_verdict(scene, scene.call(kAllocMemory, a), c.error, c.what);
    a = scene.request(65536, kSystemFlags);
    c.taken(a);
    expect_verdict(scene, scene.call(kAllocMemory, a), 0, c.what);
  }
}

TEST(MockMemory, NothingBeforeAcquireVm) {
  MockScene scene;
  AllocMemory a = scene.request(4096, kSystemFlags);
  expect_verdict(scene, scene.call(kAllocMemory, a), ENODEV, "no address space");
  scene.acquire();
  expect_verdict(scene, scene.call(kAllocMemory, a), 0, "address space");
}

TEST(MockMemory, SmallBarHidesVram) {
  for (bool large : {false, true}) {
    MockOptions options;
    options.large_bar = large;
    MockScene scene(options);
    scene.acquire(0);
    scene.acquire(1);
    AllocMemory a = scene.request(4096, kVramFlags | kPublic);
    expect_verdict(scene, scene.call(kAllocMemory, a), large ? 0 : EINVAL, "public VRAM");
    const auto hidden = scene.allocate(4096, kVramFlags);
    const intptr_t at = scene.machine->mmap(nullptr, 4096, PROT_READ, MAP_SHARED, scene.render[0],
                                            hidden.mmap_offset);
    EXPECT_EQ(at, -EPERM);
    scene.take_findings();
    // Over PCI Express the peers see what the host sees.
    expect_verdict(scene, scene.map(hidden, 0), 0, "own VRAM");
    expect_verdict(scene, scene.map(hidden, 1), large ? 0 : EINVAL, "VRAM of the other");
  }
}

TEST(MockMemory, RunningOutIsNoMistake) {
  MockOptions options;
  options.vram_bytes = 64 << 20;
  MockScene scene(options);
  scene.acquire();
  AvailableMemory available{0, scene.gpu_id(0), 0};
  ASSERT_EQ(scene.call(kAvailableMemory, available), 0);
  const uint64_t all = available.available;
  EXPECT_GT(all, 60u << 20);
  EXPECT_LT(all, 64u << 20);
  AllocMemory a = scene.request(all + 1, kVramFlags);
  EXPECT_EQ(scene.call(kAllocMemory, a), -ENOMEM);
  const auto memory = scene.allocate(all, kVramFlags);
  a = scene.request(1, kVramFlags);
  EXPECT_EQ(scene.call(kAllocMemory, a), -ENOMEM);
  ASSERT_EQ(scene.call(kAvailableMemory, available), 0);
  EXPECT_EQ(available.available, 0u);
  EXPECT_EQ(scene.free(memory), 0);
  EXPECT_EQ(scene.call(kAllocMemory, a), 0);
  a = scene.request(4096, kSystemFlags);
  a.va_addr = 4096;
  a.size = 1ull << 46;
  EXPECT_EQ(scene.call(kAllocMemory, a), -ENOMEM);
  EXPECT_TRUE(scene.take_findings().empty());
}

TEST(MockMemory, HandlesAreChecked) {
  MockScene scene;
  scene.acquire();
  auto memory = scene.allocate(4096, kSystemFlags);
  auto wrong = memory;
  wrong.handle += 1;
  expect_verdict(scene, scene.free(wrong), EINVAL, "free of a wrong handle");
  expect_verdict(scene, scene.map(wrong), ENOMEM, "map of a wrong handle");
  expect_verdict(scene, scene.unmap(memory), EINVAL, "unmap of what is not mapped");
  expect_verdict(scene, scene.map(memory), 0, "map");
  expect_verdict(scene, scene.map(memory), 0, "map again");
  expect_verdict(scene, scene.free(memory), EBUSY, "free of what is mapped");
  expect_verdict(scene, scene.unmap(memory), 0, "unmap");
  expect_verdict(scene, scene.unmap(memory), EINVAL, "unmap twice");
  expect_verdict(scene, scene.free(memory), 0, "free");
  expect_verdict(scene, scene.free(memory), EINVAL, "free twice");
}

TEST(MockMemory, AddressesMeetWhenTheyAreMapped) {
  MockScene scene;
  scene.acquire(0);
  scene.acquire(1);
  const auto first = scene.mapped(65536, kSystemFlags);
  const auto at = [&](uint64_t address, uint64_t size) {
    AllocMemory a = scene.request(size, kSystemFlags);
    a.va_addr = address;
    EXPECT_EQ(scene.call(kAllocMemory, a), 0);
    return MockScene::Memory{address, size, a.handle, a.mmap_offset};
  };
  expect_verdict(scene, scene.map(at(first.address + 65536 - 4096, 4096)), EINVAL, "last page");
  expect_verdict(scene, scene.map(at(first.address, 4096)), EINVAL, "first page");
  expect_verdict(scene, scene.map(at(first.address - 4096, 8192)), EINVAL, "reaches into it");
  expect_verdict(scene, scene.map(at(first.address, 4096), 1), 0, "another GPU");
  expect_verdict(scene, scene.map(at(first.address - 4096, 4096)), 0, "before it");
  expect_verdict(scene, scene.map(at(first.address + 65536, 4096)), 0, "behind it");
  expect_verdict(scene, scene.map(at(first.address + (1 << 20) + 64, 4096)), EINVAL, "in a page");
  AllocMemory nowhere = scene.request(4096, kVramFlags);
  nowhere.va_addr = 0;
  ASSERT_EQ(scene.call(kAllocMemory, nowhere), 0);
  expect_verdict(scene, scene.map({0, 4096, nowhere.handle, 0}), EINVAL, "without an address");
}

TEST(MockMemory, ListsOfGpusAreChecked) {
  MockScene scene;
  scene.acquire(0);
  const auto memory = scene.allocate(4096, kSystemFlags);
  const auto call = [&](std::vector<uint32_t> ids, uint32_t count, uint32_t done) {
    MapMemory a{memory.handle, reinterpret_cast<uint64_t>(ids.data()), count, done};
    const int result = scene.call(kMapMemory, a);
    return std::pair(result, a.n_success);
  };
  const uint32_t first = scene.gpu_id(0), second = scene.gpu_id(1);
  EXPECT_EQ(call({first}, 0, 0).first, -EINVAL);
  EXPECT_EQ(call({first}, 1, 2).first, -EINVAL);
  // The first is done when the second is refused; the call can be finished later.
  EXPECT_EQ(call({first, second}, 2, 0), std::pair(-ENODEV, 1u));
  EXPECT_EQ(call({first, 12345}, 2, 0), std::pair(-EINVAL, 1u));
  scene.acquire(1);
  EXPECT_EQ(call({first, second}, 2, 1), std::pair(0, 2u));
  MapMemory bad{memory.handle, 8, 1, 0};
  EXPECT_EQ(scene.call(kUnmapMemory, bad), -EFAULT);
  EXPECT_EQ(scene.unmap(memory, 0), 0);
  EXPECT_EQ(scene.unmap(memory, 1), 0);
}

TEST(MockMemory, HostAndGpuSeeTheSameBytes) {
  take_gpu_history();
  std::byte* gpu_side = nullptr;
  uint64_t address = 0;
  GpuScript script;
  script.packet = [&](const ScriptedPacket& packet) {
    gpu_side = reach(packet.space, address);
    gpu_side[5] = std::byte{8};
    packet.events.interrupt(packet.gpu, 0);
    return true;
  };
  MockOptions options;
  options.seed = 1;
  set_gpu_script(script);
  MockScene scene(options);
  scene.acquire();
  const auto memory = scene.mapped(10000, kSystemFlags);  // of which the last page is not full
  std::byte* host = scene.map_on_host(memory);
  address = memory.address;
  host[4] = std::byte{7};
  scene.make_event_page();
  const CreateQueue queue = scene.queue(QueueType::Compute);
  scene.ring(scene.doorbell(queue), 1);
  scene.wait(scene.event(EventType::Signal), 1);
  ASSERT_NE(gpu_side, nullptr);
  EXPECT_EQ(gpu_side[4], std::byte{7});
  EXPECT_EQ(host[5], std::byte{8});
  set_gpu_script({});
}

TEST(MockMemory, MmapIsChecked) {
  MockScene scene;
  scene.acquire();
  const auto memory = scene.allocate(8192, kSystemFlags);
  const auto map = [&](uint64_t size, uint64_t offset, int fd, int flags = MAP_SHARED) {
    const intptr_t at =
        scene.machine->mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, offset);
    if (at > 0) scene.machine->munmap(reinterpret_cast<void*>(at), size);
    return at > 0 ? 0 : at;
  };
  const int fd = scene.render[0];
  EXPECT_EQ(map(8192, memory.mmap_offset, fd), 0);
  EXPECT_EQ(map(4096, memory.mmap_offset, fd), 0);
  EXPECT_EQ(map(12288, memory.mmap_offset, fd), -EINVAL);
  EXPECT_EQ(map(4096, memory.mmap_offset + 4096, fd), -EINVAL);
  EXPECT_EQ(map(4096, memory.mmap_offset + 1, fd), -EINVAL);
  EXPECT_EQ(map(8192, memory.mmap_offset, fd, MAP_PRIVATE), -EINVAL);
  EXPECT_EQ(map(8192, memory.mmap_offset, scene.render[1]), -EACCES);  // not acquired
  const int other = scene.machine->open("/dev/dri/renderD128", O_RDWR);
  EXPECT_EQ(map(8192, memory.mmap_offset, other), -EACCES);  // another opening
  const int reading = scene.machine->open("/dev/dri/renderD128", O_RDONLY);
  EXPECT_EQ(map(8192, memory.mmap_offset, reading), -EACCES);
  EXPECT_EQ(map(8192, memory.mmap_offset, scene.kfd), -EFAULT);
  EXPECT_EQ(scene.take_findings().size(), 8u);
  // A freed buffer's offset is nobody's.
  EXPECT_EQ(scene.free(memory), 0);
  EXPECT_EQ(map(8192, memory.mmap_offset, fd), -EINVAL);
}

TEST(MockMemory, DoorbellsAreMappedWhole) {
  MockScene scene;
  scene.acquire();
  const CreateQueue queue = scene.queue(QueueType::Sdma);
  const uint64_t page = queue.doorbell_offset & ~uint64_t(8191);
  const auto map = [&](uint64_t size, uint64_t offset) {
    const intptr_t at =
        scene.machine->mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, scene.kfd, offset);
    if (at > 0) scene.machine->munmap(reinterpret_cast<void*>(at), size);
    return at > 0 ? 0 : at;
  };
  EXPECT_EQ(map(8192, page), 0);
  EXPECT_EQ(map(4096, page), -EINVAL);
  EXPECT_EQ(map(16384, page), -EINVAL);
  EXPECT_EQ(map(8192, page + (uint64_t(1) << 46)), -ENODEV);
}

TEST(MockMemory, CachesForgetBeforeAMappingEnds) {
  take_gpu_history();
  MockScene scene;
  scene.acquire();
  const auto memory = scene.mapped(4096, kVramFlags);
  EXPECT_TRUE(take_gpu_history().empty());
  EXPECT_EQ(scene.unmap(memory), 0);
  EXPECT_EQ(take_gpu_history(), std::vector<std::string>{"forget 0:1"});
}

// What the host takes away from under a GPU is a fault there, and not a crash.
TEST(MockMemory, MemoryThatTheHostUnmapsIsLostToGpus) {
  std::byte* seen = nullptr;
  uint64_t address = 0;
  MockOptions options;
  options.seed = 1;
  GpuScript script;
  script.packet = [&](const ScriptedPacket& packet) {
    seen = reach(packet.space, address);
    return true;
  };
  set_gpu_script(script);
  MockScene scene(options);
  set_gpu_script({});
  scene.acquire();
  scene.make_event_page();
  const uint32_t event = scene.event(EventType::Signal);
  uint64_t* bell = scene.doorbell(scene.queue(QueueType::Compute));
  void* user = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  AllocMemory a = scene.request(8192, kUserptr | kWritable);
  a.mmap_offset = reinterpret_cast<uint64_t>(user);
  ASSERT_EQ(scene.call(kAllocMemory, a), 0);
  const MockScene::Memory memory{a.va_addr, 8192, a.handle, 0};
  address = a.va_addr + 4096;
  ASSERT_EQ(scene.map(memory), 0);
  scene.ring(bell, 1);
  scene.wait(event, 1);
  EXPECT_EQ(seen, static_cast<std::byte*>(user) + 4096);
  EXPECT_TRUE(scene.take_findings().empty());
  EXPECT_EQ(scene.machine->munmap(user, 4096), 0);  // half of it
  EXPECT_EQ(scene.take_findings().size(), 1u);
  scene.ring(bell, 2);
  scene.wait(event, 1);
  EXPECT_EQ(seen, nullptr);
  // It is unmapped and freed as ever, and does not take somebody else along.
  AllocMemory other = scene.request(8192, kSystemFlags);
  other.va_addr = a.va_addr;
  ASSERT_EQ(scene.call(kAllocMemory, other), 0);
  ASSERT_EQ(scene.map({other.va_addr, 8192, other.handle, 0}), 0);
  EXPECT_EQ(scene.unmap(memory), 0);
  EXPECT_EQ(scene.free(memory), 0);
  EXPECT_EQ(scene.machine->munmap(static_cast<std::byte*>(user) + 4096, 4096), 0);
  scene.ring(bell, 3);
  scene.wait(event, 1);
  EXPECT_NE(seen, nullptr);
  EXPECT_TRUE(scene.take_findings().empty());
}

// The same memory twice in a row, for rings that wrap without being cut.
TEST(MockMemory, AqlQueueMemoryIsMappedTwice) {
  std::byte *once = nullptr, *twice = nullptr;
  uint64_t address = 0;
  GpuScript script;
  script.packet = [&](const ScriptedPacket& packet) {
    once = reach(packet.space, address);
    twice = reach(packet.space, address + 4096);
    return true;
  };
  MockOptions options;
  options.seed = 1;
  set_gpu_script(script);
  MockScene scene(options);
  scene.acquire();
  address = scene.mapped(8192, kSystemFlags | kAqlQueueMem).address;
  scene.make_event_page();
  scene.ring(scene.doorbell(scene.queue(QueueType::Compute)), 1);
  scene.wait(scene.event(EventType::Signal), 1);
  EXPECT_NE(once, nullptr);
  EXPECT_EQ(once, twice);
  set_gpu_script({});
}

}  // namespace
}  // namespace tuff::emu::amd

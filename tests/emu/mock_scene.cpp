#include "emu/mock_scene.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <utility>

namespace tuff::emu::amd {

using namespace os::kfd;

MockScene::MockScene(MockOptions options) {
  if (!options.report) {
    options.report = [this](const Finding& finding) {
      std::lock_guard lock(mutex);
      findings.push_back(finding);
    };
  }
  machine = make_mock(options);
  kfd = machine->open("/dev/kfd", O_RDWR | O_CLOEXEC);
  for (uint32_t gpu = 0; gpu < options.gpus; ++gpu)
    render.push_back(machine->open(fmt::format("/dev/dri/renderD{}", 128 + gpu), O_RDWR));
}

MockScene::~MockScene() {
  machine.reset();
  for (const auto& [at, size] : reserved) ::munmap(at, size);
}

uint32_t MockScene::gpu_id(uint32_t gpu) const {
  std::string text;
  machine->read_text(fmt::format("/sys/devices/virtual/kfd/kfd/topology/nodes/{}/gpu_id", gpu + 1),
                     text);
  return uint32_t(std::stoul(text));
}

void MockScene::acquire(uint32_t gpu) {
  AcquireVm a{uint32_t(render[gpu]), gpu_id(gpu)};
  ASSERT_EQ(call(kAcquireVm, a), 0);
}

uint64_t MockScene::reserve(uint64_t size_bytes) {
  void* at = ::mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  reserved.emplace_back(at, size_bytes);
  return reinterpret_cast<uint64_t>(at);
}

AllocMemory MockScene::request(uint64_t size_bytes, uint32_t flags, uint32_t gpu) {
  AllocMemory a{};
  a.va_addr = reserve((size_bytes + 4095) / 4096 * 4096);
  a.size = size_bytes;
  a.gpu_id = gpu_id(gpu);
  a.flags = flags;
  return a;
}

MockScene::Memory MockScene::allocate(uint64_t size_bytes, uint32_t flags, uint32_t gpu) {
  AllocMemory a = request(size_bytes, flags, gpu);
  EXPECT_EQ(call(kAllocMemory, a), 0);
  return {a.va_addr, size_bytes, a.handle, a.mmap_offset};
}

int MockScene::map(const Memory& memory, uint32_t gpu) {
  uint32_t id = gpu_id(gpu);
  MapMemory a{memory.handle, reinterpret_cast<uint64_t>(&id), 1, 0};
  return call(kMapMemory, a);
}

int MockScene::unmap(const Memory& memory, uint32_t gpu) {
  uint32_t id = gpu_id(gpu);
  MapMemory a{memory.handle, reinterpret_cast<uint64_t>(&id), 1, 0};
  return call(kUnmapMemory, a);
}

int MockScene::free(const Memory& memory) {
  FreeMemory a{memory.handle};
  return call(kFreeMemory, a);
}

std::byte* MockScene::map_on_host(const Memory& memory, uint32_t gpu) {
  const intptr_t at =
      machine->mmap(reinterpret_cast<void*>(memory.address), memory.size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, render[gpu], memory.mmap_offset);
  EXPECT_EQ(uint64_t(at), memory.address);
  return reinterpret_cast<std::byte*>(at);
}

MockScene::Memory MockScene::mapped(uint64_t size_bytes, uint32_t flags, uint32_t gpu) {
  const Memory memory = allocate(size_bytes, flags, gpu);
  EXPECT_EQ(map(memory, gpu), 0);
  return memory;
}

// The sizes of a save area are those of a GPU with 96 CUs of gfx1100, by hand: 96 x 32 waves x 12
// bytes of control stack, 96 x 0x75000 bytes of registers and LDS, 96 x 32 waves x 32 bytes.
CreateQueue MockScene::queue_request(QueueType type, uint32_t gpu) {
  constexpr uint64_t kStack = 40960, kData = 46006272, kDebug = 98304;
  CreateQueue a{};
  a.gpu_id = gpu_id(gpu);
  a.queue_type = uint32_t(type);
  a.queue_percentage = 100;
  a.queue_priority = 7;
  a.ring_size = 65536;
  a.ring_base_address = mapped(a.ring_size, kSystemFlags, gpu).address;
  const uint64_t pointers = mapped(4096, kSystemFlags, gpu).address;
  a.write_pointer_address = pointers + 0x38;
  a.read_pointer_address = pointers + 0x80;
  if (type == QueueType::Sdma) return a;
  a.eop_buffer_size = 4096;
  a.eop_buffer_address = mapped(4096, kVramFlags, gpu).address;
  a.ctl_stack_size = kStack;
  a.ctx_save_restore_size = kStack + kData;
  a.ctx_save_restore_address = mapped(kStack + kData + kDebug, kVramFlags, gpu).address;
  return a;
}

CreateQueue MockScene::queue(QueueType type, uint32_t gpu) {
  CreateQueue a = queue_request(type, gpu);
  EXPECT_EQ(call(kCreateQueue, a), 0);
  return a;
}

int MockScene::destroy_queue(uint32_t id) {
  DestroyQueue a{id, 0};
  return call(kDestroyQueue, a);
}

uint64_t* MockScene::doorbell(const CreateQueue& queue) {
  const uint64_t page = queue.doorbell_offset & ~uint64_t(8191);
  const intptr_t at = machine->mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, page);
  EXPECT_GT(at, 0);
  reserved.emplace_back(reinterpret_cast<void*>(at), 8192);
  return reinterpret_cast<uint64_t*>(at + intptr_t(queue.doorbell_offset & 8191));
}

void MockScene::ring(uint64_t* doorbell, uint64_t value) {
  std::atomic_ref(*doorbell).store(value);
}

uint64_t* MockScene::make_event_page() {
  const Memory page = mapped(0x8000, kSystemFlags);
  CreateEvent a{};
  a.event_page_offset = page.handle;
  a.event_type = uint32_t(EventType::Signal);
  EXPECT_EQ(call(kCreateEvent, a), 0);
  DestroyEvent d{a.event_id, 0};
  EXPECT_EQ(call(kDestroyEvent, d), 0);
  return reinterpret_cast<uint64_t*>(map_on_host(page));
}

uint32_t MockScene::event(EventType type, bool auto_reset) {
  CreateEvent a{};
  a.event_type = uint32_t(type);
  a.auto_reset = auto_reset;
  EXPECT_EQ(call(kCreateEvent, a), 0);
  return a.event_id;
}

int MockScene::wait(std::vector<EventData>& events, uint32_t timeout_ms, bool all) {
  WaitEvents a{reinterpret_cast<uint64_t>(events.data()), uint32_t(events.size()), all, timeout_ms,
               0};
  const int result = call(kWaitEvents, a);
  return result != 0 ? result : int(a.wait_result);
}

int MockScene::wait(uint32_t event, uint32_t timeout_ms) {
  std::vector<EventData> events(1);
  events[0].event_id = event;
  return wait(events, timeout_ms);
}

std::vector<Finding> MockScene::take_findings() {
  std::lock_guard lock(mutex);
  return std::exchange(findings, {});
}

}  // namespace tuff::emu::amd

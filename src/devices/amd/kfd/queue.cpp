#include "devices/amd/kfd/queue.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace tuff::devices::amd {
namespace {

// The page of pointers is laid out as amd_queue_t, which the firmware reads of AQL queues. Source:
// ROCr inc/amd_hsa_queue.h.
constexpr uint32_t kMaxCuId = 0x48, kMaxWaveId = 0x4c, kWritePointer = 0x38, kReadPointer = 0x80,
                   kReadPointerOffset = 0x88, kTmpring = 0x8c, kScratchDescriptor = 0x90,
                   kScratchAddress = 0xa0, kScratchLaneBytes = 0xb0, kProperties = 0xb4;
constexpr uint32_t kIsPtr64 = 1 << 1;
constexpr uint32_t kPriority = 7;  // of 15: as ROCr's normal one
// Words of the scratch's buffer descriptor of gfx9. Source: ROCr core/inc/registers.h.
constexpr uint32_t kSwizzleEnable = 1u << 31;
constexpr uint32_t kDescriptorWord3 =
    4 | 5 << 3 | 6 << 6 | 7 << 9 | 4 << 12 | 4 << 15 | 1 << 19 | 3 << 21 | 1 << 23;

template <class T>
void put(const Buffer& page, uint32_t offset, T value) {
  std::memcpy(page.host() + offset, &value, sizeof value);
}

uapi::QueueType kernel_type(QueueType type) {
  switch (type) {
    case QueueType::Pm4: return uapi::QueueType::Compute;
    case QueueType::Aql: return uapi::QueueType::ComputeAql;
    case QueueType::Sdma: return uapi::QueueType::Sdma;
  }
  return {};
}

}  // namespace

KfdQueue::KfdQueue(Process& process, Gpu& gpu, const HardwareQueueSetup& setup)
    : process_(process), gpu_(gpu) {
  ring_memory_ = process.allocate(gpu, {setup.ring_bytes, MemoryDomain::Uncached});
  pointers_ = process.allocate(gpu, {kPageBytes, MemoryDomain::Uncached});
  if (setup.type != QueueType::Sdma) {
    sizes_ = queue_sizes(*gpu.node.generation(), gpu.node.shape);
    end_of_pipe_ = process.allocate(gpu, {sizes_.eop_bytes, MemoryDomain::Vram});
    save_area_ = process.allocate(gpu, {sizes_.mapping_bytes, MemoryDomain::Vram});
  }
  if (setup.type == QueueType::Aql) {
    put(*pointers_, kReadPointerOffset, kReadPointer);
    put(*pointers_, kMaxCuId, gpu.node.shape.cus() - 1);
    put(*pointers_, kMaxWaveId, gpu.node.shape.max_waves_per_simd * gpu.node.shape.simd_per_cu - 1);
    put(*pointers_, kProperties, kIsPtr64);
  }
  // Made once before the queue is: AQL packets have to be invalid before the GPU reads them.
  RingMemory memory;
  memory.dwords = reinterpret_cast<uint32_t*>(ring_memory_->host());
  memory.dword_count = setup.ring_bytes / sizeof(uint32_t);
  memory.read_pointer = reinterpret_cast<uint64_t*>(pointers_->host() + kReadPointer);
  memory.write_pointer = reinterpret_cast<uint64_t*>(pointers_->host() + kWritePointer);
  ring_ = std::make_unique<Ring>(setup.type, memory);
  const uint64_t doorbell = create(setup);
  try {
    memory.doorbell = process.doorbell(gpu, doorbell);
  } catch (...) {
    stop();
    throw;
  }
  ring_ = std::make_unique<Ring>(setup.type, memory);
}

uint64_t KfdQueue::create(const HardwareQueueSetup& setup) {
  uapi::CreateQueue q{};
  q.ring_base_address = ring_memory_->address();
  q.write_pointer_address = pointers_->address() + kWritePointer;
  q.read_pointer_address = pointers_->address() + kReadPointer;
  q.ring_size = setup.ring_bytes;
  q.gpu_id = gpu_.node.gpu_id;
  q.queue_type = uint32_t(kernel_type(setup.type));
  q.queue_percentage = uapi::kMaxQueuePercentage;
  q.queue_priority = kPriority;
  if (end_of_pipe_) {
    q.eop_buffer_address = end_of_pipe_->address();
    q.eop_buffer_size = sizes_.eop_bytes;
    q.ctx_save_restore_address = save_area_->address();
    q.ctx_save_restore_size = sizes_.save_area_bytes;
    q.ctl_stack_size = sizes_.control_stack_bytes;
  }
  checked(process_.kernel().ioctl(process_.fd(), uapi::kCreateQueue, &q),
          "CREATE_QUEUE(type {}, {}, ring of {} bytes, save area of {}, control stack of {})",
          q.queue_type, gpu_.node.arch(), q.ring_size, q.ctx_save_restore_size, q.ctl_stack_size);
  id_ = q.queue_id;
  created_ = true;
  return q.doorbell_offset;
}

KfdQueue::~KfdQueue() { stop(); }

void KfdQueue::stop() noexcept {
  std::lock_guard lock(mutex_);
  if (!std::exchange(created_, false)) return;
  uapi::DestroyQueue d{id_, 0};
  const int result = undo(process_.kernel(), process_.fd(), uapi::kDestroyQueue, d);
  if (result < 0) log_warn("AMD: DESTROY_QUEUE({}) failed: error {}", id_, -result);
}

void KfdQueue::set_scratch(const ScratchArea& area) {
  put(*pointers_, kScratchDescriptor, uint32_t(area.address));
  put(*pointers_, kScratchDescriptor + 4, uint32_t(area.address >> 32) | kSwizzleEnable);
  const uint64_t bytes_of_xcc = area.size.size_bytes / gpu_.node.shape.xccs;
  put(*pointers_, kScratchDescriptor + 8, uint32_t(std::min<uint64_t>(bytes_of_xcc, ~0u)));
  put(*pointers_, kScratchDescriptor + 12, kDescriptorWord3);
  put(*pointers_, kScratchAddress, area.address);
  put(*pointers_, kScratchLaneBytes, area.size.bytes_per_lane);
  put(*pointers_, kTmpring, area.size.tmpring);
}

}  // namespace tuff::devices::amd

#include "emu/amd/kfd/queues.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "emu/kernel/refusal.h"
#include "emu/amd/kfd/topology.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

constexpr uint32_t kMinRingBytes = 1024;        // KFD_MIN_QUEUE_RING_SIZE
constexpr uint32_t kMaxQueuesOfGpu = 127;       // of one process: HWS limit
constexpr uint32_t kMaxQueues = 1024;           // KFD_MAX_NUM_OF_QUEUES_PER_PROCESS
constexpr uint32_t kFirstSdmaDoorbell = 0x100;  // AMDGPU_NAVI10_DOORBELL_sDMA_ENGINE0

// Bytes of one CU; this generation has 1.5 times the vector registers of its predecessor.
constexpr uint32_t kVgprBytes = 0x60000, kSgprBytes = 0x4000, kLdsBytes = 0x10000,
                   kHwregBytes = 0x1000;
constexpr uint32_t kWavesOfCu = 32, kStackBytesOfWave = 12, kDebugBytesOfWave = 32;
constexpr uint32_t kSaveHeaderBytes = 40;  // SIZEOF_HSA_USER_CONTEXT_SAVE_AREA_HEADER

// set_queue_properties_from_user, in its order.
void check_properties(const CreateQueue& a) {
  if (a.queue_percentage > kMaxQueuePercentage)
    refuse(EINVAL, "queue percentage {}, at most {}", a.queue_percentage, kMaxQueuePercentage);
  if (a.queue_priority > kMaxQueuePriority)
    refuse(EINVAL, "queue priority {}, at most {}", a.queue_priority, kMaxQueuePriority);
  if (!std::has_single_bit(a.ring_size))
    refuse(EINVAL, "a ring of {} bytes, a power of two is needed", a.ring_size);
  if (a.queue_type > uint32_t(QueueType::ComputeAql))
    refuse(kNotSupported, "queues of type {} are not known", a.queue_type);
  if (a.read_pointer_address % sizeof(uint64_t) || a.write_pointer_address % sizeof(uint64_t))
    refuse(EINVAL, "read pointer {:#x}, write pointer {:#x}: not at multiples of 8",
           a.read_pointer_address, a.write_pointer_address);
}

}  // namespace

SaveAreaSizes save_area_sizes(uint32_t cus) {
  const uint32_t waves = cus * kWavesOfCu;
  const uint64_t stack = align_up(kSaveHeaderBytes + waves * kStackBytesOfWave + 8, kPageBytes);
  const uint64_t data = align_up(
      uint64_t(cus) * (kVgprBytes + kSgprBytes + kLdsBytes + kHwregBytes), kPageBytes);
  return {uint32_t(stack), uint32_t(stack + data),
          uint32_t(align_up(waves * kDebugBytesOfWave, 64))};
}

uint64_t doorbell_mmap_offset(uint32_t gpu_id) {
  return uint64_t(3) << 62 | uint64_t(gpu_id & 0xffff) << 46;
}

Queues::Queues(Memory& memory, uint32_t gpus, uint32_t cus,
               const std::shared_ptr<PageFile>& file)
    : memory_(memory), cus_(cus) {
  for (uint32_t gpu = 0; gpu < gpus; ++gpu) {
    doorbells_.push_back(Pages::make(kDoorbellBytes, file));
    if (!doorbells_.back().data()) fail<OutOfMemory>("emulated GPU: no page for doorbells");
    std::memset(doorbells_.back().data(), 0xff, kDoorbellBytes);
  }
}

void Queues::count_limits(uint32_t gpu, bool sdma) const {
  uint32_t of_gpu = 0, copying = 0;
  for (const auto& [id, queue] : queues_) {
    of_gpu += queue.gpu == gpu;
    copying += queue.gpu == gpu && queue.sdma;
  }
  if (of_gpu >= kMaxQueuesOfGpu) run_out(ENOSPC, "GPU {} has {} queues already", gpu, of_gpu);
  if (queues_.size() >= kMaxQueues) run_out(ENOMEM, "the process has {} queues", queues_.size());
  constexpr uint32_t kSdmaQueues = Navi31::kSdmaEngines * Navi31::kSdmaQueuesPerEngine;
  if (sdma && copying >= kSdmaQueues)
    run_out(ENOMEM, "GPU {} has no more than {} SDMA queues", gpu, kSdmaQueues);
}

void Queues::hold(Queue& queue, uint64_t address, uint64_t size_bytes, const char* what) {
  BufferObject* object = memory_.hold(queue.gpu, address, size_bytes);
  if (!object)
    refuse(EINVAL, "{} at {:#x}: no mapping on GPU {} begins there that has exactly {} bytes", what,
           address, queue.gpu, align_down(size_bytes, kPageBytes));
  queue.held.push_back(object);
}

// kfd_queue_acquire_buffers. Rings below a page are compared with nothing there.
void Queues::hold_buffers(Queue& queue, const CreateQueue& a) {
  hold(queue, a.write_pointer_address, kPageBytes, "write pointer");
  hold(queue, a.read_pointer_address, kPageBytes, "read pointer");
  hold(queue, a.ring_base_address, std::max(a.ring_size, kMinRingBytes), "ring");
  if (a.ring_base_address % 256)  // the MQD has no bits for it
    refuse(EINVAL, "ring at {:#x}: not at a multiple of 256", a.ring_base_address);
  if (!queue.sdma) hold_compute_buffers(queue, a);
}

void Queues::hold_compute_buffers(Queue& queue, const CreateQueue& a) {
  const SaveAreaSizes needed = save_area_sizes(cus_);
  if (a.eop_buffer_address) {
    if (a.eop_buffer_size != Navi31::kEopBytes)
      refuse(EINVAL, "EOP buffer of {} bytes instead of {}", a.eop_buffer_size, Navi31::kEopBytes);
    hold(queue, a.eop_buffer_address, a.eop_buffer_size, "EOP buffer");
  }
  if (a.ctl_stack_size != needed.control_stack_bytes)
    refuse(EINVAL, "control stack of {} bytes instead of {}", a.ctl_stack_size,
           needed.control_stack_bytes);
  if (a.ctx_save_restore_size < needed.save_area_bytes)
    refuse(EINVAL, "save area of {} bytes, at least {} are needed", a.ctx_save_restore_size,
           needed.save_area_bytes);
  const uint64_t mapped =
      align_up(uint64_t(a.ctx_save_restore_size) + needed.debug_bytes, kPageBytes);
  hold(queue, a.ctx_save_restore_address, mapped, "save area");
}

uint32_t Queues::free_doorbell(uint32_t gpu, bool sdma) const {
  std::vector<bool> taken(kDoorbellBytes / sizeof(uint64_t));
  for (const auto& [id, queue] : queues_) {
    if (queue.gpu == gpu) taken[queue.doorbell] = true;
  }
  uint32_t number = sdma ? kFirstSdmaDoorbell : 0;
  while (taken[number]) ++number;
  return number;
}

QueueSetup Queues::create(CreateQueue& a, uint32_t gpu) {
  check_properties(a);
  const bool sdma = a.queue_type == uint32_t(QueueType::Sdma);
  count_limits(gpu, sdma);
  Queue queue{gpu, sdma, free_doorbell(gpu, sdma), {}};
  try {
    hold_buffers(queue, a);
  } catch (const Refused&) {
    drop(queue);
    throw;
  }
  uint32_t id = 0;
  while (queues_.contains(id)) ++id;
  auto* bell = reinterpret_cast<uint64_t*>(doorbells_[gpu].data()) + queue.doorbell;
  *bell = ~uint64_t(0);
  a.queue_id = id;
  a.doorbell_offset = doorbell_mmap_offset(gpu_id_of(gpu)) | queue.doorbell * sizeof(uint64_t);
  QueueSetup setup;
  setup.id = id;
  setup.kind = sdma                                           ? QueueKind::Sdma
               : a.queue_type == uint32_t(QueueType::Compute) ? QueueKind::Pm4
                                                              : QueueKind::Aql;
  setup.ring_address = a.ring_base_address;
  setup.ring_bytes = std::max(a.ring_size, kMinRingBytes);
  setup.read_pointer_address = a.read_pointer_address;
  setup.write_pointer_address = a.write_pointer_address;
  setup.eop_address = sdma ? 0 : a.eop_buffer_address;
  setup.eop_bytes = sdma || !a.eop_buffer_address ? 0 : a.eop_buffer_size;
  setup.doorbell = bell;
  queues_[id] = std::move(queue);
  return setup;
}

uint32_t Queues::gpu_of(uint32_t id) const {
  const auto queue = queues_.find(id);
  if (queue == queues_.end()) refuse(EINVAL, "there is no queue {}", id);
  return queue->second.gpu;
}

void Queues::drop(Queue& queue) {
  for (BufferObject* object : queue.held) memory_.release(*object, queue.gpu);
  queue.held.clear();
}

void Queues::release(uint32_t id) {
  drop(queues_.at(id));
  queues_.erase(id);
}

}  // namespace tuff::emu::amd

// Queues: what CREATE_QUEUE checks and holds, doorbells, and which queues there are. Called by the
// calls of the process (machine.cpp), one at a time. The numbers of save areas are computed here
// from the kernel's own formulas, so that a driver's mistake in them shows. Sources: Linux
// amdkfd/kfd_queue.c, kfd_chardev.c (set_queue_properties_from_user),
// kfd_process_queue_manager.c (pqm_create_queue), kfd_device_queue_manager.c (doorbells).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/os_kfd.h"
#include "emu/amd/gpu.h"
#include "emu/amd/kfd/memory.h"
#include "emu/kernel/pages.h"

namespace tuff::emu::amd {

inline constexpr uint64_t kDoorbellBytes = 8192;  // of one process on one GPU

// kfd_queue_ctx_save_restore_size.
struct SaveAreaSizes {
  uint32_t control_stack_bytes, save_area_bytes, debug_bytes;
};
SaveAreaSizes save_area_sizes(uint32_t cus);

// For mmap of /dev/kfd: KFD_MMAP_TYPE_DOORBELL and the GPU's id.
uint64_t doorbell_mmap_offset(uint32_t gpu_id);

class Queues {
 public:
  // `cus`: compute units of each GPU.
  Queues(Memory& memory, uint32_t gpus, uint32_t cus, const std::shared_ptr<PageFile>& file);
  // Fills the out fields. To be attached by the caller.
  QueueSetup create(os::kfd::CreateQueue& arguments, uint32_t gpu);
  // Which GPU has it; EINVAL if there is no such queue. To be detached before release().
  uint32_t gpu_of(uint32_t id) const;
  void release(uint32_t id);
  const Pages& doorbells(uint32_t gpu) const { return doorbells_[gpu]; }
  std::optional<uint32_t> first() const {
    return queues_.empty() ? std::nullopt : std::optional(queues_.begin()->first);
  }
  size_t count() const { return queues_.size(); }

 private:
  struct Queue {
    uint32_t gpu;
    bool sdma;
    uint32_t doorbell;  // its number in the page
    std::vector<BufferObject*> held;
  };
  void count_limits(uint32_t gpu, bool sdma) const;
  void hold(Queue& queue, uint64_t address, uint64_t size_bytes, const char* what);
  void hold_buffers(Queue& queue, const os::kfd::CreateQueue& arguments);
  void hold_compute_buffers(Queue& queue, const os::kfd::CreateQueue& arguments);
  void drop(Queue& queue);
  uint32_t free_doorbell(uint32_t gpu, bool sdma) const;

  Memory& memory_;
  const uint32_t cus_;
  std::vector<Pages> doorbells_;  // by GPU
  std::map<uint32_t, Queue> queues_;
};

}  // namespace tuff::emu::amd

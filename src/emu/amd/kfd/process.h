// Process: what /dev/kfd keeps of the process that has opened it, and what its calls do. All but
// wait_events one at a time, under the machine's lock. Each throws Refused where the kernel returns
// an error. Source: Linux amdkfd/kfd_chardev.c (kfd_ioctl_*), kfd_process.c.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/os_kfd.h"
#include "emu/amd/kfd/engines.h"
#include "emu/amd/kfd/memory.h"
#include "emu/amd/kfd/queues.h"
#include "emu/kernel/user_memory.h"

namespace tuff::emu::amd {

// An open render node; `serial` tells one opening from the next.
struct RenderFile {
  uint32_t gpu = 0;
  uint64_t serial = 0;
};

// What of the machine outlives a process.
struct MachineParts {
  const MockOptions& options;
  std::span<const std::unique_ptr<AddressSpace>> spaces;
  std::shared_ptr<PageFile> file;
  UserMemory& user_memory;
  Events& events;
  LoadedCode& code;
  Engines& engines;
};

class Process {
 public:
  explicit Process(const MachineParts& parts);
  ~Process();  // queues first, then memory, then events

  void get_version(os::kfd::GetVersion& a);
  void create_queue(os::kfd::CreateQueue& a);
  void destroy_queue(os::kfd::DestroyQueue& a);
  void get_clock_counters(os::kfd::GetClockCounters& a);
  void create_event(os::kfd::CreateEvent& a);
  void destroy_event(os::kfd::DestroyEvent& a);
  void set_event(os::kfd::SetEvent& a);
  void get_apertures(os::kfd::GetProcessAperturesNew& a);
  // `file`: what drm_fd is, if it is an open render node.
  void acquire_vm(os::kfd::AcquireVm& a, const std::optional<RenderFile>& file);
  void allocate_memory(os::kfd::AllocMemory& a);
  void free_memory(os::kfd::FreeMemory& a);
  void map_memory(os::kfd::MapMemory& a);
  void unmap_memory(os::kfd::MapMemory& a);
  void available_memory(os::kfd::AvailableMemory& a);
  void runtime_enable(os::kfd::RuntimeEnable& a);

  intptr_t map_buffer(const RenderFile& file, void* at, size_t size_bytes, int protection,
                      int flags, uint64_t offset);
  intptr_t map_device(void* at, size_t size_bytes, int protection, int flags, uint64_t offset);
  // Refused in words alone: the system unmaps what it is told to.
  void check_unmap(uint64_t address, uint64_t size_bytes);
  size_t queues() const { return queues_.count(); }

 private:
  uint32_t find_gpu(uint32_t gpu_id) const;  // EINVAL
  void bind(uint32_t gpu, int error) const;  // the error without ACQUIRE_VM
  void set_event_page(uint64_t handle);
  std::vector<uint32_t> device_ids(const os::kfd::MapMemory& a);
  void remove_queue(uint32_t id);

  MachineParts parts_;
  Memory memory_;
  Queues queues_;
  std::vector<std::optional<uint64_t>> vm_files_;  // serial of the render file, by GPU
  uint64_t event_page_ = 0;                        // its handle
  bool runtime_enabled_ = false;
};

// Not of one Process: it goes while others wait.
void wait_events(const MachineParts& parts, os::kfd::WaitEvents& a);

}  // namespace tuff::emu::amd

// Memory: the buffer objects of a process and what of them is mapped on which GPU. Called by the
// calls of the process (machine.cpp, queues.cpp), one at a time; it fills the GPUs' address spaces.
// Sources: Linux amdgpu/amdgpu_amdkfd_gpuvm.c, amdgpu_vm.c (amdgpu_vm_bo_map), amdgpu_gem.c (mmap),
// amdkfd/kfd_chardev.c (kfd_ioctl_*_memory_*), amdkfd/kfd_flat_memory.c (apertures).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/os_kfd.h"
#include "emu/memory/address_space.h"
#include "emu/kernel/pages.h"
#include "emu/amd/mock.h"

namespace tuff::emu::amd {

// kfd_init_apertures_v9.
inline constexpr uint64_t kGpuvmBase = kPageBytes, kGpuvmLimit = 0x7fff'ffff'ffff;
inline constexpr uint64_t kLdsBase = 1ull << 48, kScratchBase = 2ull << 48;
inline constexpr uint64_t kApertureBytes = 1ull << 32;

// One allocation and its handle.
struct BufferObject {
  std::shared_ptr<Buffer> buffer;
  Pages* host_pages = nullptr;  // what the host may map; null: it may not. Owned by the buffer
  uint32_t gpu = 0;             // under which it was allocated
  uint64_t address = 0, handle = 0, mmap_offset = 0;
  uint32_t flags = 0;
  uint32_t copies = 1;  // 2: mapped twice in a row (AQL_QUEUE_MEM)
  struct Use {
    bool mapped = false;
    uint32_t queues = 0;  // that need it where it is
  };
  std::vector<Use> on;  // by GPU
  bool is_mapped() const;
};

class Memory {
 public:
  // Ends a mapping: what caches have of it is written back first, and no engine steps in between.
  using End = std::function<void(uint32_t gpu, const Mapping& mapping)>;
  Memory(const MockOptions& options, std::span<const std::unique_ptr<AddressSpace>> spaces,
         std::shared_ptr<PageFile> file, End end);

  // `doorbells`: the page of the process on that GPU, for DOORBELL.
  void allocate(os::kfd::AllocMemory& arguments, uint32_t gpu, const Pages& doorbells);
  void free(uint64_t handle);
  BufferObject& find(uint64_t handle, int error);  // the error if there is none
  void map(BufferObject& object, uint32_t gpu);
  void unmap(BufferObject& object, uint32_t gpu);
  uint64_t available_bytes(uint32_t gpu) const;
  // The host unmaps that much of its own: GPUs lose what they had of it (amdgpu_mn_invalidate_hsa).
  // True if some GPU had.
  bool invalidate(uint64_t address, uint64_t size_bytes);
  // A mapping that begins in this page and is as long, for a queue, which holds it until release.
  // Less than a page: any length. Null where there is none.
  BufferObject* hold(uint32_t gpu, uint64_t address, uint64_t size_bytes);
  void release(BufferObject& object, uint32_t gpu) { --object.on[gpu].queues; }
  // mmap of a render node at the offset of a buffer; the address or -errno.
  intptr_t map_on_host(uint32_t gpu, uint64_t offset, void* at, size_t size_bytes, int protection,
                       int flags);
  size_t objects() const { return objects_.size(); }
  void clear();  // the process has gone

 private:
  void check(const os::kfd::AllocMemory& arguments) const;
  void end_mappings(const BufferObject& object, uint32_t gpu);
  void reserve(BufferObject& object, size_t size_bytes);
  void unreserve(const BufferObject& object);
  void make_pages(BufferObject& object, size_t size_bytes, uint64_t user_address,
                  const Pages& doorbells);

  const MockOptions& options_;
  std::span<const std::unique_ptr<AddressSpace>> spaces_;
  std::shared_ptr<PageFile> file_;
  End end_;
  std::map<uint64_t, std::unique_ptr<BufferObject>> objects_;  // by handle
  std::vector<uint64_t> vram_used_;                            // by GPU
  uint64_t system_used_ = 0;
  uint64_t next_mmap_offset_ = 1ull << 32;  // DRM_FILE_PAGE_OFFSET_START
};

}  // namespace tuff::emu::amd

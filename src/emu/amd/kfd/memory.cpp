#include "emu/amd/kfd/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/os.h"
#include "emu/kernel/refusal.h"
#include "emu/amd/kfd/topology.h"
#include "emu/kernel/user_memory.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

constexpr uint32_t kContiguous = 1u << 23, kExtCoherent = 1u << 24;  // of later interfaces
constexpr uint32_t kKnownFlags = kVram | kGtt | kUserptr | kDoorbell | kMmioRemap | kWritable |
                                 kExecutable | kPublic | kNoSubstitute | kAqlQueueMem | kCoherent |
                                 kUncached | kContiguous | kExtCoherent;
constexpr uint32_t kHomes = kVram | kGtt | kUserptr | kDoorbell | kMmioRemap;
constexpr uint64_t kVramGrainBytes = 2 << 20;  // VRAM_AVAILABLITY_ALIGN

// A buffer that owns what it lies in, so that the memory lives as long as some engine looks at it.
struct OwnedBuffer final : Buffer {
  Pages pages, bar_pages;
};

// What page tables of that much memory take (ESTIMATE_PT_SIZE).
uint64_t page_table_bytes(uint64_t memory_bytes) { return memory_bytes >> 14; }

uint64_t system_limit_bytes() { return os::physical_memory_bytes() / 16 * 15; }

}  // namespace

bool BufferObject::is_mapped() const { return std::ranges::any_of(on, &Use::mapped); }

Memory::Memory(const MockOptions& options, std::span<const std::unique_ptr<AddressSpace>> spaces,
               std::shared_ptr<PageFile> file, End end)
    : options_(options),
      spaces_(spaces),
      file_(std::move(file)),
      end_(std::move(end)),
      vram_used_(spaces.size()) {}

// kfd_ioctl_alloc_memory_of_gpu, amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu. The kernel takes the
// first of several homes and overlooks unknown flags: both are mistakes all the same.
void Memory::check(const AllocMemory& arguments) const {
  const uint32_t flags = arguments.flags, home = flags & kHomes;
  if (arguments.size == 0) refuse(EINVAL, "a buffer of 0 bytes");
  if (flags & ~kKnownFlags) refuse(EINVAL, "unknown memory flags {:#x}", flags & ~kKnownFlags);
  if (home == 0 || (home & (home - 1)))
    refuse(EINVAL, "memory flags {:#x} name {} homes", flags, home == 0 ? "no" : "several");
  if ((flags & kVram) && (flags & kPublic) && !options_.large_bar)
    refuse(EINVAL, "VRAM that the host can map, on a GPU without large BAR");
  if (home == kUserptr && arguments.mmap_offset == 0)
    refuse(EINVAL, "a user pointer of 0: it is given in mmap_offset");
  if (home == kUserptr && arguments.mmap_offset % kPageBytes)
    refuse(EINVAL, "user pointer {:#x} does not begin a page", arguments.mmap_offset);
  if (home == kUserptr && !is_mapped_here(arguments.mmap_offset, arguments.size))
    refuse(EFAULT, "user pointer {:#x}: not all of {} bytes are mapped", arguments.mmap_offset,
           arguments.size);
  if (home == kMmioRemap && arguments.size != kPageBytes)
    refuse(EINVAL, "remapped registers of {} bytes instead of one page", arguments.size);
  if (home == kMmioRemap) run_out(ENOMEM, "this GPU has no page of remapped registers");
  if (arguments.va_addr == 0 && home == kVram) return;  // VRAM may have no address
  if (arguments.va_addr < kGpuvmBase || arguments.va_addr > kGpuvmLimit ||
      arguments.size - 1 > kGpuvmLimit - arguments.va_addr)
    refuse(EINVAL, "{} bytes at {:#x} do not lie in the GPU's aperture {:#x}-{:#x}", arguments.size,
           arguments.va_addr, kGpuvmBase, kGpuvmLimit);
}

// amdgpu_amdkfd_reserve_mem_limit.
void Memory::reserve(BufferObject& object, size_t size_bytes) {
  if (object.flags & kVram) {
    const uint64_t room =
        options_.vram_bytes - page_table_bytes(options_.vram_bytes) - vram_used_[object.gpu];
    if (align_up(size_bytes, kVramGrainBytes) > room)
      run_out(ENOMEM, "{} bytes of VRAM, {} are free", size_bytes, room);
    vram_used_[object.gpu] += align_up(size_bytes, kVramGrainBytes);
  } else {
    if (size_bytes > system_limit_bytes() - system_used_)
      run_out(ENOMEM, "{} bytes of system memory, {} are left for GPUs", size_bytes,
              system_limit_bytes() - system_used_);
    system_used_ += size_bytes;
  }
}

void Memory::unreserve(const BufferObject& object) {
  const uint64_t size = object.buffer->size_bytes;
  if (object.flags & kVram) {
    vram_used_[object.gpu] -= align_up(size, kVramGrainBytes);
  } else {
    system_used_ -= size;
  }
}

void Memory::make_pages(BufferObject& object, size_t size_bytes, uint64_t user_address,
                        const Pages& doorbells) {
  auto buffer = std::make_shared<OwnedBuffer>();
  buffer->size_bytes = size_bytes;
  buffer->gpu = object.gpu;
  if (object.flags & kVram) {
    buffer->home = Buffer::Home::Vram;
    buffer->pages = Pages::make(size_bytes);
    if (object.flags & kPublic) {
      buffer->bar_pages = Pages::make(size_bytes, file_);
      buffer->bar = buffer->bar_pages.data();
      object.host_pages = &buffer->bar_pages;
    }
  } else if (object.flags & kGtt) {
    buffer->pages = Pages::make(size_bytes, file_);
    object.host_pages = &buffer->pages;
  }
  buffer->memory = buffer->pages.data();
  if (object.flags & kUserptr) buffer->memory = reinterpret_cast<std::byte*>(user_address);
  if (object.flags & kDoorbell) buffer->memory = doorbells.data();
  object.buffer = std::move(buffer);
  const bool bar_missing = object.flags & kVram && object.flags & kPublic && !object.buffer->bar;
  if (!object.buffer->memory || bar_missing)
    run_out(ENOMEM, "the host has no {} bytes for it", size_bytes);
}

void Memory::allocate(AllocMemory& arguments, uint32_t gpu, const Pages& doorbells) {
  check(arguments);
  if ((arguments.flags & kDoorbell) && arguments.size != doorbells.size_bytes())
    refuse(EINVAL, "doorbells of {} bytes instead of {}", arguments.size, doorbells.size_bytes());
  auto object = std::make_unique<BufferObject>();
  object->gpu = gpu;
  object->flags = arguments.flags;
  object->address = arguments.va_addr;
  object->copies = arguments.flags & kAqlQueueMem ? 2 : 1;
  object->on.resize(spaces_.size());
  const size_t size = align_up(arguments.size / object->copies, kPageBytes);
  reserve(*object, size);
  try {
    make_pages(*object, size, arguments.mmap_offset, doorbells);
  } catch (const Refused&) {
    unreserve(*object);
    throw;
  }
  // kfd_process_device_create_obj_handle: the smallest free number of that GPU, MAKE_HANDLE.
  uint64_t handle = uint64_t(gpu_id_of(gpu)) << 32;
  while (objects_.contains(handle)) ++handle;
  object->handle = object->buffer->handle = arguments.handle = handle;
  object->mmap_offset = arguments.mmap_offset = next_mmap_offset_;
  next_mmap_offset_ += size;
  objects_[handle] = std::move(object);
}

BufferObject& Memory::find(uint64_t handle, int error) {
  const auto object = objects_.find(handle);
  if (object == objects_.end()) refuse(error, "there is no buffer with handle {:#x}", handle);
  return *object->second;
}

void Memory::free(uint64_t handle) {
  const BufferObject& object = find(handle, EINVAL);
  if (object.is_mapped())
    refuse(EBUSY, "the buffer at {:#x} of {} bytes is still mapped on a GPU", object.address,
           object.buffer->size_bytes);
  unreserve(object);
  objects_.erase(handle);
}

// amdgpu_amdkfd_gpuvm_map_memory_to_gpu, kfd_mem_attach, amdgpu_vm_bo_map. Mapping once more what
// is mapped already does nothing.
void Memory::map(BufferObject& object, uint32_t gpu) {
  if (object.on[gpu].mapped) return;
  const Buffer& buffer = *object.buffer;
  const uint64_t all_bytes = buffer.size_bytes * object.copies;
  if (object.address == 0) refuse(EINVAL, "a buffer without an address cannot be mapped");
  if (object.address % kPageBytes)
    refuse(EINVAL, "the buffer at {:#x} does not begin a page", object.address);
  if (object.gpu != gpu && buffer.home == Buffer::Home::Vram && !options_.large_bar)
    refuse(EINVAL, "VRAM of GPU {} cannot be reached by GPU {} without large BAR", object.gpu, gpu);
  if (spaces_[gpu]->overlaps(object.address, all_bytes))
    refuse(EINVAL, "something else is mapped on GPU {} in {:#x}-{:#x}", gpu, object.address,
           object.address + all_bytes - 1);
  for (uint32_t copy = 0; copy < object.copies; ++copy) {
    Mapping mapping;
    mapping.address = object.address + copy * buffer.size_bytes;
    mapping.buffer = object.buffer;
    mapping.writable = object.flags & kWritable;
    mapping.executable = object.flags & kExecutable;
    // gmc_v11_0_get_vm_pte: MTYPE_UC, else MTYPE_NC, wherever the memory is.
    mapping.cached = !(object.flags & (kCoherent | kExtCoherent | kUncached | kDoorbell));
    spaces_[gpu]->map(std::move(mapping));
  }
  object.on[gpu].mapped = true;
}

// amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu, unmap_bo_from_gpuvm.
void Memory::unmap(BufferObject& object, uint32_t gpu) {
  BufferObject::Use& use = object.on[gpu];
  if (!use.mapped)
    refuse(EINVAL, "the buffer at {:#x} is not mapped on GPU {}", object.address, gpu);
  if (use.queues != 0)
    refuse(EBUSY, "the buffer at {:#x} is in use by {} queues of GPU {}", object.address,
           use.queues, gpu);
  end_mappings(object, gpu);
  use.mapped = false;
}

void Memory::end_mappings(const BufferObject& object, uint32_t gpu) {
  for (uint32_t copy = 0; copy < object.copies; ++copy) {
    const auto mapping = spaces_[gpu]->find(object.address + copy * object.buffer->size_bytes);
    // It may have been lost, and its place be another buffer's.
    if (mapping && mapping->buffer == object.buffer) end_(gpu, *mapping);
  }
}

bool Memory::invalidate(uint64_t address, uint64_t size_bytes) {
  bool any = false;
  for (auto& [handle, object] : objects_) {
    if (!(object->flags & kUserptr)) continue;
    const auto begin = reinterpret_cast<uint64_t>(object->buffer->memory);
    if (begin >= address + size_bytes || address >= begin + object->buffer->size_bytes) continue;
    for (uint32_t gpu = 0; gpu < spaces_.size(); ++gpu) {
      any = any || object->on[gpu].mapped;
      end_mappings(*object, gpu);
    }
  }
  return any;
}

uint64_t Memory::available_bytes(uint32_t gpu) const {
  return align_down(options_.vram_bytes - page_table_bytes(options_.vram_bytes) - vram_used_[gpu],
                    kVramGrainBytes);
}

// kfd_queue_buffer_get: bits within a page are dropped before the comparison.
BufferObject* Memory::hold(uint32_t gpu, uint64_t address, uint64_t size_bytes) {
  const auto mapping = spaces_[gpu]->find(address);
  if (!mapping || mapping->address != align_down(address, kPageBytes)) return nullptr;
  if (size_bytes >= kPageBytes && mapping->buffer->size_bytes != align_down(size_bytes, kPageBytes))
    return nullptr;
  const auto object = objects_.find(mapping->buffer->handle);
  if (object == objects_.end()) return nullptr;
  ++object->second->on[gpu].queues;
  return object->second.get();
}

// drm_gem_mmap (only from where a buffer begins, not beyond its end), amdgpu_gem_object_mmap.
intptr_t Memory::map_on_host(uint32_t gpu, uint64_t offset, void* at, size_t size_bytes,
                             int protection, int flags) {
  for (const auto& [handle, object] : objects_) {
    if (object->mmap_offset != offset || object->gpu != gpu) continue;
    if (size_bytes > object->buffer->size_bytes)
      refuse(EINVAL, "mmap of {} bytes of a buffer of {}", size_bytes, object->buffer->size_bytes);
    if (!object->host_pages)
      refuse(EPERM, "mmap of a buffer that the host cannot map: flags {:#x}", object->flags);
    if ((flags & MAP_PRIVATE) && (protection & PROT_WRITE))
      refuse(EINVAL, "mmap of a buffer with MAP_PRIVATE for writing");
    return object->host_pages->map_at(at, size_bytes, protection, flags);
  }
  refuse(EINVAL, "mmap at {:#x}: no buffer of this render node begins there", offset);
}

void Memory::clear() {
  for (auto& [handle, object] : objects_) {
    for (uint32_t gpu = 0; gpu < spaces_.size(); ++gpu) {
      object->on[gpu].queues = 0;
      if (object->on[gpu].mapped) unmap(*object, gpu);
    }
    unreserve(*object);
  }
  objects_.clear();
}

}  // namespace tuff::emu::amd

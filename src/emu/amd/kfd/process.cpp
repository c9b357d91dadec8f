#include "emu/amd/kfd/process.h"

#include <sys/mman.h>

#include <algorithm>

#include "emu/amd/clock.h"
#include "emu/kernel/refusal.h"
#include "emu/amd/kfd/topology.h"
#include "emu/profile/chip.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

constexpr uint32_t kMajorVersion = 1, kMinorVersion = 17;
constexpr uint32_t kMaxArray = 1u << 16;  // what kmalloc_array gives, roughly
constexpr uint64_t kMmapTypeMask = uint64_t(3) << 62, kMmapDoorbell = uint64_t(3) << 62;
constexpr uint32_t kRuntimeEnable = 1, kRuntimeKeepTtmps = 2;

uint32_t gpu_id_of_handle(uint64_t handle) { return uint32_t(handle >> 32); }

}  // namespace

Process::Process(const MachineParts& parts)
    : parts_(parts),
      memory_(parts.options, parts.spaces, parts.file,
              [&engines = parts.engines](uint32_t gpu, const Mapping& mapping) {
                engines.end(gpu, mapping);
              }),
      queues_(memory_, uint32_t(parts.spaces.size()),
              profile::chip(parts.options.profile.chip, profile::Vendor::Amd).cus, parts.file),
      vm_files_(parts.spaces.size()) {}

Process::~Process() {
  while (const auto id = queues_.first()) remove_queue(*id);
  memory_.clear();
  parts_.events.clear();
  parts_.code.set_list(0);
  parts_.engines.revive();
}

uint32_t Process::find_gpu(uint32_t gpu_id) const {
  for (uint32_t gpu = 0; gpu < parts_.spaces.size(); ++gpu) {
    if (gpu_id_of(gpu) == gpu_id) return gpu;
  }
  refuse(EINVAL, "there is no GPU with id {}", gpu_id);
}

// kfd_bind_process_to_device.
void Process::bind(uint32_t gpu, int error) const {
  if (!vm_files_[gpu]) refuse(error, "GPU {} has no address space yet: ACQUIRE_VM first", gpu);
}

void Process::get_version(GetVersion& a) {
  a.major_version = kMajorVersion;
  a.minor_version = kMinorVersion;
}

void Process::create_queue(CreateQueue& a) {
  const uint32_t gpu = find_gpu(a.gpu_id);
  bind(gpu, ESRCH);
  if (parts_.engines.is_lost(gpu)) run_out(EIO, "GPU {} was reset", gpu);
  parts_.engines.attach(gpu, queues_.create(a, gpu));
}

void Process::destroy_queue(DestroyQueue& a) {
  parts_.engines.report_blocked(queues_.gpu_of(a.queue_id), a.queue_id);
  remove_queue(a.queue_id);
}

void Process::remove_queue(uint32_t id) {
  parts_.engines.detach(queues_.gpu_of(id), id);
  queues_.release(id);
}

void Process::get_clock_counters(GetClockCounters& a) {
  // A node that is no GPU has no clock, which is no error.
  const uint32_t index = (a.gpu_id - gpu_id_of(0)) / (gpu_id_of(1) - gpu_id_of(0));
  const bool known = index < parts_.spaces.size() && gpu_id_of(index) == a.gpu_id;
  a.gpu_clock_counter = known ? gpu_clock() : 0;
  a.cpu_clock_counter = clock_ns(CLOCK_MONOTONIC_RAW);
  a.system_clock_counter = clock_ns(CLOCK_BOOTTIME);
  a.system_clock_freq = 1'000'000'000;
}

// kfd_kmap_event_page, amdgpu_amdkfd_gpuvm_map_gtt_bo_to_kernel.
void Process::set_event_page(uint64_t handle) {
  if (parts_.events.has_page()) refuse(EINVAL, "the event page is set already");
  bind(find_gpu(gpu_id_of_handle(handle)), ENODEV);
  const BufferObject& object = memory_.find(handle, EINVAL);
  if (!(object.flags & kGtt))
    refuse(EINVAL, "the event page has to be GTT memory, flags are {:#x}", object.flags);
  parts_.events.set_page(object.buffer->memory, object.buffer->size_bytes, object.buffer);
  event_page_ = handle;
}

void Process::create_event(CreateEvent& a) {
  if (a.event_page_offset) set_event_page(a.event_page_offset);
  parts_.events.create(a);
}

void Process::destroy_event(DestroyEvent& a) { parts_.events.destroy(a.event_id); }

void Process::set_event(SetEvent& a) { parts_.events.set(a.event_id); }

void Process::get_apertures(GetProcessAperturesNew& a) {
  const auto gpus = uint32_t(parts_.spaces.size());
  if (a.num_of_nodes == 0) {
    a.num_of_nodes = gpus;
    return;
  }
  std::vector<DeviceApertures> apertures(std::min(a.num_of_nodes, gpus));
  for (uint32_t gpu = 0; gpu < apertures.size(); ++gpu) {
    apertures[gpu] = {kLdsBase,       kLdsBase + kApertureBytes - 1,
                      kScratchBase,   kScratchBase + kApertureBytes - 1,
                      kGpuvmBase,     kGpuvmLimit,
                      gpu_id_of(gpu), 0};
  }
  a.num_of_nodes = uint32_t(apertures.size());
  if (!parts_.user_memory.write(a.apertures_ptr, apertures.data(),
                                apertures.size() * sizeof(DeviceApertures)))
    refuse(EFAULT, "apertures cannot be written to {:#x}", a.apertures_ptr);
}

// The kernel takes any GPU's render node here and then finds nothing in the address space.
void Process::acquire_vm(AcquireVm& a, const std::optional<RenderFile>& file) {
  const uint32_t gpu = find_gpu(a.gpu_id);
  if (!file) refuse(EINVAL, "file {} is no open render node", a.drm_fd);
  if (file->gpu != gpu)
    refuse(EINVAL, "render node of GPU {} for the address space of GPU {}", file->gpu, gpu);
  if (vm_files_[gpu] && *vm_files_[gpu] != file->serial)
    refuse(EBUSY, "GPU {} has an address space of another open file", gpu);
  vm_files_[gpu] = file->serial;
}

void Process::allocate_memory(AllocMemory& a) {
  const uint32_t gpu = find_gpu(a.gpu_id);
  bind(gpu, ENODEV);
  memory_.allocate(a, gpu, queues_.doorbells(gpu));
}

void Process::free_memory(FreeMemory& a) {
  find_gpu(gpu_id_of_handle(a.handle));
  if (event_page_ != 0 && a.handle == event_page_) refuse(EPERM, "the event page is not freed");
  memory_.free(a.handle);
}

std::vector<uint32_t> Process::device_ids(const MapMemory& a) {
  find_gpu(gpu_id_of_handle(a.handle));
  if (a.n_devices == 0) refuse(EINVAL, "a list of no GPUs");
  if (a.n_success > a.n_devices)
    refuse(EINVAL, "n_success {} of {} GPUs", a.n_success, a.n_devices);
  if (a.n_devices > kMaxArray) run_out(ENOMEM, "a list of {} GPUs", a.n_devices);
  std::vector<uint32_t> ids(a.n_devices);
  if (!parts_.user_memory.read(a.device_ids_array_ptr, ids.data(), ids.size() * sizeof(uint32_t)))
    refuse(EFAULT, "a list of GPUs cannot be read at {:#x}", a.device_ids_array_ptr);
  return ids;
}

void Process::map_memory(MapMemory& a) {
  const std::vector<uint32_t> ids = device_ids(a);
  BufferObject& object = memory_.find(a.handle, ENOMEM);
  for (uint32_t i = a.n_success; i < a.n_devices; a.n_success = ++i) {
    const uint32_t gpu = find_gpu(ids[i]);
    bind(gpu, ENODEV);
    memory_.map(object, gpu);
  }
}

void Process::unmap_memory(MapMemory& a) {
  const std::vector<uint32_t> ids = device_ids(a);
  BufferObject& object = memory_.find(a.handle, ENOMEM);
  for (uint32_t i = a.n_success; i < a.n_devices; a.n_success = ++i)
    memory_.unmap(object, find_gpu(ids[i]));
}

void Process::available_memory(AvailableMemory& a) {
  a.available = memory_.available_bytes(find_gpu(a.gpu_id));
}

// kfd_ioctl_runtime_enable, runtime_enable, runtime_disable.
void Process::runtime_enable(RuntimeEnable& a) {
  if (a.mode_mask & ~(kRuntimeEnable | kRuntimeKeepTtmps))
    refuse(EINVAL, "unknown modes {:#x}", a.mode_mask);
  const bool enable = a.mode_mask & kRuntimeEnable;
  if (enable && runtime_enabled_) refuse(EBUSY, "the runtime is enabled already");
  if (enable && queues_.count() != 0)
    refuse(EEXIST, "there are {} queues already", queues_.count());
  runtime_enabled_ = enable;
  parts_.code.set_list(enable ? a.r_debug : 0);
  a.capabilities_mask = 0;
}

intptr_t Process::map_buffer(const RenderFile& file, void* at, size_t size_bytes, int protection,
                             int flags, uint64_t offset) {
  // drm_gem_mmap: buffers are of the file that their address space was acquired with.
  if (vm_files_[file.gpu] != file.serial)
    refuse(EACCES, "mmap of a render node of GPU {} that is not the one of ACQUIRE_VM", file.gpu);
  return memory_.map_on_host(file.gpu, offset, at, size_bytes, protection, flags);
}

// kfd_mmap, kfd_doorbell_mmap.
intptr_t Process::map_device(void* at, size_t size_bytes, int protection, int flags,
                             uint64_t offset) {
  if ((offset & kMmapTypeMask) != kMmapDoorbell)
    refuse(EFAULT, "mmap of /dev/kfd at {:#x}: only doorbells are mapped", offset);
  for (uint32_t gpu = 0; gpu < parts_.spaces.size(); ++gpu) {
    if (align_down(offset, kDoorbellBytes) != doorbell_mmap_offset(gpu_id_of(gpu))) continue;
    if (size_bytes != kDoorbellBytes)
      refuse(EINVAL, "mmap of {} bytes of doorbells instead of {}", size_bytes, kDoorbellBytes);
    if (flags & MAP_PRIVATE) refuse(EINVAL, "mmap of doorbells with MAP_PRIVATE");
    return queues_.doorbells(gpu).map_at(at, size_bytes, protection, flags);
  }
  refuse(ENODEV, "mmap of /dev/kfd at {:#x}: no such GPU", offset);
}

void Process::check_unmap(uint64_t address, uint64_t size_bytes) {
  if (memory_.invalidate(address, size_bytes))
    refuse(EBUSY, "{} bytes at {:#x} are mapped on a GPU as a user pointer", size_bytes, address);
}

void wait_events(const MachineParts& parts, WaitEvents& a) {
  if (a.num_events > kMaxArray) run_out(ENOMEM, "a wait for {} events", a.num_events);
  std::vector<EventData> events(a.num_events);
  const size_t bytes = events.size() * sizeof(EventData);
  a.wait_result = uint32_t(WaitResult::Fail);
  if (!parts.user_memory.read(a.events_ptr, events.data(), bytes))
    refuse(EFAULT, "events cannot be read at {:#x}", a.events_ptr);
  Events::Step step;
  if (parts.engines.is_stepped()) step = [&engines = parts.engines] { return engines.step(); };
  const WaitResult result = parts.events.wait(events, a.wait_for_all != 0, a.timeout_ms, step);
  a.wait_result = uint32_t(result);
  parts.engines.look_for_hang();
  if (result == WaitResult::Fail) run_out(EIO, "an event was destroyed meanwhile");
  if (result == WaitResult::Complete &&
      !parts.user_memory.write(a.events_ptr, events.data(), bytes))
    refuse(EFAULT, "events cannot be written to {:#x}", a.events_ptr);
}

}  // namespace tuff::emu::amd

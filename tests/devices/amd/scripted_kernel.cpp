#include "devices/amd/scripted_kernel.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/os_kfd.h"

namespace tuff::devices::amd {
namespace {

using namespace os::kfd;

constexpr const char* kNodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";
constexpr uint64_t kDoorbells = uint64_t(3) << 62;

std::string flag_names(uint32_t flags) {
  std::string text;
  const std::pair<uint32_t, const char*> names[] = {
      {kVram, "VRAM"},          {kGtt, "GTT"},           {kUserptr, "USERPTR"},
      {kWritable, "WRITE"},     {kExecutable, "EXEC"},   {kPublic, "PUBLIC"},
      {kNoSubstitute, "NOSUB"}, {kCoherent, "COHERENT"}, {kUncached, "UNCACHED"}};
  for (const auto& [bit, name] : names) {
    if (flags & bit) text += (text.empty() ? "" : "|") + std::string(name);
    flags &= ~bit;
  }
  return flags ? fmt::format("{}|{:#x}", text, flags) : text;
}

}  // namespace

bool ScriptedKernel::fails() { return ++calls == fail_at; }
void ScriptedKernel::note(std::string line) { log_.push_back(std::move(line)); }

std::string ScriptedKernel::place(uint64_t address) const {
  for (const auto& [begin, number] : numbers_) {
    const auto range = ranges_.find(begin);
    if (range != ranges_.end() && address >= begin && address - begin < range->second)
      return fmt::format("R{}+{:#x}", number, address - begin);
  }
  return address ? "elsewhere" : "0";
}

int ScriptedKernel::open(const std::string& path, int) {
  std::lock_guard lock(mutex_);
  if (fails()) return -fail_with;
  note("open " + path);
  const auto file = files.find(path);
  if (file == files.end()) return -ENOENT;
  if (file->second == "forbidden") return -EACCES;
  fds_[next_fd_] = path;
  return next_fd_++;
}

int ScriptedKernel::close(int fd) {
  std::lock_guard lock(mutex_);
  note("close " + fds_[fd]);
  return fds_.erase(fd) ? 0 : -EBADF;
}

intptr_t ScriptedKernel::mmap(void* at, size_t size, int protection, int flags, int fd,
                              uint64_t offset) {
  std::lock_guard lock(mutex_);
  if (fails()) return -fail_with;
  if (fd >= 0) {
    note(fmt::format("mmap {} bytes of {} at {}", size, fds_[fd],
                     place(reinterpret_cast<uint64_t>(at))));
    if (fds_[fd] == "/dev/kfd" && (offset & kDoorbells) != kDoorbells)
      misuse.push_back("mmap of /dev/kfd at an offset of nothing");
    flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  }
  void* p = ::mmap(at, size, protection, flags, -1, 0);
  if (fd >= 0) return reinterpret_cast<intptr_t>(p);
  ranges_[reinterpret_cast<uint64_t>(p)] = size;
  return reinterpret_cast<intptr_t>(p);
}

// A part may be given back: at the ends, by who wants it aligned.
int ScriptedKernel::munmap(void* at, size_t size) {
  std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<uint64_t>(at);
  auto range = std::prev(ranges_.upper_bound(begin));
  const auto [from, bytes] = *range;
  if (begin + size > from + bytes) misuse.push_back("munmap of what is not mapped");
  ranges_.erase(range);
  if (begin > from) ranges_[from] = begin - from;
  if (begin + size < from + bytes) ranges_[begin + size] = from + bytes - begin - size;
  return ::munmap(at, size);
}

int ScriptedKernel::read_text(const std::string& path, std::string& text) {
  const auto file = files.find(path);
  if (file == files.end()) return -ENOENT;
  if (file->second == "forbidden") return -EPERM;
  text = file->second;
  return 0;
}

int ScriptedKernel::list_directory(const std::string& path, std::vector<std::string>& names) {
  std::set<std::string> found;
  for (const auto& [file, text] : files) {
    if (!file.starts_with(path + "/")) continue;
    const std::string rest = file.substr(path.size() + 1);
    found.insert(rest.substr(0, rest.find('/')));
  }
  names.assign(found.begin(), found.end());
  return found.empty() ? -ENOENT : 0;
}

void ScriptedKernel::add_cpu() {
  const std::string node = fmt::format("{}/{}/", kNodes, nodes_++);
  files[node + "gpu_id"] = "0\n";
  files[node + "properties"] = "cpu_cores_count 8\nsimd_count 0\n";
}

uint32_t ScriptedKernel::add_gpu(const std::string& properties, uint64_t vram_bytes,
                                 int heap_type) {
  const int n = nodes_++;
  const uint32_t gpu_id = 1000 + uint32_t(n);
  const std::string node = fmt::format("{}/{}/", kNodes, n);
  files["/dev/kfd"] = files[fmt::format("/dev/dri/renderD{}", 128 + n)] = "device";
  files[node + "gpu_id"] = fmt::format("{}\n", gpu_id);
  files[node + "name"] = "a name\n";
  files[node + "properties"] = properties + fmt::format("drm_render_minor {}\n", 128 + n);
  if (vram_bytes > 0) {
    files[node + "mem_banks/0/properties"] =
        fmt::format("heap_type {}\nsize_in_bytes {}\nflags 0\n", heap_type, vram_bytes);
  }
  files[node + "io_links/0/properties"] = fmt::format("type 2\nnode_from {}\nnode_to 0\n", n);
  return gpu_id;
}

int ScriptedKernel::ioctl(int fd, unsigned long request, void* argument) {
  std::lock_guard lock(mutex_);
  if (fails()) return -fail_with;
  if (fds_[fd] != "/dev/kfd") misuse.push_back("an ioctl on " + fds_[fd]);
  switch (request) {
    case kGetVersion:
      note("GET_VERSION");
      *static_cast<GetVersion*>(argument) = {1, minor_version};
      return 0;
    case kAcquireVm: {
      const auto& a = *static_cast<AcquireVm*>(argument);
      note(fmt::format("ACQUIRE_VM gpu {} of {}", a.gpu_id, fds_[int(a.drm_fd)]));
      return vms_.insert(a.gpu_id).second ? 0 : -EBUSY;
    }
    case kRuntimeEnable: {
      const auto& a = *static_cast<RuntimeEnable*>(argument);
      note(fmt::format("RUNTIME_ENABLE mode {}", a.mode_mask));
      if (a.mode_mask && !queues_.empty()) misuse.push_back("RUNTIME_ENABLE after a queue");
      runtime_ = a.mode_mask & 1;
      return 0;
    }
    case kGetClockCounters: {
      auto& a = *static_cast<GetClockCounters*>(argument);
      note("GET_CLOCK_COUNTERS");
      a.gpu_clock_counter = calls * 1000;
      return 0;
    }
    case kAvailableMemory: static_cast<AvailableMemory*>(argument)->available = 12345; return 0;
    default: break;
  }
  if (const int r = answer_memory(request, argument); r != -ENOTTY) return r;
  if (const int r = answer_event(request, argument); r != -ENOTTY) return r;
  return answer_queue(request, argument);
}

int ScriptedKernel::answer_memory(unsigned long request, void* argument) {
  if (request == kAllocMemory) {
    auto& a = *static_cast<AllocMemory*>(argument);
    numbers_[a.va_addr] = next_number_++;
    note(fmt::format("ALLOC {} bytes at {}, gpu {}, {}", a.size, place(a.va_addr), a.gpu_id,
                     flag_names(a.flags)));
    if (!vms_.contains(a.gpu_id)) misuse.push_back("memory without an address space");
    a.handle = next_handle_++;
    if (!(a.flags & kUserptr)) a.mmap_offset = a.handle << 32;
    objects_[a.handle] = {a.size, a.flags, {}};
    return 0;
  }
  if (request == kMapMemory || request == kUnmapMemory) {
    auto& a = *static_cast<MapMemory*>(argument);
    const bool map = request == kMapMemory;
    const auto* ids = reinterpret_cast<const uint32_t*>(a.device_ids_array_ptr);
    for (uint32_t i = 0; i < a.n_devices; ++i) {
      note(fmt::format("{} object {} on gpu {}", map ? "MAP" : "UNMAP", a.handle, ids[i]));
      auto& gpus = objects_.at(a.handle).gpus;
      if (!(map ? gpus.insert(ids[i]).second : gpus.erase(ids[i]) > 0))
        misuse.push_back("mapped twice or not at all");
    }
    a.n_success = a.n_devices;
    return 0;
  }
  if (request == kFreeMemory) {
    const uint64_t handle = static_cast<FreeMemory*>(argument)->handle;
    note(fmt::format("FREE object {}", handle));
    if (handle == event_page_) return -EPERM;
    if (!objects_.at(handle).gpus.empty()) misuse.push_back("freed while mapped");
    objects_.erase(handle);
    return 0;
  }
  return -ENOTTY;
}

int ScriptedKernel::answer_event(unsigned long request, void* argument) {
  if (request == kCreateEvent) {
    auto& a = *static_cast<CreateEvent*>(argument);
    note(fmt::format("CREATE_EVENT type {} auto {} page object {}", a.event_type, a.auto_reset,
                     a.event_page_offset));
    if (a.event_page_offset && event_page_) return -EINVAL;
    if (a.event_page_offset) event_page_ = a.event_page_offset;
    a.event_id = a.event_slot_index = next_event_++;
    events_.insert(a.event_id);
    return 0;
  }
  if (request == kDestroyEvent) {
    note("DESTROY_EVENT");
    return events_.erase(static_cast<DestroyEvent*>(argument)->event_id) ? 0 : -EINVAL;
  }
  if (request == kWaitEvents) {
    auto& a = *static_cast<WaitEvents*>(argument);
    a.wait_result = uint32_t(WaitResult::Timeout);
    if (exception.gpu_id == 0) return 0;
    auto* data = reinterpret_cast<EventData*>(a.events_ptr);
    data[0].memory_exception = {1, 0, 0, 0, exception.address, exception.gpu_id, 0};
    a.wait_result = uint32_t(WaitResult::Complete);
    return 0;
  }
  return -ENOTTY;
}

int ScriptedKernel::answer_queue(unsigned long request, void* argument) {
  if (request == kCreateQueue) {
    auto& a = *static_cast<CreateQueue*>(argument);
    note(fmt::format(
        "CREATE_QUEUE type {} gpu {} ring {} bytes at {} rptr {} wptr {} eop {} at {} "
        "save {} at {} stack {} priority {} percentage {}",
        a.queue_type, a.gpu_id, a.ring_size, place(a.ring_base_address),
        place(a.read_pointer_address), place(a.write_pointer_address), a.eop_buffer_size,
        place(a.eop_buffer_address), a.ctx_save_restore_size, place(a.ctx_save_restore_address),
        a.ctl_stack_size, a.queue_priority, a.queue_percentage));
    a.queue_id = next_queue_++;
    a.doorbell_offset = kDoorbells | (uint64_t(a.gpu_id) << 46) | a.queue_id * 8;
    queues_.insert(a.queue_id);
    return 0;
  }
  if (request != kDestroyQueue) return -ENOTTY;
  note("DESTROY_QUEUE");
  return queues_.erase(static_cast<DestroyQueue*>(argument)->queue_id) ? 0 : -EINVAL;
}

std::string ScriptedKernel::log() const {
  std::string text;
  for (const std::string& line : log_) text += line + "\n";
  return text;
}

std::string ScriptedKernel::leaks() const {
  std::string text;
  for (const auto& [fd, path] : fds_) text += "open file " + path + "\n";
  for (const auto& [begin, size] : ranges_) text += fmt::format("{} bytes of addresses\n", size);
  for (const auto& [handle, object] : objects_)
    if (handle != event_page_) text += fmt::format("object {} of {} bytes\n", handle, object.size);
  for (uint32_t id : queues_) text += fmt::format("queue {}\n", id);
  for (uint32_t id : events_) text += fmt::format("event {}\n", id);
  if (runtime_) text += "runtime enabled\n";
  return text;
}

std::string navi31_properties() {
  return "cpu_cores_count 0\nsimd_count 192\nmem_banks_count 1\nmax_waves_per_simd 16\n"
         "lds_size_in_kb 64\narray_count 12\nsimd_arrays_per_engine 2\nsimd_per_cu 2\n"
         "max_slots_scratch_cu 32\ngfx_target_version 110000\nunique_id 81985529216486895\n"
         "num_sdma_engines 2\nnum_xcc 1\n";
}
std::string mi300x_properties() {
  return "cpu_cores_count 0\nsimd_count 1216\nmem_banks_count 1\nmax_waves_per_simd 8\n"
         "lds_size_in_kb 64\narray_count 32\nsimd_arrays_per_engine 1\nsimd_per_cu 4\n"
         "max_slots_scratch_cu 32\ngfx_target_version 90402\nunique_id 0\nnum_sdma_engines 2\n"
         "num_xcc 8\n";
}
std::string phoenix_properties() {
  return "cpu_cores_count 16\nsimd_count 24\nmem_banks_count 1\nmax_waves_per_simd 16\n"
         "lds_size_in_kb 64\narray_count 2\nsimd_arrays_per_engine 2\nsimd_per_cu 2\n"
         "max_slots_scratch_cu 32\ngfx_target_version 110003\nunique_id 0\nnum_sdma_engines 1\n";
}

}  // namespace tuff::devices::amd

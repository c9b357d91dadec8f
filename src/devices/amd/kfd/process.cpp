#include "devices/amd/kfd/process.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace tuff::devices::amd {
namespace {

constexpr const char* kDevice = "/dev/kfd";
// Interface 1.3 came with Linux 5.8, before any of the generations in the table was known.
constexpr uint32_t kMajor = 1, kLeastMinor = 3;
constexpr uint32_t kRuntimeMinor = 13, kAvailableMinor = 9;
constexpr uint32_t kRuntimeEnabled = 1;  // bit of RuntimeEnable::mode_mask
constexpr size_t kEventPageBytes = uapi::kSignalEventLimit * sizeof(uint64_t);
constexpr size_t kSignalBytes = 64, kSignalPageBytes = 16 * kPageBytes;
// Two pages of doorbells. Source: amdkfd/kfd_doorbell.c (kfd_doorbell_process_slice).
constexpr uint64_t kDoorbellBytes = 0x2000;

bool supported(const uapi::GetVersion& v) {
  return v.major_version == kMajor && v.minor_version >= kLeastMinor;
}
std::string too_old(const uapi::GetVersion& v) {
  return fmt::format(
      "{} has interface {}.{}; tuff needs {}.{} or a later {}.x (Linux 5.8): update "
      "the kernel",
      kDevice, v.major_version, v.minor_version, kMajor, kLeastMinor, kMajor);
}

}  // namespace

std::string why_no_kfd(os::Kernel& kernel) {
  try {
    const KernelFile kfd = open_file(kernel, kDevice);
    uapi::GetVersion v{};
    checked(kernel.ioctl(kfd.fd(), uapi::kGetVersion, &v), "GET_VERSION");
    return supported(v) ? "" : too_old(v);
  } catch (const Error& e) {
    return e.what();
  }
}

Process::Process(std::shared_ptr<os::Kernel> kernel)
    : kernel_(std::move(kernel)), kfd_(open_file(*kernel_, kDevice)) {
  checked(kernel_->ioctl(fd(), uapi::kGetVersion, &version_), "GET_VERSION");
  if (!supported(version_)) throw Unsupported(too_old(version_));
}

Process::~Process() {
  signal_pages_.clear();
  event_page_.reset();
  if (!runtime_enabled_) return;
  uapi::RuntimeEnable off{};
  undo(*kernel_, fd(), uapi::kRuntimeEnable, off);
}

Gpu& Process::attach(const GpuNode& node) {
  std::lock_guard lock(mutex_);
  auto it = gpus_.find(node.gpu_id);
  if (it == gpus_.end()) {
    const std::string path = fmt::format("/dev/dri/renderD{}", node.render_minor);
    Gpu gpu{node, open_file(*kernel_, path), nullptr};
    uapi::AcquireVm vm{uint32_t(gpu.render.fd()), node.gpu_id};
    checked(kernel_->ioctl(fd(), uapi::kAcquireVm, &vm), "ACQUIRE_VM({}, gpu {})", node.arch(),
            node.gpu_id);
    // From here on the file stays open, whatever fails: another one's space would be refused.
    it = gpus_.emplace(node.gpu_id, std::move(gpu)).first;
  }
  Gpu& gpu = it->second;
  if (gpu.ready) return gpu;
  enable_runtime();
  for (KfdBuffer* buffer : everywhere_) buffer->map_to(gpu);
  gpu.ready = true;
  return gpu;
}

// For debuggers alone, so that nothing depends on it. Before any queue: the kernel wants that.
void Process::enable_runtime() {
  if (runtime_enabled_ || version_.minor_version < kRuntimeMinor) return;
  uapi::RuntimeEnable on{loaded_code_.debug_address(), kRuntimeEnabled, 0};
  const int result = kernel_->ioctl(fd(), uapi::kRuntimeEnable, &on);
  runtime_enabled_ = result == 0;
  if (result == -EBUSY || result == -EEXIST || result == -EPERM) {
    TUFF_DEBUG_LINE(1, "AMD: RUNTIME_ENABLE: {}: debuggers will see no kernels",
                    std::strerror(-result));
    return;
  }
  checked(result, "RUNTIME_ENABLE(r_debug at {:#x})", on.r_debug);
}

std::unique_ptr<KfdBuffer> Process::allocate(Gpu& gpu, const BufferRequest& request) {
  auto buffer = std::make_unique<KfdBuffer>(*this, gpu, request);
  if (!request.everywhere) return buffer;
  std::lock_guard lock(mutex_);
  for (auto& [id, other] : gpus_) buffer->map_to(other);
  everywhere_.insert(buffer.get());
  return buffer;
}

void Process::free(std::unique_ptr<KfdBuffer> buffer) noexcept {
  std::lock_guard lock(mutex_);
  everywhere_.erase(buffer.get());
}

bool Process::share(KfdBuffer& buffer, const Gpu& with) {
  std::lock_guard lock(mutex_);
  return buffer.map_to(with);
}

std::string Process::available_text(const Gpu& gpu, int result) const {
  uapi::AvailableMemory a{0, gpu.node.gpu_id, 0};
  if (result != -ENOMEM || version_.minor_version < kAvailableMinor ||
      kernel_->ioctl(fd(), uapi::kAvailableMemory, &a) < 0)
    return "";
  return fmt::format(", of {} bytes available", a.available);
}

uint64_t* Process::allocate_signal(Gpu& gpu) {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (!free_signals_.empty()) {
        uint64_t* slot = free_signals_.back();
        free_signals_.pop_back();
        return slot;
      }
    }
    auto page = allocate(gpu, {kSignalPageBytes, MemoryDomain::Uncached, true});
    std::lock_guard lock(mutex_);
    for (size_t at = kSignalPageBytes; at > 0; at -= kSignalBytes)
      free_signals_.push_back(reinterpret_cast<uint64_t*>(page->host() + at - kSignalBytes));
    signal_pages_.push_back(std::move(page));
  }
}

void Process::free_signal(uint64_t* slot) noexcept {
  std::lock_guard lock(mutex_);
  free_signals_.push_back(slot);
}

uapi::CreateEvent Process::create_event(Gpu& gpu, uapi::EventType type) {
  std::lock_guard lock(event_mutex_);
  if (!event_page_) event_page_ = allocate(gpu, {kEventPageBytes, MemoryDomain::Uncached, true});
  uapi::CreateEvent e{};
  e.event_page_offset = event_page_given_ ? 0 : event_page_->handle();
  e.event_type = uint32_t(type);
  e.auto_reset = 1;
  e.node_id = gpu.node.node;
  checked(kernel_->ioctl(fd(), uapi::kCreateEvent, &e), "CREATE_EVENT(type {}, {})", e.event_type,
          gpu.node.arch());
  event_page_given_ = true;
  event_page_->leave_to_kernel();
  return e;
}

void Process::destroy_event(uint32_t id) noexcept {
  uapi::DestroyEvent d{id, 0};
  undo(*kernel_, fd(), uapi::kDestroyEvent, d);
}

uint64_t* Process::doorbell(Gpu& gpu, uint64_t offset) {
  std::lock_guard lock(mutex_);
  if (!gpu.doorbells) {
    auto pages = std::make_unique<AddressRange>(*kernel_, kDoorbellBytes, kPageBytes);
    pages->map(fd(), offset & ~(kDoorbellBytes - 1));
    gpu.doorbells = std::move(pages);
  }
  return reinterpret_cast<uint64_t*>(gpu.doorbells->data() + offset % kDoorbellBytes);
}

}  // namespace tuff::devices::amd

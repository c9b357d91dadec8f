// The emulated machine's system calls: which file they are for, which call, how it ends.
// Source of the order of checks: Linux amdkfd/kfd_chardev.c, kfd_ioctl.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>

#include "base/check.h"
#include "emu/amd/kfd/process.h"
#include "emu/kernel/refusal.h"
#include "emu/amd/kfd/topology.h"
#include "emu/amd/mock.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;

struct OpenFile {
  bool is_kfd = false;
  RenderFile render;
  int flags = 0;
};

class Machine final : public Mock {
 public:
  explicit Machine(const MockOptions& options);
  ~Machine() override;
  int open(const std::string& path, int flags) override;
  int close(int fd) override;
  int ioctl(int fd, unsigned long request, void* argument) override;
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override;
  int munmap(void* at, size_t size_bytes) override;
  int read_text(const std::string& path, std::string& text) override;
  int list_directory(const std::string& path, std::vector<std::string>& names) override;
  MockStats stats() const override;
  void pause() override { engines_.pause(); }
  void resume() override { engines_.resume(); }

  // For calls, under mutex_.
  Process& process() { return *process_; }
  std::optional<RenderFile> render_file(int fd) const;
  // Without mutex_.
  void wait(WaitEvents& a) { wait_events(parts_, a); }

 private:
  std::optional<OpenFile> find(int fd) const;
  std::optional<OpenFile> device(const std::string& path) const;
  int call(unsigned long request, void* argument);
  int answer(const char* name, const Refused& refused);

  const MockOptions options_;
  Reports reports_;
  Topology topology_;
  std::shared_ptr<PageFile> file_;
  UserMemory user_memory_;
  LoadedCode code_;
  Events events_;
  std::vector<std::unique_ptr<AddressSpace>> spaces_;
  Engines engines_;
  MachineParts parts_;
  mutable std::mutex mutex_;
  std::map<int, OpenFile> files_;
  uint64_t next_serial_ = 1;
  std::unique_ptr<Process> process_;  // while /dev/kfd is open
  std::atomic<uint64_t> calls_ = 0;
};

std::vector<std::unique_ptr<AddressSpace>> make_spaces(uint32_t gpus) {
  std::vector<std::unique_ptr<AddressSpace>> spaces;
  for (uint32_t i = 0; i < gpus; ++i) spaces.push_back(std::make_unique<AddressSpace>());
  return spaces;
}

struct Call {
  const char* name = nullptr;
  size_t size_bytes = 0;
  bool returns = false;  // what it has written goes back to the caller
  void (*run)(Machine&, void*) = nullptr;
  bool waits = false;  // goes without the machine's lock
};

template <class Argument, void (Process::*method)(Argument&)>
void run(Machine& machine, void* argument) {
  (machine.process().*method)(*static_cast<Argument*>(argument));
}

void run_acquire(Machine& machine, void* argument) {
  auto& a = *static_cast<AcquireVm*>(argument);
  machine.process().acquire_vm(a, machine.render_file(int(a.drm_fd)));
}

void run_wait(Machine& machine, void* argument) {
  machine.wait(*static_cast<WaitEvents*>(argument));
}

constexpr uint32_t kCalls = 0x27;
constexpr size_t kMaxArgumentBytes = 128;

constexpr std::array<Call, kCalls> make_calls() {
  std::array<Call, kCalls> calls{};
  const auto set = [&](unsigned long request, const char* name, void (*run)(Machine&, void*)) {
    calls[_IOC_NR(request)] = {name, _IOC_SIZE(request), (_IOC_DIR(request) & _IOC_READ) != 0, run};
  };
  set(kGetVersion, "GET_VERSION", run<GetVersion, &Process::get_version>);
  set(kCreateQueue, "CREATE_QUEUE", run<CreateQueue, &Process::create_queue>);
  set(kDestroyQueue, "DESTROY_QUEUE", run<DestroyQueue, &Process::destroy_queue>);
  set(kGetClockCounters, "GET_CLOCK_COUNTERS", run<GetClockCounters, &Process::get_clock_counters>);
  set(kCreateEvent, "CREATE_EVENT", run<CreateEvent, &Process::create_event>);
  set(kDestroyEvent, "DESTROY_EVENT", run<DestroyEvent, &Process::destroy_event>);
  set(kSetEvent, "SET_EVENT", run<SetEvent, &Process::set_event>);
  set(kWaitEvents, "WAIT_EVENTS", run_wait);
  calls[_IOC_NR(kWaitEvents)].waits = true;
  set(kGetProcessAperturesNew, "GET_PROCESS_APERTURES_NEW",
      run<GetProcessAperturesNew, &Process::get_apertures>);
  set(kAcquireVm, "ACQUIRE_VM", run_acquire);
  set(kAllocMemory, "ALLOC_MEMORY_OF_GPU", run<AllocMemory, &Process::allocate_memory>);
  set(kFreeMemory, "FREE_MEMORY_OF_GPU", run<FreeMemory, &Process::free_memory>);
  set(kMapMemory, "MAP_MEMORY_TO_GPU", run<MapMemory, &Process::map_memory>);
  set(kUnmapMemory, "UNMAP_MEMORY_FROM_GPU", run<MapMemory, &Process::unmap_memory>);
  set(kAvailableMemory, "AVAILABLE_MEMORY", run<AvailableMemory, &Process::available_memory>);
  set(kRuntimeEnable, "RUNTIME_ENABLE", run<RuntimeEnable, &Process::runtime_enable>);
  return calls;
}

Machine::Machine(const MockOptions& options)
    : options_(options),
      reports_(options.report),
      topology_(options_),
      file_(std::make_shared<PageFile>()),
      code_(user_memory_),
      spaces_(make_spaces(options.gpus)),
      engines_(options_, spaces_, events_, code_, reports_),
      parts_{options_, spaces_, file_, user_memory_, events_, code_, engines_} {}

Machine::~Machine() {
  process_.reset();
  for (const auto& [fd, file] : files_) ::close(fd);
}

std::optional<OpenFile> Machine::find(int fd) const {
  const auto file = files_.find(fd);
  return file == files_.end() ? std::nullopt : std::optional(file->second);
}

std::optional<RenderFile> Machine::render_file(int fd) const {
  const auto file = find(fd);
  return file && !file->is_kfd ? std::optional(file->render) : std::nullopt;
}

std::optional<OpenFile> Machine::device(const std::string& path) const {
  if (path == "/dev/kfd") return OpenFile{true};
  for (uint32_t gpu = 0; gpu < options_.gpus; ++gpu) {
    if (path == fmt::format("/dev/dri/renderD{}", render_minor_of(gpu)))
      return OpenFile{false, {gpu, 0}};
  }
  return std::nullopt;
}

// A file of the system holds the place of each emulated one, so that numbers never meet.
int Machine::open(const std::string& path, int flags) {
  if (!Topology::owns(path)) return os::system_kernel().open(path, flags);
  if (path == options_.forbidden) return -EACCES;
  auto file = device(path);
  if (!file) return -ENOENT;
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) return -errno;
  std::lock_guard lock(mutex_);
  file->flags = flags;
  file->render.serial = next_serial_++;
  files_[fd] = *file;
  if (file->is_kfd && !process_) process_ = std::make_unique<Process>(parts_);
  return fd;
}

// The kernel keeps queues alive until the process ends (kfd_process_notifier_release); here nothing
// could end them then.
int Machine::close(int fd) {
  std::unique_lock lock(mutex_);
  const auto file = find(fd);
  if (!file) {
    lock.unlock();
    return os::system_kernel().close(fd);
  }
  files_.erase(fd);
  bool last = file->is_kfd;
  for (const auto& [other, open] : files_) last = last && !open.is_kfd;
  if (last) {
    if (process_->queues() != 0) {
      answer("close", {EBUSY, fmt::format("/dev/kfd with {} queues alive: they run on until the "
                                          "process ends",
                                          process_->queues())});
    }
    process_.reset();
  }
  ::close(fd);
  return 0;
}

// kfd_ioctl: calls are told apart by number; of structs that are shorter than the kernel's the rest
// is zero, of longer ones the end is left alone. What a call has written goes back in any case.
int Machine::call(unsigned long request, void* argument) {
  static constexpr std::array<Call, kCalls> kTable = make_calls();
  const uint32_t number = _IOC_NR(request);
  const Call* call = number < kCalls ? &kTable[number] : nullptr;
  if (!call || !call->run)
    return answer("ioctl", {ENOTTY, fmt::format("call {:#x} is not known", request)});
  const uint64_t count = ++calls_;
  for (const Fault& fault : options_.faults) {
    if (fault.kind == Fault::Kind::FailCall && fault.count == count) return -ENOMEM;
  }
  alignas(8) std::array<std::byte, kMaxArgumentBytes> copy{};
  const size_t size = std::min<size_t>(_IOC_SIZE(request), call->size_bytes);
  const auto address = reinterpret_cast<uint64_t>(argument);
  if (!user_memory_.read(address, copy.data(), size))
    return answer(call->name, {EFAULT, fmt::format("no argument at {:#x}", address)});
  int result = 0;
  try {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!call->waits) lock.lock();
    if (!process_ && !call->waits) return -EBADF;
    call->run(*this, copy.data());
  } catch (const Refused& refused) {
    result = answer(call->name, refused);
  }
  if (call->returns && !user_memory_.write(address, copy.data(), size))
    return answer(call->name, {EFAULT, fmt::format("no results at {:#x}", address)});
  return result;
}

int Machine::answer(const char* name, const Refused& refused) {
  if (refused.mistake) {
    Finding finding;
    finding.kind = FindingKind::BadCall;
    finding.what = fmt::format("{}: {} (error {})", name, refused.why, refused.error);
    reports_.add(finding);
  }
  return -refused.error;
}

int Machine::ioctl(int fd, unsigned long request, void* argument) {
  std::optional<OpenFile> file;
  {
    std::lock_guard lock(mutex_);
    file = find(fd);
  }
  if (!file) return os::system_kernel().ioctl(fd, request, argument);
  if (!file->is_kfd)
    return answer("ioctl", {EINVAL, fmt::format("{:#x} of a render node is not known", request)});
  engines_.wake();
  const int result = call(request, argument);
  engines_.wake();
  return result;
}

intptr_t Machine::mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                       uint64_t offset) {
  std::unique_lock lock(mutex_);
  const auto file = find(fd);
  if (!file) {
    lock.unlock();
    return os::system_kernel().mmap(at, size_bytes, protection, flags, fd, offset);
  }
  try {
    if (offset % kPageBytes || size_bytes == 0)
      refuse(EINVAL, "{} bytes at offset {:#x}", size_bytes, offset);
    if ((protection & PROT_WRITE) && (flags & MAP_SHARED) && (file->flags & O_ACCMODE) != O_RDWR)
      refuse(EACCES, "for writing of a file opened for reading");
    if (!process_) refuse(EACCES, "of a render node while nobody has /dev/kfd open");
    if (file->is_kfd) return process_->map_device(at, size_bytes, protection, flags, offset);
    return process_->map_buffer(file->render, at, size_bytes, protection, flags, offset);
  } catch (const Refused& refused) {
    lock.unlock();
    return answer("mmap", refused);
  }
}

int Machine::munmap(void* at, size_t size_bytes) {
  try {
    std::lock_guard lock(mutex_);
    if (process_) process_->check_unmap(reinterpret_cast<uint64_t>(at), size_bytes);
  } catch (const Refused& refused) {
    answer("munmap", refused);
  }
  return os::system_kernel().munmap(at, size_bytes);
}

int Machine::read_text(const std::string& path, std::string& text) {
  if (!Topology::owns(path)) return os::system_kernel().read_text(path, text);
  return path == options_.forbidden ? -EACCES : topology_.read_text(path, text);
}

int Machine::list_directory(const std::string& path, std::vector<std::string>& names) {
  if (!Topology::owns(path)) return os::system_kernel().list_directory(path, names);
  return topology_.list_directory(path, names);
}

MockStats Machine::stats() const {
  const GpuStats gpus = engines_.stats();
  return {calls_, gpus.packets, gpus.dispatches, gpus.instructions, reports_.count()};
}

}  // namespace

std::unique_ptr<Mock> make_mock(const MockOptions& options) {
  if (options.gpus == 0) fail<InvalidArgument>("an emulated machine without GPUs");
  return std::make_unique<Machine>(options);
}

}  // namespace tuff::emu::amd

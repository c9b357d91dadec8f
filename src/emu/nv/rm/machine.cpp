// The emulated machine's system calls: which file they are for, which call, how it ends. Sources:
// open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/escape.c, kernel-open/nvidia/nv.c,
// nv-mmap.c, kernel-open/nvidia-uvm/uvm.c.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "base/check.h"
#include "emu/kernel/refusal.h"
#include "emu/kernel/user_memory.h"
#include "emu/nv/rm/uvm.h"

namespace tuff::emu::nv {
namespace {

using nvrm::Status;

struct OpenFile {
  enum class Kind : uint8_t { Control, Gpu, Uvm } kind = Kind::Control;
  uint32_t gpu = 0;
  uint64_t serial = 0;
  bool registered = false;  // of a GPU's file: REGISTER_FD
  std::shared_ptr<MemoryObject> to_map;  // by RM_MAP_MEMORY
  bool doorbells = false;                // likewise
  uint64_t map_bytes = 0;
  std::shared_ptr<Uvm> uvm;
};

class NvMachine final : public Mock {
 public:
  explicit NvMachine(const MockOptions& options)
      : options_(options),
        reports_(options.report),
        file_(std::make_shared<PageFile>()),
        engines_(options_.gpus, file_, reports_, options_.seed),
        objects_(options_, file_, engines_, reports_) {}
  ~NvMachine() override {
    for (const auto& [fd, file] : files_) ::close(fd);
    files_.clear();
  }
  int open(const std::string& path, int flags) override;
  int close(int fd) override;
  int ioctl(int fd, unsigned long request, void* argument) override;
  intptr_t mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                uint64_t offset) override;
  int munmap(void* at, size_t size_bytes) override {
    return os::system_kernel().munmap(at, size_bytes);
  }
  int read_text(const std::string& path, std::string& text) override {
    return os::system_kernel().read_text(path, text);
  }
  int list_directory(const std::string& path, std::vector<std::string>& names) override {
    return os::system_kernel().list_directory(path, names);
  }
  MockStats stats() const override;
  std::vector<int> open_files() const override;

 private:
  std::optional<OpenFile> device(const std::string& path) const;
  OpenFile* find(int fd);
  int answer(const char* name, const Refused& refused);
  uint32_t told(const char* name, const RmRefused& refused);
  bool fails_now() { return ++calls_ == options_.fail; }
  template <class T>
  T read(void* argument);
  template <class T>
  void write(void* argument, const T& value);
  // Runs an RM or UVM call whose struct has a status.
  template <class T, class Do>
  void run(const char* name, void* argument, Do act);

  int escape(OpenFile& file, unsigned long request, void* argument);
  void check_size(unsigned long request, size_t wanted, const char* name) const;
  void card_info(void* argument, size_t bytes);
  void rm_alloc(OpenFile& file, nvrm::Alloc& a);
  void rm_control(nvrm::Control& c);
  void rm_map(nvrm::MapMemory& m);
  int unified(OpenFile& file, unsigned long request, void* argument);
  int map_external(Uvm& uvm, void* argument);

  const MockOptions options_;
  Reports reports_;
  std::shared_ptr<PageFile> file_;
  UserMemory user_memory_;
  Engines engines_;
  mutable std::mutex mutex_;
  Objects objects_;
  std::map<int, OpenFile> files_;
  uint64_t next_serial_ = 1;
  uint64_t calls_ = 0;
  bool failing_ = false;
};

// ---- files

std::optional<OpenFile> NvMachine::device(const std::string& path) const {
  if (path == "/dev/nvidiactl") return OpenFile{};
  if (path == "/dev/nvidia-uvm") return OpenFile{.kind = OpenFile::Kind::Uvm};
  for (uint32_t gpu = 0; gpu < options_.gpus; ++gpu)
    if (path == fmt::format("/dev/nvidia{}", gpu))
      return OpenFile{.kind = OpenFile::Kind::Gpu, .gpu = gpu};
  return std::nullopt;
}

OpenFile* NvMachine::find(int fd) {
  const auto found = files_.find(fd);
  return found == files_.end() ? nullptr : &found->second;
}

// A file of the system holds the place of each emulated one, so that numbers never meet.
int NvMachine::open(const std::string& path, int flags) {
  auto file = device(path);
  if (!file) {
    const bool ours = path.starts_with("/dev/nvidia");
    return ours ? -ENOENT : os::system_kernel().open(path, flags);
  }
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) return -errno;
  std::lock_guard lock(mutex_);
  file->serial = next_serial_++;
  if (file->kind == OpenFile::Kind::Uvm) file->uvm = std::make_shared<Uvm>(objects_);
  files_[fd] = std::move(*file);
  return fd;
}

// What a file was opened for ends with it, in whatever order a process that is killed closes them.
int NvMachine::close(int fd) {
  std::unique_lock lock(mutex_);
  OpenFile* file = find(fd);
  if (!file) {
    lock.unlock();
    return os::system_kernel().close(fd);
  }
  if (file->uvm) file->uvm->clear();
  if (file->kind == OpenFile::Kind::Control) objects_.free_clients(file->serial);
  files_.erase(fd);
  ::close(fd);
  return 0;
}

intptr_t NvMachine::mmap(void* at, size_t size_bytes, int protection, int flags, int fd,
                         uint64_t offset) {
  std::unique_lock lock(mutex_);
  OpenFile* file = find(fd);
  if (!file) {
    lock.unlock();
    return os::system_kernel().mmap(at, size_bytes, protection, flags, fd, offset);
  }
  const bool announced = file->to_map || file->doorbells;
  if (!announced || size_bytes != file->map_bytes || offset != 0)
    return answer("mmap", {EINVAL, fmt::format("{} bytes of a file by which {} are to be mapped",
                                               size_bytes, file->map_bytes)});
  const Pages& pages = file->doorbells ? engines_.doorbells(file->gpu) : file->to_map->pages;
  const intptr_t got = pages.map_at(at, size_bytes, protection, flags);
  file->to_map = nullptr;
  file->doorbells = false;
  return got;
}

MockStats NvMachine::stats() const {
  std::lock_guard lock(mutex_);
  MockStats s{calls_, objects_.count(), 0, files_.size(), reports_.count()};
  for (const auto& [fd, file] : files_)
    if (file.uvm) s.ranges += file.uvm->ranges();
  return s;
}

std::vector<int> NvMachine::open_files() const {
  std::lock_guard lock(mutex_);
  std::vector<int> all;
  for (const auto& [fd, file] : files_) all.push_back(fd);
  return all;
}

// ---- calls

int NvMachine::answer(const char* name, const Refused& refused) {
  if (refused.mistake)
    reports_.add({FindingKind::BadCall, 0, 0, 0,
                  fmt::format("{}: {} (error {})", name, refused.why, refused.error)});
  return -refused.error;
}

uint32_t NvMachine::told(const char* name, const RmRefused& refused) {
  const auto status = uint32_t(refused.status);
  if (refused.mistake)
    reports_.add({FindingKind::BadCall, 0, 0, 0,
                  fmt::format("{}: {} (status {:#x})", name, refused.why, status)});
  return status;
}

template <class T>
T NvMachine::read(void* argument) {
  T value;
  const auto address = reinterpret_cast<uint64_t>(argument);
  if (!user_memory_.read(address, &value, sizeof value))
    refuse(EFAULT, "no argument at {:#x}", address);
  return value;
}

template <class T>
void NvMachine::write(void* argument, const T& value) {
  const auto address = reinterpret_cast<uint64_t>(argument);
  if (!user_memory_.write(address, &value, sizeof value))
    refuse(EFAULT, "no results at {:#x}", address);
}

template <class T, class Do>
void NvMachine::run(const char* name, void* argument, Do act) {
  T a = read<T>(argument);
  a.status = uint32_t(Status::Ok);
  if (failing_) {
    a.status = options_.status;
  } else {
    try {
      act(a);
    } catch (const RmRefused& refused) {
      a.status = told(name, refused);
    }
  }
  write(argument, a);
}

int NvMachine::ioctl(int fd, unsigned long request, void* argument) {
  std::unique_lock lock(mutex_);
  OpenFile* file = find(fd);
  if (!file) {
    lock.unlock();
    return os::system_kernel().ioctl(fd, request, argument);
  }
  failing_ = fails_now();
  if (failing_ && options_.no_status) return -EIO;
  int result = 0;
  try {
    result = file->kind == OpenFile::Kind::Uvm ? unified(*file, request, argument)
                                               : escape(*file, request, argument);
  } catch (const Refused& refused) {
    result = answer("ioctl", refused);
  }
  lock.unlock();
  engines_.wake();
  return result;
}

void NvMachine::check_size(unsigned long request, size_t wanted, const char* name) const {
  if (_IOC_SIZE(request) != wanted)
    refuse(EINVAL, "{}: a struct of {} bytes, {} are wanted", name, _IOC_SIZE(request), wanted);
}

int NvMachine::escape(OpenFile& file, unsigned long request, void* argument) {
  const uint32_t number = _IOC_NR(request);
  const bool control = file.kind == OpenFile::Kind::Control;
  if (number == nvrm::kRegisterFdNumber) {
    check_size(request, sizeof(nvrm::RegisterFd), "REGISTER_FD");
    if (failing_) return -EIO;
    const auto r = read<nvrm::RegisterFd>(argument);
    const OpenFile* other = find(r.control_fd);
    if (control || file.registered || !other || other->kind != OpenFile::Kind::Control)
      refuse(EINVAL, "REGISTER_FD of file {}", r.control_fd);
    file.registered = true;
    return 0;
  }
  if (!control) refuse(EINVAL, "escape {:#x} of a GPU's file", number);
  switch (number) {
    case nvrm::kCheckVersionNumber: {
      check_size(request, sizeof(nvrm::CheckVersion), "CHECK_VERSION_STR");
      if (failing_) return -EIO;
      auto v = read<nvrm::CheckVersion>(argument);
      if (v.command != nvrm::kVersionQuery) refuse(EINVAL, "CHECK_VERSION_STR {}", v.command);
      v.reply = nvrm::kVersionRecognized;
      std::snprintf(v.version, sizeof v.version, "%u.99.01", options_.driver);
      write(argument, v);
      return 0;
    }
    case nvrm::kCardInfoNumber:
      if (failing_) return -EIO;
      card_info(argument, _IOC_SIZE(request));
      return 0;
    case nvrm::kAllocNumber:
      check_size(request, sizeof(nvrm::Alloc), "RM_ALLOC");
      run<nvrm::Alloc>("RM_ALLOC", argument, [&](nvrm::Alloc& a) { rm_alloc(file, a); });
      return 0;
    case nvrm::kFreeNumber:
      check_size(request, sizeof(nvrm::Free), "RM_FREE");
      run<nvrm::Free>("RM_FREE", argument,
                      [&](nvrm::Free& f) { objects_.free(f.client, f.object); });
      return 0;
    case nvrm::kControlNumber:
      check_size(request, sizeof(nvrm::Control), "RM_CONTROL");
      run<nvrm::Control>("RM_CONTROL", argument, [&](nvrm::Control& c) { rm_control(c); });
      return 0;
    case nvrm::kMapMemoryNumber:
      check_size(request, sizeof(nvrm::MapMemory), "RM_MAP_MEMORY");
      run<nvrm::MapMemory>("RM_MAP_MEMORY", argument, [&](nvrm::MapMemory& m) { rm_map(m); });
      return 0;
    default: refuse(EINVAL, "escape {:#x} is not known", number);
  }
}

void NvMachine::card_info(void* argument, size_t bytes) {
  if (bytes % sizeof(nvrm::CardInfo) || bytes == 0)
    refuse(EINVAL, "CARD_INFO: {} bytes are no number of cards", bytes);
  std::vector<nvrm::CardInfo> cards(bytes / sizeof(nvrm::CardInfo));
  for (uint32_t i = 0; i < std::min<size_t>(options_.gpus, cards.size()); ++i) {
    nvrm::CardInfo& c = cards[i];
    c.valid = 1;
    c.pci_bus = uint8_t(1 + i);
    c.vendor = 0x10de;
    c.gpu_id = 0x100 * (i + 1);
    c.minor = i;
    c.aperture_bytes = options_.vram_bytes;
  }
  if (!user_memory_.write(reinterpret_cast<uint64_t>(argument), cards.data(), bytes))
    refuse(EFAULT, "CARD_INFO: no results");
}

// Whatever size the caller says: as many bytes as the class has.
void NvMachine::rm_alloc(OpenFile& file, nvrm::Alloc& a) {
  std::vector<std::byte> parameters(objects_.parameter_bytes(a.object_class));
  const bool given = a.parameters != 0 && !parameters.empty();
  if (given && !user_memory_.read(a.parameters, parameters.data(), parameters.size()))
    refuse(EFAULT, "RM_ALLOC: no parameters at {:#x}", a.parameters);
  a.object = objects_.alloc(file.serial, a, parameters);
  if (given && !user_memory_.write(a.parameters, parameters.data(), parameters.size()))
    refuse(EFAULT, "RM_ALLOC: no parameters at {:#x}", a.parameters);
}

void NvMachine::rm_control(nvrm::Control& c) {
  constexpr uint32_t kMostBytes = 64u << 10;
  if (c.parameter_bytes > kMostBytes)
    refuse_rm(Status::InvalidParamStruct, "a control of {} bytes", c.parameter_bytes);
  std::vector<std::byte> parameters(c.parameter_bytes);
  if (!user_memory_.read(c.parameters, parameters.data(), parameters.size()))
    refuse(EFAULT, "RM_CONTROL: no parameters at {:#x}", c.parameters);
  std::vector<nvrm::InfoEntry> entries;
  uint64_t entries_at = 0;
  if (c.command == nvrm::control::GrGetInfo && parameters.size() == sizeof(nvrm::GrInfo)) {
    nvrm::GrInfo info;
    std::memcpy(&info, parameters.data(), sizeof info);
    entries.resize(std::min(info.count, 64u));
    entries_at = info.entries;
    if (!user_memory_.read(entries_at, entries.data(), entries.size() * sizeof entries[0]))
      refuse(EFAULT, "GR_GET_INFO: no list at {:#x}", entries_at);
  }
  objects_.control(c, parameters, entries);
  const bool written =
      user_memory_.write(c.parameters, parameters.data(), parameters.size()) &&
      (entries.empty() ||
       user_memory_.write(entries_at, entries.data(), entries.size() * sizeof entries[0]));
  if (!written) refuse(EFAULT, "RM_CONTROL: no results at {:#x}", c.parameters);
}

// The file that will be mapped: of the control file's kind for system memory, of the GPU's for
// what lies behind its aperture; each for one mapping.
void NvMachine::rm_map(nvrm::MapMemory& m) {
  const Object& o = objects_.find(m.client, m.memory);
  objects_.find(m.client, m.device);
  OpenFile* file = find(m.fd);
  const bool doorbells = o.object_class == objects_.chip().usermode_class;
  if (!o.memory && !doorbells) refuse_rm(Status::InvalidObject, "{:#x} is no memory", m.memory);
  const bool system = o.memory && !o.memory->video;
  const auto wanted = system ? OpenFile::Kind::Control : OpenFile::Kind::Gpu;
  if (!file || file->kind != wanted || (!system && file->gpu != o.gpu))
    refuse_rm(Status::InvalidArgument, "file {} is not one that this memory is mapped by", m.fd);
  if (file->to_map || file->doorbells || file->registered || file->map_bytes != 0)
    refuse_rm(Status::StateInUse, "file {} has had a mapping", m.fd);
  const uint64_t size = doorbells ? nvrm::kUsermodeBytes : o.memory->size_bytes;
  if (m.offset != 0 || m.length == 0 || m.length > size)
    refuse_rm(Status::InvalidArgument, "{} bytes at {} of {}", m.length, m.offset, size);
  file->to_map = o.memory;
  file->doorbells = doorbells;
  file->map_bytes = m.length;
}

// ---- unified memory

int NvMachine::unified(OpenFile& file, unsigned long request, void* argument) {
  namespace uvm = nvrm::uvm;
  Uvm& u = *file.uvm;
  switch (request) {
    case uvm::kInitialize:
      run<uvm::Initialize>("UVM_INITIALIZE", argument, [&](auto& a) { u.initialize(a); });
      return 0;
    case uvm::kMmInitialize:
      run<uvm::MmInitialize>("UVM_MM_INITIALIZE", argument, [&](auto& a) {
        const OpenFile* other = find(a.uvm_fd);
        if (!other || !other->uvm)
          refuse_rm(Status::InvalidArgument, "{} is no file of unified memory", a.uvm_fd);
      });
      return 0;
    case uvm::kRegisterGpu:
      run<uvm::RegisterGpu>("UVM_REGISTER_GPU", argument, [&](auto& a) { u.register_gpu(a); });
      return 0;
    case uvm::kUnregisterGpu:
      run<uvm::UnregisterGpu>("UVM_UNREGISTER_GPU", argument,
                              [&](auto& a) { u.unregister_gpu(a); });
      return 0;
    case uvm::kRegisterGpuVaSpace:
      run<uvm::RegisterVaSpace>("UVM_REGISTER_GPU_VASPACE", argument,
                                [&](auto& a) { u.register_space(a); });
      return 0;
    case uvm::kUnregisterGpuVaSpace:
      run<uvm::UnregisterGpu>("UVM_UNREGISTER_GPU_VASPACE", argument,
                              [&](auto& a) { u.unregister_space(a); });
      return 0;
    case uvm::kRegisterChannel:
      run<uvm::RegisterChannel>("UVM_REGISTER_CHANNEL", argument,
                                [&](auto& a) { u.register_channel(a); });
      return 0;
    case uvm::kUnregisterChannel:
      run<uvm::UnregisterChannel>("UVM_UNREGISTER_CHANNEL", argument,
                                  [&](auto& a) { u.unregister_channel(a); });
      return 0;
    case uvm::kEnablePeerAccess:
      run<uvm::PeerAccess>("UVM_ENABLE_PEER_ACCESS", argument,
                           [&](auto& a) { u.enable_peers(a); });
      return 0;
    case uvm::kCreateExternalRange:
      run<uvm::Range>("UVM_CREATE_EXTERNAL_RANGE", argument, [&](auto& a) { u.create_range(a); });
      return 0;
    case uvm::kFree:
      run<uvm::Range>("UVM_FREE", argument, [&](auto& a) { u.free_range(a); });
      return 0;
    case uvm::kMapExternal: return map_external(u, argument);
    default: refuse(EINVAL, "call {:#x} of unified memory is not known", request);
  }
}

int NvMachine::map_external(Uvm& u, void* argument) {
  namespace uvm = nvrm::uvm;
  const nvrm::Branch& branch = objects_.branch();
  const uint32_t bytes = uvm::map_external_bytes(branch);
  auto* const at = static_cast<std::byte*>(argument);
  const auto begin = read<uvm::MapExternalBegin>(at);
  run<uvm::MapExternalEnd>(
      "UVM_MAP_EXTERNAL_ALLOCATION", at + bytes - sizeof(uvm::MapExternalEnd), [&](auto& end) {
        if (end.gpu_count > branch.gpu_attributes)
          refuse_rm(Status::InvalidArgument, "attributes of {} GPUs", end.gpu_count);
        std::vector<uvm::GpuAttributes> attributes;
        for (uint64_t i = 0; i < end.gpu_count; ++i)
          attributes.push_back(read<uvm::GpuAttributes>(at + sizeof(uvm::MapExternalBegin) +
                                                        i * sizeof(uvm::GpuAttributes)));
        u.map(begin, end, attributes);
      });
  return 0;
}

}  // namespace

std::unique_ptr<Mock> make_mock(const MockOptions& options) {
  if (options.pci) return make_pci_mock(options);
  return std::make_unique<NvMachine>(options);
}

}  // namespace tuff::emu::nv

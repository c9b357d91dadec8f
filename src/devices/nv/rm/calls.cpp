#include "devices/nv/rm/calls.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/log.h"

namespace tuff::devices::nv {
namespace {

using nvrm::Status;

constexpr const char* kControlFile = "/dev/nvidiactl";
constexpr const char* kUvmFile = "/dev/nvidia-uvm";

const char* remedy(int error) {
  switch (error) {
    case ENOMEM: return "free memory, or use a smaller model or batch";
    case EACCES:
    case EPERM: return "this user may not open it: see the permissions of /dev/nvidia*";
    case ENOENT:
      return "load NVIDIA's kernel modules nvidia and nvidia-uvm (nvidia-modprobe -u -c 0); a "
             "container needs the devices passed to it";
    case ENXIO:
    case ENODEV:
    case EIO: return "the GPU was reset, or is gone: see dmesg";
    default: return "see dmesg";
  }
}

struct StatusName {
  Status status;
  const char* name;
};
constexpr StatusName kStatusNames[] = {
#define NV_STATUS(name) {Status::name, #name}
    NV_STATUS(GpuIsLost),          NV_STATUS(IllegalAction),
    NV_STATUS(InUse),
    NV_STATUS(InsufficientResources), NV_STATUS(InsufficientPermissions),
    NV_STATUS(InvalidAddress),     NV_STATUS(InvalidArgument),
    NV_STATUS(InvalidChannel),     NV_STATUS(InvalidClass),
    NV_STATUS(InvalidClient),      NV_STATUS(InvalidCommand),
    NV_STATUS(InvalidDevice),      NV_STATUS(InvalidObject),
    NV_STATUS(InvalidObjectParent), NV_STATUS(InvalidOffset),
    NV_STATUS(InvalidParamStruct), NV_STATUS(InvalidState),
    NV_STATUS(NoMemory),           NV_STATUS(NotSupported),
    NV_STATUS(ObjectNotFound),     NV_STATUS(OutOfRange),
    NV_STATUS(StateInUse),         NV_STATUS(UvmAddressInUse),
#undef NV_STATUS
};

int errno_of(Status status) {
  switch (status) {
    case Status::NoMemory:
    case Status::InsufficientResources: return ENOMEM;
    case Status::GpuIsLost: return ENODEV;
    case Status::InsufficientPermissions: return EPERM;
    case Status::NotSupported:
    case Status::InvalidClass: return ENOTSUP;
    default: return EINVAL;
  }
}

[[noreturn]] void fail_as(int error, const std::string& text) {
  switch (error) {
    case ENOMEM: throw OutOfMemory(text);
    case ENODEV:
    case ENXIO:
    case EIO: throw DeviceLost(text);
    case EACCES:
    case EPERM:
    case ENOENT:
    case ENOTSUP: throw Unsupported(text);
    default: throw IoError(text);
  }
}

}  // namespace

std::string to_text(Status status) {
  const auto* found = std::find_if(std::begin(kStatusNames), std::end(kStatusNames),
                                   [&](const StatusName& n) { return n.status == status; });
  return fmt::format("{} ({:#x})", found == std::end(kStatusNames) ? "status" : found->name,
                     uint32_t(status));
}

void fail_call(const std::string& call, int error) {
  fail_as(error,
          fmt::format("NV: {} failed: {}; {}", call, std::strerror(error), remedy(error)));
}

void fail_call(const std::string& call, Status status) {
  const int error = errno_of(status);
  fail_as(error, fmt::format("NV: {} failed: {}; {}", call, to_text(status), remedy(error)));
}

// ---- the client

Client::Client(std::shared_ptr<os::Kernel> kernel)
    : kernel_(std::move(kernel)),
      control_(open(kControlFile)),
      uvm_(open(kUvmFile)),
      uvm_process_(open(kUvmFile)) {
  read_version();
  start_uvm();
  std::array<std::byte, nvrm::kMostParameterBytes> none{};
  root_ = alloc(0, nvrm::object::Root, "root client", none);
}

Client::~Client() { free(root_, root_); }

KernelFile Client::open(const std::string& path) const {
  const int fd = kernel_->open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) fail_call(fmt::format("open({})", path), -fd);
  return {*kernel_, fd};
}

void Client::escape(unsigned long request, const char* name, void* argument) const {
  const int result = kernel_->ioctl(control_.fd(), request, argument);
  if (result < 0) fail_call(name, -result);
}

// The size of structs is compared for equality by the driver, so that a branch that is not known
// cannot be talked to.
void Client::read_version() {
  nvrm::CheckVersion v{};
  v.command = nvrm::kVersionQuery;
  escape(nvrm::kCheckVersion, "CHECK_VERSION_STR", &v);
  version_.assign(v.version, strnlen(v.version, sizeof v.version));
  uint32_t number = 0;
  std::from_chars(version_.data(), version_.data() + version_.size(), number);
  std::vector<uint32_t> known;
  for (const nvrm::Branch& b : nvrm::kBranches) {
    known.push_back(b.number);
    if (b.number == number) branch_ = &b;
  }
  if (!branch_)
    fail<Unsupported>(
        "NV: the kernel driver is of version {}; known are branches {}: the device CUDA works "
        "with any",
        version_, fmt::join(known, ", "));
}

// MM_INITIALIZE lets UVM follow what becomes of the process's memory; it is refused where the
// kernel cannot, and nothing here needs it.
void Client::start_uvm() {
  nvrm::uvm::Initialize start{};
  uvm(nvrm::uvm::kInitialize, "UVM_INITIALIZE", start);
  nvrm::uvm::MmInitialize process{uvm_.fd(), 0};
  kernel_->ioctl(uvm_process_.fd(), nvrm::uvm::kMmInitialize, &process);
}

std::vector<nvrm::CardInfo> Client::cards() const {
  std::vector<nvrm::CardInfo> cards(nvrm::kMaxCards);
  escape(nvrm::kCardInfo, "CARD_INFO", cards.data());
  std::erase_if(cards, [](const nvrm::CardInfo& c) { return !c.valid; });
  return cards;
}

// RM copies as many bytes as its own struct has: a buffer that is larger than any.
nvrm::Handle Client::alloc(nvrm::Handle parent, uint32_t object_class, const char* name,
                           std::span<std::byte> parameters) {
  alignas(8) std::array<std::byte, nvrm::kMostParameterBytes> copy{};
  std::copy(parameters.begin(), parameters.end(), copy.begin());
  nvrm::Alloc a{};
  a.client = root_;
  a.parent = parent;
  a.object_class = object_class;
  if (!parameters.empty()) a.parameters = reinterpret_cast<uint64_t>(copy.data());
  const std::string call = fmt::format("RM_ALLOC({}, class {:#x})", name, object_class);
  escape(nvrm::kAlloc, call.c_str(), &a);
  if (Status(a.status) != Status::Ok) fail_call(call, Status(a.status));
  std::copy_n(copy.begin(), parameters.size(), parameters.begin());
  return a.object;
}

void Client::free(nvrm::Handle parent, nvrm::Handle object) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    nvrm::Free f{root_, parent, object, 0};
    const int result = kernel_->ioctl(control_.fd(), nvrm::kFree, &f);
    if (result == 0 && Status(f.status) == Status::Ok) return;
    if (attempt > 0)
      log_warn("NV: RM_FREE({:#x}) failed: error {}, status {:#x}", object, -result, f.status);
  }
}

void Client::control(nvrm::Handle object, uint32_t command, const char* name,
                     std::span<std::byte> parameters) const {
  nvrm::Control c{};
  c.client = root_;
  c.object = object;
  c.command = command;
  c.parameters = reinterpret_cast<uint64_t>(parameters.data());
  c.parameter_bytes = uint32_t(parameters.size());
  escape(nvrm::kControl, name, &c);
  if (Status(c.status) != Status::Ok) fail_call(name, Status(c.status));
}

void Client::uvm(unsigned long request, const char* name, void* argument,
                 const uint32_t& status) const {
  const int result = kernel_->ioctl(uvm_.fd(), request, argument);
  if (result < 0) fail_call(name, -result);
  if (Status(status) != Status::Ok) fail_call(name, Status(status));
}

}  // namespace tuff::devices::nv

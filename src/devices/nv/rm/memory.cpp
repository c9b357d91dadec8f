#include "devices/nv/rm/memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/arith.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kHugePageBytes = 2u << 20, kBigPageBytes = 64u << 10;
constexpr uint64_t kFewestHugeBytes = 8u << 20;
constexpr uint32_t kReadWriteAtomic = 1;  // UvmGpuMappingTypeReadWriteAtomic
constexpr uint32_t kOwner = 0x74756666;   // any number: RM keeps it with the memory

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Space::Space(Gpu& gpu) : gpu_(gpu), number_(next_number()) {
  nvrm::VaSpaceParameters p{};
  p.flags = nvrm::kSpacePageFaulting | nvrm::kSpaceExternallyOwned;
  space_ = std::make_unique<Object>(gpu.client(), gpu.device(), nvrm::object::VaSpace, "VA space",
                                    p);
  try {
    register_with_uvm();
    gpu_.client()->spaces().add(*this);
  } catch (...) {
    unregister();
    throw;
  }
}

void Space::register_with_uvm() {
  Client& client = *gpu_.client();
  nvrm::uvm::RegisterGpu own{};
  own.gpu = gpu_.facts().uuid;
  own.control_fd = -1;
  client.uvm(nvrm::uvm::kRegisterGpu, "UVM_REGISTER_GPU", own);
  gpu_registered_ = true;
  nvrm::uvm::RegisterVaSpace space{};
  space.gpu = gpu_.facts().uuid;
  space.control_fd = client.control_fd();
  space.client = client.root();
  space.va_space = handle();
  client.uvm(nvrm::uvm::kRegisterGpuVaSpace, "UVM_REGISTER_GPU_VASPACE", space);
  space_registered_ = true;
}

Space::~Space() {
  gpu_.client()->spaces().remove(*this);
  unregister();
}

void Space::unregister() noexcept {
  const nvrm::uvm::UnregisterGpu own{gpu_.facts().uuid, 0};
  if (space_registered_) gpu_.client()->undo_uvm(nvrm::uvm::kUnregisterGpuVaSpace, own);
  if (gpu_registered_) gpu_.client()->undo_uvm(nvrm::uvm::kUnregisterGpu, own);
}

// ---- memory

Buffer::Buffer(Space& space, size_t size_bytes, MemoryDomain domain)
    : space_(space), size_(align_up(size_bytes, kPageBytes)) {
  const bool huge = domain != MemoryDomain::System && size_ >= kFewestHugeBytes;
  if (domain != MemoryDomain::System)
    size_ = align_up(size_, huge ? kHugePageBytes : kBigPageBytes);
  try {
    allocate(domain);
    address_ = space.reserve(size_, huge ? kHugePageBytes : kBigPageBytes);
    create_range();
    map_for(space);
    if (domain != MemoryDomain::Video) map_on_host(domain);
  } catch (...) {
    release();
    throw;
  }
}

void Buffer::allocate(MemoryDomain domain) {
  nvrm::MemoryParameters p{};
  p.owner = kOwner;
  p.size_bytes = size_;
  if (domain == MemoryDomain::System) {
    p.flags = nvrm::kAllocMapNotRequired;
    p.attr = nvrm::kAttrPci | nvrm::kAttrNoncontiguous | nvrm::kAttrCached;
    p.attr2 = nvrm::kAttr2NoZbc;
  } else {
    const bool huge = size_ >= kFewestHugeBytes;
    p.flags = nvrm::kAllocMapNotRequired | nvrm::kAllocPersistent | nvrm::kAllocAlignmentForce;
    p.alignment = huge ? kHugePageBytes : kBigPageBytes;
    p.attr = huge ? nvrm::kAttrHugePages : nvrm::kAttrContiguous;
    p.attr2 = nvrm::kAttr2NoZbc | nvrm::kAttr2Cacheable | (huge ? nvrm::kAttr2Huge2M : 0);
  }
  const bool system = domain == MemoryDomain::System;
  memory_ = std::make_unique<Object>(
      space_.gpu().client(), space_.gpu().device(),
      system ? nvrm::object::MemorySystem : nvrm::object::MemoryLocal,
      fmt::format("{} bytes of {} memory", size_, system ? "system" : "video").c_str(), p);
}

void Buffer::create_range() {
  nvrm::uvm::Range range{address_, size_, 0, 0};
  space_.gpu().client()->uvm(nvrm::uvm::kCreateExternalRange, "UVM_CREATE_EXTERNAL_RANGE", range);
  in_range_ = true;
}

bool Buffer::map_for(Space& space) {
  std::lock_guard lock(mutex_);
  if (mapped_for_.contains(space.number())) return false;
  const Client& client = *space_.gpu().client();
  const nvrm::Branch& branch = client.branch();
  std::vector<std::byte> call(nvrm::uvm::map_external_bytes(branch));
  const nvrm::uvm::MapExternalBegin begin{address_, size_, 0};
  nvrm::uvm::GpuAttributes attributes{};
  attributes.gpu = space.gpu().facts().uuid;
  attributes.mapping = kReadWriteAtomic;
  const nvrm::uvm::MapExternalEnd end{1, client.control_fd(), client.root(), memory_->handle(), 0};
  std::byte* const last = call.data() + call.size() - sizeof end;
  std::memcpy(call.data(), &begin, sizeof begin);
  std::memcpy(call.data() + sizeof begin, &attributes, sizeof attributes);
  std::memcpy(last, &end, sizeof end);
  const auto& status = reinterpret_cast<const nvrm::uvm::MapExternalEnd*>(last)->status;
  client.uvm(nvrm::uvm::kMapExternal,
             fmt::format("UVM_MAP_EXTERNAL_ALLOCATION({} bytes)", size_).c_str(), call.data(),
             status);
  mapped_for_.insert(space.number());
  return true;
}

void Buffer::map_on_host(MemoryDomain domain) {
  const Client& client = *space_.gpu().client();
  const KernelFile file = domain == MemoryDomain::System ? client.open("/dev/nvidiactl")
                                                         : space_.gpu().open_file();
  host_ = map_object(space_.gpu(), space_.gpu().device(), memory_->handle(), size_, file);
}

Buffer::~Buffer() { release(); }

void Buffer::release() noexcept {
  os::Kernel& kernel = space_.gpu().client()->kernel();
  if (host_) kernel.munmap(host_, size_);
  if (in_range_)
    space_.gpu().client()->undo_uvm(nvrm::uvm::kFree, nvrm::uvm::Range{address_, size_, 0, 0});
  if (address_) space_.give_back(address_);
  memory_.reset();
}

std::byte* map_object(const Gpu& gpu, nvrm::Handle device, nvrm::Handle object, size_t size_bytes,
                      const KernelFile& file) {
  const Client& client = *gpu.client();
  nvrm::MapMemory m{};
  m.client = client.root();
  m.device = device;
  m.memory = object;
  m.length = size_bytes;
  m.fd = file.fd();
  const std::string call = fmt::format("RM_MAP_MEMORY({} bytes)", size_bytes);
  const int result = client.kernel().ioctl(client.control_fd(), nvrm::kMapMemory, &m);
  if (result < 0) fail_call(call, -result);
  if (nvrm::Status(m.status) != nvrm::Status::Ok) fail_call(call, nvrm::Status(m.status));
  const intptr_t at = client.kernel().mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                           file.fd(), 0);
  if (at < 0) fail_call(fmt::format("mmap({} bytes)", size_bytes), int(-at));
  return reinterpret_cast<std::byte*>(at);
}

}  // namespace tuff::devices::nv

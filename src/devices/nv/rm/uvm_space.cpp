#include "devices/nv/rm/uvm_space.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "devices/nv/rm/uvm_channel.h"

namespace tuff::devices::nv {
namespace {

constexpr uint64_t kHugePageBytes = 2u << 20;
constexpr uint32_t kReadWriteAtomic = 1;  // UvmGpuMappingTypeReadWriteAtomic
constexpr uint32_t kOwner = 0x74756666;   // any number: RM keeps it with the memory

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

UvmSpace::UvmSpace(std::shared_ptr<Client> client, const nvrm::CardInfo& card)
    : gpu_(std::move(client), card), number_(next_number()) {
  nvrm::VaSpaceParameters p{};
  p.flags = nvrm::kSpacePageFaulting | nvrm::kSpaceExternallyOwned;
  space_ = std::make_unique<Object>(gpu_.client(), gpu_.device(), nvrm::object::VaSpace, "VA space",
                                    p);
  try {
    register_with_uvm();
    this->client().spaces().add(*this);
  } catch (...) {
    unregister();
    throw;
  }
}

void UvmSpace::register_with_uvm() {
  nvrm::uvm::RegisterGpu own{};
  own.gpu = facts().uuid;
  own.control_fd = -1;
  client().uvm(nvrm::uvm::kRegisterGpu, "UVM_REGISTER_GPU", own);
  gpu_registered_ = true;
  nvrm::uvm::RegisterVaSpace space{};
  space.gpu = facts().uuid;
  space.control_fd = client().control_fd();
  space.client = client().root();
  space.va_space = handle();
  client().uvm(nvrm::uvm::kRegisterGpuVaSpace, "UVM_REGISTER_GPU_VASPACE", space);
  space_registered_ = true;
}

UvmSpace::~UvmSpace() {
  client().spaces().remove(*this);
  unregister();
}

void UvmSpace::unregister() noexcept {
  const nvrm::uvm::UnregisterGpu own{facts().uuid, 0};
  if (space_registered_) client().undo_uvm(nvrm::uvm::kUnregisterGpuVaSpace, own);
  if (gpu_registered_) client().undo_uvm(nvrm::uvm::kUnregisterGpu, own);
}

std::unique_ptr<Buffer> UvmSpace::allocate(size_t size_bytes, MemoryDomain domain) {
  return std::make_unique<UvmBuffer>(*this, size_bytes, domain);
}

std::unique_ptr<ChannelGroup> UvmSpace::make_group() {
  return std::make_unique<UvmChannelGroup>(*this);
}

// GPUs of other clients have other addresses.
bool UvmSpace::reaches(const Space& other) const {
  const auto* peer = dynamic_cast<const UvmSpace*>(&other);
  return peer && gpu_.client() == peer->gpu_.client() && client().spaces().are_peers(*this, *peer);
}

// ---- memory

UvmBuffer::UvmBuffer(UvmSpace& space, size_t size_bytes, MemoryDomain domain)
    : Buffer(size_bytes, domain), space_(space) {
  try {
    allocate(domain);
    address_ = space.client().addresses().reserve(size_, alignment());
    create_range();
    map_for(space);
    if (domain != MemoryDomain::Video) map_on_host(domain);
  } catch (...) {
    release();
    throw;
  }
}

void UvmBuffer::allocate(MemoryDomain domain) {
  nvrm::MemoryParameters p{};
  p.owner = kOwner;
  p.size_bytes = size_;
  if (domain == MemoryDomain::System) {
    p.flags = nvrm::kAllocMapNotRequired;
    p.attr = nvrm::kAttrPci | nvrm::kAttrNoncontiguous | nvrm::kAttrCached;
    p.attr2 = nvrm::kAttr2NoZbc;
  } else {
    const bool huge = alignment() == kHugePageBytes;
    p.flags = nvrm::kAllocMapNotRequired | nvrm::kAllocPersistent | nvrm::kAllocAlignmentForce;
    p.alignment = alignment();
    p.attr = huge ? nvrm::kAttrHugePages : nvrm::kAttrContiguous;
    p.attr2 = nvrm::kAttr2NoZbc | nvrm::kAttr2Cacheable | (huge ? nvrm::kAttr2Huge2M : 0);
  }
  const bool system = domain == MemoryDomain::System;
  memory_ = std::make_unique<Object>(
      space_.gpu().client(), space_.gpu().device(),
      system ? nvrm::object::MemorySystem : nvrm::object::MemoryLocal,
      fmt::format("{} bytes of {} memory", size_, system ? "system" : "video").c_str(), p);
}

void UvmBuffer::create_range() {
  nvrm::uvm::Range range{address_, size_, 0, 0};
  space_.client().uvm(nvrm::uvm::kCreateExternalRange, "UVM_CREATE_EXTERNAL_RANGE", range);
  in_range_ = true;
}

bool UvmBuffer::map_for(Space& other) {
  auto& space = static_cast<UvmSpace&>(other);
  std::lock_guard lock(mutex_);
  if (mapped_for_.contains(space.number())) return false;
  const Client& client = space_.client();
  const nvrm::Branch& branch = client.branch();
  std::vector<std::byte> call(nvrm::uvm::map_external_bytes(branch));
  const nvrm::uvm::MapExternalBegin begin{address_, size_, 0};
  nvrm::uvm::GpuAttributes attributes{};
  attributes.gpu = space.facts().uuid;
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

void UvmBuffer::map_on_host(MemoryDomain domain) {
  const Client& client = space_.client();
  const KernelFile file = domain == MemoryDomain::System ? client.open("/dev/nvidiactl")
                                                         : space_.gpu().open_file();
  host_ = map_object(space_.gpu(), space_.gpu().device(), memory_->handle(), size_, file);
}

UvmBuffer::~UvmBuffer() { release(); }

void UvmBuffer::release() noexcept {
  Client& client = space_.client();
  if (host_) client.kernel().munmap(host_, size_);
  if (in_range_) client.undo_uvm(nvrm::uvm::kFree, nvrm::uvm::Range{address_, size_, 0, 0});
  if (address_) client.addresses().give_back(address_);
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

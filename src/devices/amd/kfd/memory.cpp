#include "devices/amd/kfd/memory.h"

#include <algorithm>

#include "base/log.h"
#include "devices/amd/kfd/process.h"

namespace tuff::devices::amd {
namespace {

// Large memory at such addresses takes entries of 2 MiB in the GPU's page table.
constexpr size_t kLargePageBytes = 2u << 20;

struct DomainRow {
  uint32_t flags;
  bool visible;  // to the host
  const char* name;
};
DomainRow row_of(MemoryDomain domain, bool large_bar) {
  using namespace uapi;
  constexpr uint32_t base = kWritable | kNoSubstitute;
  // Queues' memory is executable, as ROCr has it.
  switch (domain) {
    case MemoryDomain::Vram: return {base | kVram, false, "VRAM"};
    case MemoryDomain::PeerVram:
      return {base | kVram | (large_bar ? kPublic : 0u), false, "VRAM for several GPUs"};
    case MemoryDomain::VisibleVram: return {base | kVram | kPublic, true, "host-visible VRAM"};
    case MemoryDomain::Code:
      if (large_bar) return {base | kVram | kPublic | kExecutable, true, "VRAM for code"};
      return {base | kGtt | kCoherent | kExecutable, true, "host memory for code"};
    case MemoryDomain::Host: return {base | kGtt | kCoherent | kExecutable, true, "host memory"};
    case MemoryDomain::Shared: return {base | kGtt, true, "host memory"};
    case MemoryDomain::Uncached:
      return {base | kGtt | kCoherent | kUncached | kExecutable, true, "uncached host memory"};
    case MemoryDomain::User: return {base | kUserptr | kCoherent, true, "the caller's memory"};
  }
  return {};
}

}  // namespace

KfdBuffer::KfdBuffer(Process& process, Gpu& gpu, const BufferRequest& request)
    : process_(process), gpu_(gpu) {
  try {
    allocate(request);
    map_to(gpu);
  } catch (...) {
    release();
    throw;
  }
}

KfdBuffer::~KfdBuffer() { release(); }

void KfdBuffer::allocate(const BufferRequest& request) {
  const bool user = request.domain == MemoryDomain::User;
  if (user && (reinterpret_cast<uint64_t>(request.user) % kPageBytes != 0 || !request.user))
    fail<InvalidArgument>("AMD: memory at {} does not begin at a page of {} bytes", request.user,
                          kPageBytes);
  const size_t size = align_up(request.size_bytes, kPageBytes);
  const DomainRow domain = row_of(request.domain, gpu_.node.large_bar);
  range_.emplace(process_.kernel(), size, size >= kLargePageBytes ? kLargePageBytes : kPageBytes);
  uapi::AllocMemory a{};
  a.va_addr = range_->address();
  a.size = size;
  a.gpu_id = gpu_.node.gpu_id;
  a.flags = domain.flags;
  if (user) a.mmap_offset = reinterpret_cast<uint64_t>(request.user);
  const int result = process_.kernel().ioctl(process_.fd(), uapi::kAllocMemory, &a);
  checked(result, "ALLOC_MEMORY_OF_GPU({} bytes of {} on {}, flags {:#x}{})", size, domain.name,
          gpu_.node.arch(), a.flags, process_.available_text(gpu_, result));
  handle_ = a.handle;
  allocated_ = true;
  if (user) {
    host_ = static_cast<std::byte*>(request.user);
  } else if (domain.visible) {
    range_->map(gpu_.render.fd(), a.mmap_offset);
    host_ = range_->data();
  }
}

bool KfdBuffer::map_to(const Gpu& gpu) {
  uint32_t id = gpu.node.gpu_id;
  if (std::find(mapped_to_.begin(), mapped_to_.end(), id) != mapped_to_.end()) return false;
  mapped_to_.reserve(mapped_to_.size() + 1);
  uapi::MapMemory m{handle_, reinterpret_cast<uint64_t>(&id), 1, 0};
  checked(process_.kernel().ioctl(process_.fd(), uapi::kMapMemory, &m),
          "MAP_MEMORY_TO_GPU({} bytes at {:#x} of {}, on {})", size_bytes(), address(),
          gpu_.node.arch(), gpu.node.arch());
  mapped_to_.push_back(id);
  return true;
}

void KfdBuffer::release() noexcept {
  os::Kernel& kernel = process_.kernel();
  const uint64_t at = range_ ? range_->address() : 0;
  int result = 0;
  if (!mapped_to_.empty() && !kept_) {
    uapi::MapMemory m{handle_, reinterpret_cast<uint64_t>(mapped_to_.data()),
                      uint32_t(mapped_to_.size()), 0};
    result = undo(kernel, process_.fd(), uapi::kUnmapMemory, m);
  }
  range_.reset();
  if (allocated_ && !kept_) {
    uapi::FreeMemory f{handle_};
    result = std::min(result, undo(kernel, process_.fd(), uapi::kFreeMemory, f));
  }
  if (result < 0) log_warn("AMD: memory at {:#x} could not be freed: error {}", at, -result);
}

}  // namespace tuff::devices::amd

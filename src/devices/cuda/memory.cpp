#include "devices/cuda/memory.h"

#include <iterator>

#include "base/arith.h"

namespace tuff::devices::cuda {
namespace {

constexpr uintptr_t kHostPageBytes = 4096;

}  // namespace

Memory::~Memory() {
  for (const auto& [address, block] : live_) release(block);
}

hcq::MemoryBlock Memory::map(size_t size_bytes, hcq::MemoryKind kind) {
  const Context& c = *context_;
  const Current current(c);
  hcq::MemoryBlock block{.size_bytes = size_bytes, .kind = kind};
  if (is_host(kind)) {
    void* pages = nullptr;
    c.check(c.api.MemHostAlloc(&pages, size_bytes,
                               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
            "cuMemHostAlloc");
    // With unified addresses a GPU has them where the host has them (cuMemHostAlloc).
    block.host = static_cast<std::byte*>(pages);
    block.address = reinterpret_cast<uint64_t>(pages);
  } else {
    CUdeviceptr address = 0;
    c.check(c.api.MemAlloc(&address, size_bytes), "cuMemAlloc");
    block.address = address;
  }
  std::lock_guard lock(mutex_);
  live_.emplace(block.address, block);
  return block;
}

void Memory::unmap(const hcq::MemoryBlock& block) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (live_.erase(block.address) == 0) return;
  }
  release(block);
}

void Memory::release(const hcq::MemoryBlock& block) noexcept {
  const Context& c = *context_;
  const Current current(c, std::nothrow);
  if (!current) return;
  if (block.host) return c.release(c.api.MemFreeHost(block.host), "cuMemFreeHost");
  c.release(c.api.MemFree(block.address), "cuMemFree");
}

// Of what is registered already, or of what is now.
const Memory::Pages* Memory::registered(uintptr_t begin, uintptr_t end) {
  const Context& c = *context_;
  const auto next = registered_.upper_bound(begin);
  if (next != registered_.begin()) {
    const auto& [first, pages] = *std::prev(next);
    if (end <= first + pages.size_bytes) return &pages;
    if (begin < first + pages.size_bytes) return nullptr;
  }
  if (next != registered_.end() && next->first < end) return nullptr;
  auto* data = reinterpret_cast<void*>(begin);
  const CUresult code = c.api.MemHostRegister(
      data, end - begin, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) return nullptr;
  c.check(code, "cuMemHostRegister");
  Pages pages{end - begin, begin};
  if (!c.facts.registered_at_host_address) {
    const CUresult got = c.api.MemHostGetDevicePointer(&pages.address, data, 0);
    if (got != CUDA_SUCCESS) c.release(c.api.MemHostUnregister(data), "cuMemHostUnregister");
    c.check(got, "cuMemHostGetDevicePointer");
  }
  return &registered_.emplace(begin, pages).first->second;
}

std::optional<hcq::ForeignMemory> Memory::over_host(void* data, size_t size_bytes) {
  if (size_bytes == 0) return std::nullopt;
  const auto at = reinterpret_cast<uintptr_t>(data);
  if (at % kBufferAlignment != 0)
    fail<InvalidArgument>("{}: memory at {:#x} is not aligned to {} bytes, as kernels want it",
                          context_->name, at, kBufferAlignment);
  const Current current(*context_);
  std::lock_guard lock(mutex_);
  const Pages* pages = registered(at / kHostPageBytes * kHostPageBytes,
                                  align_up(at + size_bytes, kHostPageBytes));
  if (!pages) return std::nullopt;
  // Found again by its place: what was there before may hold more pages than this.
  const auto held = std::prev(registered_.upper_bound(at));
  held->second.uses++;
  hcq::ForeignMemory out;
  out.block = {pages->address + (at - held->first), size_bytes, static_cast<std::byte*>(data)};
  out.release = [this, begin = held->first] { unregister(begin); };
  return out;
}

void Memory::unregister(uintptr_t begin) noexcept {
  const Context& c = *context_;
  {
    std::lock_guard lock(mutex_);
    const auto it = registered_.find(begin);
    if (--it->second.uses > 0) return;
    registered_.erase(it);
  }
  const Current current(c, std::nothrow);
  if (current)
    c.release(c.api.MemHostUnregister(reinterpret_cast<void*>(begin)), "cuMemHostUnregister");
}

}  // namespace tuff::devices::cuda

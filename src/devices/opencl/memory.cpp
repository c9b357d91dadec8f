#include "devices/opencl/memory.h"

#include "base/arith.h"
#include "base/os.h"
#include "base/os_memory_room.h"

namespace tuff::devices::opencl {
namespace {

// Drivers align SVM to their largest type; the allocator counts on this.
constexpr uint64_t kAlignment = 256;

}  // namespace

Memory::~Memory() {
  for (const auto& [address, raw] : live_) release(raw);
}

hcq::MemoryBlock Memory::map(size_t size_bytes, hcq::MemoryKind kind) {
  const Context& c = *context_;
  if (size_bytes > c.facts.allocation_bytes)
    fail<OutOfMemory>("{}: a block of {} bytes exceeds the driver's largest allocation of {} bytes",
                      c.name, size_bytes, c.facts.allocation_bytes);
  Raw raw{.block = {.size_bytes = size_bytes, .kind = kind}, .counted_bytes = size_bytes};
  std::lock_guard lock(mutex_);
  // Drivers promise memory that there is not: what does not fit fails when it is first used.
  if (mapped_bytes_ + size_bytes > c.facts.memory_bytes)
    fail<OutOfMemory>("{}: no {} bytes of memory: {} mapped of {}", c.name, size_bytes,
                      mapped_bytes_, c.facts.memory_bytes);
  if (!c.facts.hardware()) os::require_memory_room(size_bytes, c.name.c_str());
  place(raw, raw.block);
  live_.emplace(raw.block.address, raw);
  if (raw.buffer) addresses_.emplace(raw.buffer, raw.block.address);
  mapped_bytes_ += size_bytes;
  return raw.block;
}

void Memory::place(Raw& raw, hcq::MemoryBlock& block) {
  Context& c = *context_;
  const bool fine = c.facts.tier == MemoryTier::FineSvm;
  if (block.kind != hcq::MemoryKind::Device && !fine) {
    raw.pages = os::map_pages_within_limits(block.size_bytes, c.name.c_str());
    if (!raw.pages) fail<OutOfMemory>("{}: no {} bytes of host memory", c.name, block.size_bytes);
    block.host = static_cast<std::byte*>(raw.pages);
    block.address = reinterpret_cast<uint64_t>(raw.pages);
  } else if (c.svm()) {
    const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | (fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0);
    raw.svm = c.api.clSVMAlloc(c.handle, flags, block.size_bytes + kAlignment, 0);
    if (!raw.svm)
      fail<OutOfMemory>("{}: clSVMAlloc has no {} bytes", c.name, block.size_bytes + kAlignment);
    const auto address = reinterpret_cast<uint64_t>(raw.svm);
    block.address = align_up(address, kAlignment);
    if (fine) block.host = reinterpret_cast<std::byte*>(block.address);
  } else {
    cl_int code = CL_SUCCESS;
    raw.buffer =
        c.api.clCreateBuffer(c.handle, CL_MEM_READ_WRITE, block.size_bytes, nullptr, &code);
    if (code == CL_OUT_OF_RESOURCES) code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    c.check(code, "clCreateBuffer");
    block.native = reinterpret_cast<uint64_t>(raw.buffer);
    block.address = next_object_++ << kOffsetBits;
  }
}

Memory::Adopted Memory::adopt(cl_mem buffer, size_t size_bytes) {
  std::lock_guard lock(mutex_);
  if (const auto known = addresses_.find(buffer); known != addresses_.end()) {
    Raw& raw = live_.at(known->second);
    raw.uses++;
    return {raw.block, raw.lead()};
  }
  context_->check(context_->api.clRetainMemObject(buffer), "clRetainMemObject");
  const hcq::MemoryBlock block{.address = next_object_++ << kOffsetBits,
                               .size_bytes = size_bytes,
                               .native = reinterpret_cast<uint64_t>(buffer)};
  live_.emplace(block.address, Raw{.buffer = buffer, .block = block});
  addresses_.emplace(buffer, block.address);
  return {block, 0};
}

Memory::Part Memory::object_of(const hcq::Span& span) {
  const Context& c = *context_;
  std::lock_guard lock(mutex_);
  const auto it = live_.find(span.block->address);
  if (it == live_.end()) return {};
  Raw& raw = it->second;
  if (!raw.buffer && raw.svm) {
    // OpenCL 2.0, 5.2.1: a buffer with CL_MEM_USE_HOST_PTR at what clSVMAlloc() returned has the
    // same memory beneath.
    cl_int code = CL_SUCCESS;
    raw.buffer = c.api.clCreateBuffer(c.handle, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                      raw.block.size_bytes + kAlignment, raw.svm, &code);
    if (code != CL_SUCCESS) {
      raw.buffer = nullptr;
      fail<Unsupported>(
          "{}: the driver makes no memory object over shared virtual memory (clCreateBuffer "
          "returned {}): TUFF_CL_DISABLE=svm keeps all memory in objects",
          c.name, error_name(code));
    }
    addresses_.emplace(raw.buffer, raw.block.address);
  }
  return {raw.buffer, raw.lead() + span.offset};
}

cl_mem Memory::object_at(uint64_t address) const {
  std::lock_guard lock(mutex_);
  const auto it = live_.find(address - offset_in_object(address));
  return it == live_.end() ? nullptr : it->second.buffer;
}

void Memory::unmap(const hcq::MemoryBlock& block) noexcept {
  std::lock_guard lock(mutex_);
  const auto it = live_.find(block.address);
  if (it == live_.end() || --it->second.uses > 0) return;
  const Raw raw = it->second;
  mapped_bytes_ -= raw.counted_bytes;
  addresses_.erase(raw.buffer);
  live_.erase(it);
  release(raw);
}

void Memory::release(const Raw& raw) noexcept {
  const Context& c = *context_;
  if (raw.buffer) c.api.clReleaseMemObject(raw.buffer);
  if (raw.svm) c.api.clSVMFree(c.handle, raw.svm);
  if (raw.pages) os::unmap_pages_within_limits(raw.pages, raw.block.size_bytes);
}

}  // namespace tuff::devices::opencl

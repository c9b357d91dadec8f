// Memory: raw blocks as a device maps them, and spans sub-allocated from them.
// Called by engine (buffers), hcq itself (argument blocks, staging) and devices (map_block).
// Must never know tensors, dtypes or Vulkan handles: `native` is the device's own business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tuff::hcq {

class Device;
class Queue;

enum class MemoryKind : uint8_t {
  Device,    // fastest for kernels; host pointer only where that costs nothing (UMA, software, CPU)
  Args,      // argument blocks: host-visible device memory where there is some, else as Upload
  Upload,    // host writes, device reads
  Readback,  // device writes, host reads through its cache
};
inline constexpr int kMemoryKindCount = 4;

// Memory that the host reaches by calls and not by address: a part of a file. The calls block, are
// thread-safe and throw IoError.
class FileMemory {
 public:
  virtual ~FileMemory() = default;
  virtual void read(size_t offset, std::span<std::byte> into) = 0;
  virtual void write(size_t offset, std::span<const std::byte> from) = 0;
};

// One raw allocation of a device.
struct MemoryBlock {
  uint64_t address = 0;  // device address of byte 0 (the host address on CPU)
  size_t size_bytes = 0;
  std::byte* host = nullptr;  // mapped for its whole life, or null
  MemoryKind kind = MemoryKind::Device;
  uint64_t native = 0;         // VkBuffer index, KFD handle ...
  FileMemory* file = nullptr;  // of a device of files; no host pointer then
};

// Memory of the process, whose device address is the host's.
inline MemoryBlock host_block(void* data, size_t size_bytes, MemoryKind kind = MemoryKind::Device) {
  return {reinterpret_cast<uint64_t>(data), size_bytes, static_cast<std::byte*>(data), kind};
}

// A block over memory that is not the device's own, for Allocator::adopt().
struct ForeignMemory {
  MemoryBlock block;
  size_t offset = 0;                    // what is adopted begins there
  std::function<void()> release = {};  // once, when nothing uses it any more: see adopt()
  bool read_only = false;
  void after_release(std::function<void()> then);  // calls that behind `release`; may be empty
};

// A part of a block. Plain value; its owner is who allocated it.
struct Span {
  const MemoryBlock* block = nullptr;
  size_t offset = 0;
  size_t size_bytes = 0;
  uint64_t address() const { return block->address + offset; }
  std::byte* host() const { return block->host ? block->host + offset : nullptr; }
  // Whether the host copies from and to it without the device's help.
  bool host_reaches() const { return block->host || block->file; }
  Span sub(size_t at, size_t size) const { return {block, offset + at, size}; }
  explicit operator bool() const { return block != nullptr; }
};

// One copy by the calling thread, of spans that the host reaches. IoError where one is of a file.
void copy_by_host(const Span& dst, const Span& src);

// A point on a queue's timeline: passed when the queue's signal is >= value, or without a queue.
struct TimelinePoint {
  Queue* queue = nullptr;
  uint64_t value = 0;
};

struct MemoryStats {
  uint64_t live_bytes = 0;    // handed out and not freed
  uint64_t cached_bytes = 0;  // freed, kept for reuse
  uint64_t mapped_bytes = 0;  // raw blocks held from the driver
  uint64_t peak_live_bytes = 0;
  uint64_t block_count = 0;
};

// Sub-allocates spans from blocks (TLSF or size classes over >= 16 MiB blocks, large requests get
// their own block), keeps freed spans in an LRU for reuse, and holds back what the device may still
// touch: free(span, last_use) is deferred until that point has passed. Thread-safe.
class Allocator {
 public:
  explicit Allocator(Device& device);
  ~Allocator();
  // 256-byte aligned (or `alignment`, a power of two). Throws OutOfMemory after the cache was
  // dropped and the request retried once; the text lists live bytes, limit and request.
  Span allocate(size_t size_bytes, MemoryKind kind, size_t alignment = 256);
  void free(Span span, TimelinePoint last_use = {}) noexcept;
  // A span over foreign memory that the device's kernels reach. Once it was freed and its last
  // use has passed, release() is called, once, by the first to notice: an allocate, free, trim or
  // collect of any thread, or the allocator's end. No lock of the allocator is held then; the
  // caller may hold others, so release() must not call back into the engine.
  Span adopt(ForeignMemory memory, size_t size_bytes);
  // The block with that native handle, of the allocator's own or adopted.
  std::optional<MemoryBlock> block_with(uint64_t native) const;
  // Calls the release()s that are due. Costs one load where no freed foreign memory waits.
  void collect() noexcept;
  // `spoil` overwrites memory that may not be touched from now on: for a device whose purpose is to
  // show late accesses.
  void spoil_freed(std::function<void(const Span&)> spoil);
  void trim();  // give cached blocks back to the driver
  MemoryStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::hcq

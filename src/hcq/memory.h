// Memory: raw blocks as a device maps them, and spans sub-allocated from them.
// Called by engine (buffers), hcq itself (argument blocks, staging) and devices (map_block).
// Must never know tensors, dtypes or Vulkan handles: `native` is the device's own business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tuff::hcq {

class Device;

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

// A part of a block. Plain value; the owner is whoever allocated it.
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

// A point on a queue's timeline: passed when the queue's signal is >= value.
struct TimelinePoint {
  class Queue* queue = nullptr;
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
// touch: free(span, points) is deferred until every point has passed. Thread-safe.
class Allocator {
 public:
  explicit Allocator(Device& device);
  ~Allocator();
  // 256-byte aligned (or `alignment`, a power of two). Throws OutOfMemory after the cache was
  // dropped and the request retried once; the text lists live bytes, limit and request.
  Span allocate(size_t size_bytes, MemoryKind kind, size_t alignment = 256);
  void free(Span span, const std::vector<TimelinePoint>& last_uses = {}) noexcept;
  // A span over memory of somebody else: a part of a block that the device's kernels reach. Once it
  // was freed and every point has passed, release() is called, once, by whoever notices: an
  // allocate, free, trim or collect of any thread, or the allocator's end. No lock of the allocator
  // is held then; the caller may hold others, so release() must not call back into the engine.
  Span adopt(const MemoryBlock& foreign, size_t offset, size_t size_bytes,
             std::function<void()> release);
  // The same of a device that adopts_host_memory().
  Span adopt(void* host, size_t size_bytes, std::function<void()> release);
  // The block with that native handle, of the allocator's own or adopted.
  std::optional<MemoryBlock> block_with(uint64_t native) const;
  // Calls what is due of those. Costs one load where no freed memory of others waits.
  void collect() noexcept;
  void trim();  // give cached blocks back to the driver
  MemoryStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuff::hcq

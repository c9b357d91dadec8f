// Buffer: memory that a GPU reaches at the address at which this process has reserved it, whether
// the host maps it there or not. Made by Process, used by queues, programs and the device's blocks.
#pragma once

#include <optional>
#include <vector>

#include "devices/amd/kfd/calls.h"

namespace tuff::devices::amd {

class Process;
struct Gpu;

// Where memory lies and who sees what in it; in ioctls' flags.
enum class MemoryDomain : uint8_t {
  Vram,         // without a host pointer
  PeerVram,     // likewise, where other GPUs reach it: they come through the bar, as the host does
  VisibleVram,  // the host writes through the bar; only with a large one
  Code,         // likewise, or host memory where there is none; instructions
  Host,         // host memory that GPUs read and write past their caches
  Shared,       // host memory in a GPU's caches, as where the GPU is part of the CPU
  Uncached,     // host memory for rings, their pointers and signals
  User,         // the caller's own pages
};

struct BufferRequest {
  size_t size_bytes = 0;  // rounded up to pages
  MemoryDomain domain = MemoryDomain::Vram;
  bool everywhere = false;  // on all GPUs of the process, those that come later too
  void* user = nullptr;     // of domain User: page-aligned, and stays until the Buffer is gone
};

class Buffer {
 public:
  Buffer(Process& process, Gpu& gpu, const BufferRequest& request);  // by Process::allocate
  ~Buffer();
  Buffer(const Buffer&) = delete;
  uint64_t address() const { return range_->address(); }
  size_t size_bytes() const { return range_->size_bytes(); }
  std::byte* host() const { return host_; }  // null: the host does not map it
  uint64_t handle() const { return handle_; }
  // On a further GPU: its queues and kernels reach the same bytes at the same address. False: it
  // was mapped there before. Throws where the GPUs have no link.
  bool map_to(const Gpu& gpu);
  // The kernel keeps it to the end of the process, and refuses to free it.
  void leave_to_kernel() { kept_ = true; }

 private:
  void allocate(const BufferRequest& request);
  void release() noexcept;
  Process& process_;
  Gpu& gpu_;
  std::optional<AddressRange> range_;
  std::byte* host_ = nullptr;
  uint64_t handle_ = 0;
  bool allocated_ = false, kept_ = false;
  std::vector<uint32_t> mapped_to_;  // gpu ids
};

}  // namespace tuff::devices::amd

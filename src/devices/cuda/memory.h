// Memory: raw blocks of a CUDA device. Called by the device for hcq's Allocator, which
// sub-allocates. Device memory has no host pointer; staging memory is pinned and has one address
// for the host and for every GPU. Argument blocks lie in device memory: a kernel reads them at
// once, and hcq brings the words that a replay changes there by one copy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "devices/cuda/context.h"
#include "hcq/memory.h"

namespace tuff::devices::cuda {

inline constexpr uintptr_t kBufferAlignment = 16;  // kernels count on it (render/c_nvptx.cpp)

class Memory {
 public:
  explicit Memory(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Memory();
  hcq::MemoryBlock map(size_t size_bytes, hcq::MemoryKind kind);
  void unmap(const hcq::MemoryBlock& block) noexcept;
  // Memory of the process, whose pages stay where they are until its release(). Nothing where pages
  // of it were registered with others that it does not contain, or by someone else; InvalidArgument
  // if it is not 16-byte aligned.
  std::optional<hcq::ForeignMemory> over_host(void* data, size_t size_bytes);

 private:
  bool is_host(hcq::MemoryKind kind) const {
    return kind == hcq::MemoryKind::Upload || kind == hcq::MemoryKind::Readback ||
           (kind == hcq::MemoryKind::Args && context_->facts.integrated);
  }
  void release(const hcq::MemoryBlock& block) noexcept;
  struct Pages {
    size_t size_bytes = 0;
    CUdeviceptr address = 0;  // of the first byte
    uint32_t uses = 0;
  };
  const Pages* registered(uintptr_t begin, uintptr_t end);
  void unregister(uintptr_t begin) noexcept;

  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::map<uint64_t, hcq::MemoryBlock> live_;  // by address
  std::map<uintptr_t, Pages> registered_;      // whole pages of the process
};

}  // namespace tuff::devices::cuda

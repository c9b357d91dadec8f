// Memory: raw blocks of an OpenCL device. Called by the device for hcq's Allocator, which
// sub-allocates. With SVM a block's address is what kernels use. Without, it is an identity: the
// number of the block above, the offset in it below kOffsetBits; what the host sees is then plain
// host memory, which copies read and write and kernels cannot. Memory objects of an application
// have such addresses in both tiers.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "devices/opencl/context.h"
#include "hcq/memory.h"

namespace tuff::devices::opencl {

inline constexpr uint32_t kOffsetBits = 40;
inline constexpr uint64_t kFirstObject = uint64_t{1} << 16;  // past all addresses of the host
inline bool is_object(uint64_t address) { return address >> kOffsetBits >= kFirstObject; }
// 0 where there are addresses.
inline uint64_t offset_in_object(uint64_t address) {
  return is_object(address) ? address & ((uint64_t{1} << kOffsetBits) - 1) : 0;
}

class Memory {
 public:
  explicit Memory(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Memory();
  hcq::MemoryBlock map(size_t size_bytes, hcq::MemoryKind kind);
  void unmap(const hcq::MemoryBlock& block) noexcept;
  // A block over a memory object, until unmap(): an application's, which is retained, or one that
  // object_of() has given out. Each adoption of an object gives the same addresses.
  struct Adopted {
    hcq::MemoryBlock block;
    size_t at = 0;  // byte of the object where the block begins
  };
  Adopted adopt(cl_mem buffer, size_t size_bytes);
  // The memory object that holds a span of what was mapped or adopted, and where in it; lives as
  // long as the block. Over shared virtual memory one is made when it is first asked for; a null
  // object for what others have allocated. Throws Unsupported where the driver makes none.
  struct Part {
    cl_mem object = nullptr;
    size_t offset = 0;
  };
  Part object_of(const hcq::Span& span);
  // What a kernel's argument is at an address of an object; null after unmap().
  cl_mem object_at(uint64_t address) const;

 private:
  // One of: shared virtual memory, perhaps with a memory object over it; a memory object; pages of
  // the host.
  struct Raw {
    void* svm = nullptr;
    cl_mem buffer = nullptr;
    void* pages = nullptr;
    hcq::MemoryBlock block = {};
    size_t counted_bytes = 0;  // of the device's memory
    uint32_t uses = 1;         // by map() and adopt()
    size_t lead() const {      // bytes of shared virtual memory in front of the block
      return svm ? block.address - reinterpret_cast<uint64_t>(svm) : 0;
    }
  };
  void release(const Raw& raw) noexcept;
  void place(Raw& raw, hcq::MemoryBlock& block);

  std::shared_ptr<Context> context_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Raw> live_;          // by address
  std::unordered_map<cl_mem, uint64_t> addresses_;  // of objects that may come back
  uint64_t mapped_bytes_ = 0;
  uint64_t next_object_ = kFirstObject;
};

// The memory object behind a span, or null where the host's memory is.
inline cl_mem buffer_of(const hcq::Span& span) {
  return reinterpret_cast<cl_mem>(span.block->native);
}

}  // namespace tuff::devices::opencl

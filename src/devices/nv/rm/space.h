// Space and Buffer: what addresses mean to one GPU, and memory that is mapped there; the seam below
// the NV device. Either NVIDIA's kernel driver keeps the page tables (UvmSpace, uvm_space.h), or
// this process does (GspSpace, pci/gsp_space.h). Used by channels, programs and the device's
// blocks. Addresses are below 2^40, where every method and QMD reaches them, and not the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "devices/nv/rm/gpu_facts.h"

namespace tuff::devices::nv {

class ChannelGroup;
class Space;

// All that addresses have room for in methods and QMDs, beyond where drivers put their own.
inline constexpr uint64_t kFirstAddress = 1ull << 36, kEndOfAddresses = 1ull << 40;

enum class MemoryDomain : uint8_t {
  Video,         // without a host pointer
  VisibleVideo,  // the host writes through the aperture
  System,        // of the host, which GPU and host see alike
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  uint64_t address() const { return address_; }
  size_t size_bytes() const { return size_; }
  std::byte* host() const { return host_; }  // null: the host does not map it
  // The resource manager's object; 0: it has none.
  virtual nvrm::Handle handle() const { return 0; }
  // At its address on another GPU too, which reaches this one's memory. False: it is mapped there.
  // Throws where it cannot be.
  virtual bool map_for(Space& space) = 0;

 protected:
  // Whole pages, of the size that suits so many bytes.
  Buffer(size_t size_bytes, MemoryDomain domain);
  uint64_t alignment() const;
  size_t size_;
  uint64_t address_ = 0;
  std::byte* host_ = nullptr;

 private:
  const MemoryDomain domain_;
};

// Thread-safe. Gone after its buffers and its group.
class Space {
 public:
  virtual ~Space() = default;
  Space(const Space&) = delete;
  virtual const GpuFacts& facts() const = 0;
  // By whom the GPU is driven, and in which version.
  virtual std::string driver() const = 0;
  virtual std::string driver_version() const = 0;
  // OutOfMemory.
  virtual std::unique_ptr<Buffer> allocate(size_t size_bytes, MemoryDomain domain) = 0;
  // What channels run in.
  virtual std::unique_ptr<ChannelGroup> make_group() = 0;
  // Whether this GPU may use memory of the other one.
  virtual bool reaches(const Space& other) const = 0;
  // The GPU's clock.
  virtual uint64_t time_ns() const = 0;

 protected:
  Space() = default;
};

}  // namespace tuff::devices::nv

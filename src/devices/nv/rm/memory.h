// Space: the addresses of one GPU, which unified memory (UVM) keeps in its page tables, and Buffer:
// memory that is mapped there, and to the host where it asks for that. Used by channels, programs
// and the device's blocks. Addresses are the GPU's own: below 2^40, where every method and QMD
// reaches them, and not the host's.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "devices/nv/rm/gpu.h"

namespace tuff::devices::nv {

class Space {
 public:
  explicit Space(Gpu& gpu);
  ~Space();
  Space(const Space&) = delete;
  Gpu& gpu() const { return gpu_; }
  nvrm::Handle handle() const { return space_->handle(); }
  // Addresses that nothing has; OutOfMemory.
  uint64_t reserve(uint64_t size_bytes, uint64_t alignment);
  void give_back(uint64_t address) noexcept;

 private:
  void register_with_uvm();
  void unregister() noexcept;
  Gpu& gpu_;
  std::unique_ptr<Object> space_;
  bool gpu_registered_ = false, space_registered_ = false;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> used_;  // ends, by address
  uint64_t next_;
};

// An object of RM in the address space of the process, through a file that nothing else is mapped
// by; it may be closed then. To be unmapped by the caller.
std::byte* map_object(const Gpu& gpu, nvrm::Handle device, nvrm::Handle object, size_t size_bytes,
                      const KernelFile& file);

enum class MemoryDomain : uint8_t {
  Video,         // without a host pointer
  VisibleVideo,  // the host writes through the aperture
  System,        // of the host, which GPU and host see alike
};

class Buffer {
 public:
  // Whole pages. OutOfMemory.
  Buffer(Space& space, size_t size_bytes, MemoryDomain domain);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  uint64_t address() const { return address_; }
  size_t size_bytes() const { return size_; }
  std::byte* host() const { return host_; }  // null: the host does not map it
  nvrm::Handle handle() const { return memory_->handle(); }

 private:
  void allocate(MemoryDomain domain);
  void map_on_gpu();
  void map_on_host(MemoryDomain domain);
  void release() noexcept;
  Space& space_;
  size_t size_;
  uint64_t address_ = 0;
  std::byte* host_ = nullptr;
  std::unique_ptr<Object> memory_;
  bool in_range_ = false;
};

}  // namespace tuff::devices::nv

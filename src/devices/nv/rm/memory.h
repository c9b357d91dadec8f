// Space: what addresses mean to one GPU, which unified memory (UVM) keeps in its page tables, and
// Buffer: memory that is mapped there, to the host where it asks for that, and at the same address to
// GPUs that are peers. Used by channels, programs and the device's blocks. Addresses are below 2^40,
// where every method and QMD reaches them, and not the host's.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "devices/nv/rm/gpu.h"

namespace tuff::devices::nv {

class Space {
 public:
  explicit Space(Gpu& gpu);
  ~Space();
  Space(const Space&) = delete;
  Gpu& gpu() const { return gpu_; }
  nvrm::Handle handle() const { return space_->handle(); }
  uint64_t number() const { return number_; }  // never the same twice
  // Addresses that nothing has; OutOfMemory.
  uint64_t reserve(uint64_t size_bytes, uint64_t alignment) {
    return gpu_.client()->addresses().reserve(size_bytes, alignment);
  }
  void give_back(uint64_t address) noexcept { gpu_.client()->addresses().give_back(address); }

 private:
  void register_with_uvm();
  void unregister() noexcept;
  Gpu& gpu_;
  const uint64_t number_;
  std::unique_ptr<Object> space_;
  bool gpu_registered_ = false, space_registered_ = false;
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
  // At its address on another GPU too, which has to be a peer where this is video memory. False: it
  // is mapped there. Throws where it cannot be.
  bool map_for(Space& space);

 private:
  void allocate(MemoryDomain domain);
  void create_range();
  void map_on_host(MemoryDomain domain);
  void release() noexcept;
  Space& space_;
  size_t size_;
  uint64_t address_ = 0;
  std::byte* host_ = nullptr;
  std::unique_ptr<Object> memory_;
  bool in_range_ = false;
  std::mutex mutex_;
  std::set<uint64_t> mapped_for_;  // numbers of spaces
};

}  // namespace tuff::devices::nv

// UvmSpace and UvmBuffer: a space whose page tables NVIDIA's kernel driver keeps, in unified memory
// (UVM): made by what opens a GPU through that driver. Memory is an object of its resource manager
// (RM), mapped at an address of UVM's ranges, to the host where it asks for that, and at the same
// address to GPUs that are peers.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "devices/nv/rm/gpu.h"
#include "devices/nv/rm/space.h"

namespace tuff::devices::nv {

inline constexpr const char* kKernelDriver = "NVIDIA kernel driver";

class UvmSpace final : public Space {
 public:
  UvmSpace(std::shared_ptr<Client> client, const nvrm::CardInfo& card);
  ~UvmSpace() override;
  const GpuFacts& facts() const override { return gpu_.facts(); }
  std::string driver() const override { return kKernelDriver; }
  std::string driver_version() const override { return client().version(); }
  std::unique_ptr<Buffer> allocate(size_t size_bytes, MemoryDomain domain) override;
  std::unique_ptr<ChannelGroup> make_group() override;
  bool reaches(const Space& other) const override;
  uint64_t time_ns() const override { return gpu_.time_ns(); }

  const Gpu& gpu() const { return gpu_; }
  Client& client() const { return *gpu_.client(); }
  nvrm::Handle handle() const { return space_->handle(); }
  uint64_t number() const { return number_; }  // never the same twice

 private:
  void register_with_uvm();
  void unregister() noexcept;
  const Gpu gpu_;
  const uint64_t number_;
  std::unique_ptr<Object> space_;
  bool gpu_registered_ = false, space_registered_ = false;
};

// An object of RM in the address space of the process, through a file that nothing else is mapped
// by; it may be closed then. To be unmapped by the caller.
std::byte* map_object(const Gpu& gpu, nvrm::Handle device, nvrm::Handle object, size_t size_bytes,
                      const KernelFile& file);

class UvmBuffer final : public Buffer {
 public:
  // OutOfMemory.
  UvmBuffer(UvmSpace& space, size_t size_bytes, MemoryDomain domain);
  ~UvmBuffer() override;
  nvrm::Handle handle() const override { return memory_->handle(); }
  bool map_for(Space& space) override;

 private:
  void allocate(MemoryDomain domain);
  void create_range();
  void map_on_host(MemoryDomain domain);
  void release() noexcept;
  UvmSpace& space_;
  std::unique_ptr<Object> memory_;
  bool in_range_ = false;
  std::mutex mutex_;
  std::set<uint64_t> mapped_for_;  // numbers of spaces
};

}  // namespace tuff::devices::nv

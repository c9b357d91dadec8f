// GspSpace and GspBuffer: a space of a GPU that this process drives alone (PciGpu), and memory that
// is mapped there: pieces of video memory, or of the host's that the IOMMU translates. What
// UvmSpace (rm/uvm_space.h) is through NVIDIA's kernel driver. Made by what opens a GPU by PCI.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "devices/nv/pci/pci_gpu.h"
#include "devices/nv/rm/space.h"

namespace tuff::devices::nv {

inline constexpr const char* kPciDriver = "VFIO, NVIDIA's firmware";

class GspSpace final : public Space {
 public:
  explicit GspSpace(std::unique_ptr<PciGpu> gpu);
  const GpuFacts& facts() const override { return gpu_->facts(); }
  std::string driver() const override { return kPciDriver; }
  std::string driver_version() const override { return gpu_->firmware_version(); }
  std::unique_ptr<Buffer> allocate(size_t size_bytes, MemoryDomain domain) override;
  std::unique_ptr<ChannelGroup> make_group() override;
  // No GPU by PCI maps another one's memory.
  bool reaches(const Space&) const override { return false; }
  uint64_t time_ns() const override { return gpu_->time_ns(); }

  PciGpu& gpu() { return *gpu_; }
  GspVaSpace& addresses() { return addresses_; }

 private:
  const std::unique_ptr<PciGpu> gpu_;
  GspVaSpace addresses_;
};

class GspBuffer final : public Buffer {
 public:
  // OutOfMemory.
  GspBuffer(GspSpace& space, size_t size_bytes, MemoryDomain domain);
  ~GspBuffer() override;
  // Of video memory, all of it.
  uint64_t physical() const { return video_->address(); }
  bool map_for(Space& space) override;

 private:
  GspSpace& space_;
  std::optional<VideoPiece> video_;
  std::optional<DmaMemory> system_;
};

}  // namespace tuff::devices::nv

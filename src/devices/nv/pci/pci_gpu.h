// PciGpu: one GPU that this process drives alone: taken, its system processor's firmware started,
// its memory given out here, and a first context of its graphics engine made (the golden one).
// Owned by GspSpace. Knows no channel of programs.
// Sources: as those of its parts; tinygrad @09f3aae, runtime/support/nv/ip.py (init_golden_image).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "devices/nv/pci/gsp.h"
#include "devices/nv/pci/gsp_facts.h"
#include "devices/nv/pci/graphics_context.h"
#include "devices/nv/pci/video_memory.h"

namespace tuff::devices::nv {

class PciGpu {
 public:
  // Throws what its parts throw; Unsupported for a GPU of a generation that is not known.
  PciGpu(std::shared_ptr<os::Kernel> kernel, const PciFunction& function, uint64_t timeout_ms);
  ~PciGpu();
  PciGpu(const PciGpu&) = delete;
  const GpuFacts& facts() const { return facts_.gpu; }
  const ChipFamily& family() const { return *gsp_.chip().family; }
  std::string firmware_version() const { return version_; }
  PciDevice& device() { return device_; }
  VideoMemory& video() { return *video_; }
  const std::shared_ptr<GspCalls>& calls() const { return gsp_.calls(); }
  nvrm::Handle device_object() const { return device_object_->handle(); }
  nvrm::Handle subdevice() const { return subdevice_->handle(); }
  GraphicsParts graphics_parts() { return {calls(), subdevice(), *video_}; }
  // Memory that contexts share.
  const ContextMemory& golden() const { return golden_; }
  // The page of registers that has doorbells; mapped as long as this is there.
  std::byte* doorbells() const { return doorbells_; }
  uint64_t time_ns() const;
  // Whatever runs there reaches no memory any more, and no call is made.
  void reset(const std::string& why) noexcept;

 private:
  void open_objects();
  void make_golden_context();
  PciDevice device_;
  std::string version_;
  Gsp gsp_;
  std::optional<Object> device_object_, subdevice_;
  GspFacts facts_;
  std::optional<VideoMemory> video_;
  ContextMemory golden_;
  std::byte* doorbells_ = nullptr;
};

}  // namespace tuff::devices::nv
